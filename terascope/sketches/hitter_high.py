"""States of heavy hitters that are merged: direct, adaptive, low sketch, frequent items.

In: packed states, or tuples. Out: packed states. One column serves all high-level strategies of
paper 1, 4.2, and Low Sketch next to the source:

- adaptive keeps an exact table of a state's identifiers, 64 of them by default, and makes a sketch
  when there are more: a state is a sketch if and only if it has more identifiers, however its
  tuples were split. The heaviest of the table are the first candidates of the sketch. Direct is
  adaptive without a table. Low Sketch is direct in both levels.
- frequent items keeps a larger table, and purges it instead of making a sketch
  (terascope.sketches.frequent_items).

Counters have 32 bits until the weights of a state add up to more than that; then the counters of
this state are copied to an array with 64 bits. Beside the counters a state keeps the keys of the
identifiers with the largest estimates, the *candidates*. They give the answer its identifiers:
names are hashed in the counters, and a search that descends the prefixes also finds identifiers
that never occurred. An identifier becomes a candidate when its estimate exceeds the smallest bound
of the candidates and twice the mean of all counters. The bound on the weight of a candidate begins
with that estimate and then counts its own weights only, so that it is tighter than the estimate.

A state is described by one word (terascope.sketches.pair_blocks.Metas): 0 for an empty one, a
positive one for a table, and the complement of the number of its sketch for a sketch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.sketches.base import (
    Argument,
    CodedValues,
    Numbers,
    Packed,
    StateColumn,
    packed_of,
)
from terascope.sketches.count_min import SketchSize
from terascope.sketches.hitter_ids import NAMED, HitterIds, IdKind, Keys, Words
from terascope.sketches.hitter_kernels import (
    add_tuples,
    drop_states,
    gather_tables,
    measure_sketches,
    merge_sketches,
    write_sketches,
)
from terascope.sketches.hitter_layout import (
    FAULTS,
    FREQUENT,
    SKETCH,
    WEIGHT_MAX,
    Contents,
    contents_of,
    named_keys,
    pairs_of,
)
from terascope.sketches.hitter_low import FIRST_STATES, FIRST_WORDS
from terascope.sketches.hitter_packing import pack_pairs
from terascope.sketches.pair_blocks import SIZES, Metas
from terascope.sketches.pair_tables import size_for
from terascope.sketches.sketch_rows import FREE_SKETCHES, FREE_WIDES, SKETCHES, WIDES

EXACT: Final = 64
"""Identifiers of a state that are counted exactly before a sketch is made."""
MOST_EXACT: Final = 1 << 14


class HitterStates(StateColumn):
    """Tables of pairs that become sketches, or are purged when `purged` is set."""

    def __init__(
        self,
        kind: IdKind = IdKind.NOTHING,
        exact: int = EXACT,
        size: SketchSize | None = None,
        purged: bool = False,
    ) -> None:
        if not 0 <= exact <= MOST_EXACT or (purged and not exact):
            raise ValueError(f"a table has up to {MOST_EXACT} identifiers, not {exact}")
        self.ids = HitterIds(kind)
        self._kind = kind
        self._made_with = exact, size or SketchSize(), purged
        self.clear()

    def clear(self) -> None:
        self.exact, self.size, self.purged = self._made_with
        self.ids.clear()
        self.ids.kind = self._kind
        self.metas: Metas = np.zeros(FIRST_STATES, np.int64)
        self.arena: Words = np.zeros(FIRST_WORDS, np.uint64)
        self.places: NDArray[np.int64] = np.zeros(SIZES + 1, np.int64)
        self.places[SIZES] = 1
        self._clear_sketches()

    def _clear_sketches(self) -> None:
        self.extras: NDArray[np.int64] = np.zeros((len(self.metas) * self.purged, 2), np.int64)
        """Of states that are purged: the sum of the medians, and that of all weights."""
        self.counters: NDArray[np.uint32] = np.zeros((0, self.size.cells), np.uint32)
        self.wides: Words = np.zeros((0, self.size.cells), np.uint64)
        self.sketches: NDArray[np.int64] = np.zeros((0, 4), np.int64)
        """Of each sketch: the sum of all weights, the number of its wide counters plus one, the
        number of candidates, a number that none of their bounds is below."""
        self.candidates: Keys = np.zeros((0, 2, self.size.candidates), np.int64)
        """The keys of candidates, and bounds on their weights."""
        self.used: NDArray[np.int64] = np.zeros(4, np.int64)
        """Rows in use of counters and wides; then the first free row of each, plus one."""

    @property
    def memory_bytes(self) -> int:
        arrays = (
            self.metas, self.arena, self.extras, self.counters, self.wides, self.sketches,
            self.candidates,
        )  # fmt: skip
        return sum(array.nbytes for array in arrays) + self.ids.memory_bytes

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        weights = arguments[1]
        assert not isinstance(weights, CodedValues)
        self._add(numbers, self.ids.keys(arguments[0]), weights)

    def _add(self, numbers: Numbers, keys: Keys, weights: NDArray[np.int64]) -> None:
        self._grow_states(int(numbers.max(initial=-1)) + 1)
        if weights.min(initial=1) <= 0:
            kept = weights > 0
            numbers, keys, weights = numbers[kept], keys[kept], weights[kept]
        at = 0
        while at < len(numbers):
            at = add_tuples(numbers, keys, weights, at, *self._arrays)
            if at < len(numbers):
                self._grow_room()

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        if not len(numbers):
            return
        contents = contents_of(packed)
        self._adopt(contents)
        names = named_keys(contents, self.ids)
        self._grow_states(int(numbers.max()) + 1)
        places, keys, weights = pairs_of(contents, names)
        self._add(numbers[places], keys, weights)
        if FREQUENT in contents.variants:
            purged = np.flatnonzero(variants_of(contents) == FREQUENT)
            self._add_extras(numbers[purged], contents, purged)
        at = 0 if SKETCH in contents.variants else len(numbers)
        while at < len(numbers):
            at = merge_sketches(
                numbers, contents.starts, contents.words, names, contents.first_name, at,
                *self._arrays,
            )  # fmt: skip
            if at < len(numbers):
                self._grow_room()

    def _add_extras(self, numbers: Numbers, contents: Contents, purged: NDArray[np.int64]) -> None:
        """Add the sums of purged states: of the medians, and of the weights that are not in their
        pairs any more.
        """
        first = contents.starts[purged]
        offsets = np.minimum(contents.words[first + 2], WEIGHT_MAX).astype(np.int64)
        totals = np.minimum(contents.words[first + 3], WEIGHT_MAX).astype(np.int64)
        parts = pairs_of(contents, np.full(contents.names, NAMED, np.int64))
        kept = np.zeros(len(contents.starts), np.int64)
        np.add.at(kept, parts[0], parts[2])
        np.add.at(self.extras[:, 0], numbers, offsets)
        np.add.at(self.extras[:, 1], numbers, np.maximum(totals - kept[purged], 0))

    @property
    def _arrays(self) -> tuple[Any, ...]:
        """The arrays of the states, as kernels take them."""
        return (
            self.metas, self.arena, self.places, self.extras, self.counters, self.wides,
            self.sketches, self.candidates, self.used, self.size.array(self.ids.kind),
            self.ids.prefixes, self.exact, self._room,
        )  # fmt: skip

    @property
    def _room(self) -> int:
        """Words of the arena that one state may take while it grows."""
        return 8 << size_for(self.exact)

    def _grow_states(self, count: int) -> None:
        if count > len(self.metas):
            more = max(count, 2 * len(self.metas)) - len(self.metas)
            self.metas = np.concatenate([self.metas, np.zeros(more, np.int64)])
        if self.purged and len(self.extras) < len(self.metas):
            more = len(self.metas) - len(self.extras)
            self.extras = np.concatenate([self.extras, np.zeros((more, 2), np.int64)])

    def _grow_room(self) -> None:
        if int(self.places[SIZES]) + self._room > len(self.arena):
            more = max(len(self.arena), self._room)
            self.arena = np.concatenate([self.arena, np.zeros(more, np.uint64)])
        if self.purged:
            return
        if not self.used[FREE_SKETCHES] and self.used[SKETCHES] == len(self.sketches):
            more = max(4, len(self.sketches) // 2)
            self.counters = longer(self.counters, more)
            self.sketches = longer(self.sketches, more)
            self.candidates = longer(self.candidates, more)
        if not self.used[FREE_WIDES] and self.used[WIDES] == len(self.wides):
            self.wides = longer(self.wides, max(1, len(self.wides) // 2))

    def _adopt(self, contents: Contents) -> None:
        """Take on the parameters of packed states while there is no sketch of others."""
        frequent, sketched = FREQUENT in contents.variants, SKETCH in contents.variants
        if frequent and sketched:
            raise ValueError(FAULTS[2])
        exact, size, purged = self.exact, self.size, self.purged
        if frequent and not purged:
            at = int(np.flatnonzero(variants_of(contents) == FREQUENT)[0])
            exact = int(contents.words[contents.starts[at] + 4])
            if not 0 < exact <= MOST_EXACT:
                raise ValueError(FAULTS[1])
            purged = True
        if sketched:
            first = contents.starts[contents.sketch]
            sizes, kept = int(contents.words[first + 3]), int(contents.words[first + 4])
            if kept > MOST_EXACT or int(contents.words[first] >> np.uint64(32)) > kept:
                raise ValueError(FAULTS[1])
            size = SketchSize(sizes & 0xFFFFFFFF, sizes >> 32 & 0xFFFF, sizes >> 48, kept)
            exact, purged = (self.exact, False) if not self.purged else (EXACT, False)
        if (exact, size, purged) == (self.exact, self.size, self.purged):
            return
        if np.any(self.metas < 0) or np.any(self.extras[:, 0]):
            raise ValueError(FAULTS[2])
        exact = max(exact, int((self.metas & 0xFFFF).max()))
        self.exact, self.size, self.purged = exact, size, purged
        self._clear_sketches()
        if purged:
            self._sum_tables()

    def _sum_tables(self) -> None:
        """Note the sums of the weights of tables that may be purged from now on."""
        bounds, _, weights = self._gather(self.metas)
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(weights)])
        self.extras[:, 1] = sums[bounds[1:]] - sums[bounds[:-1]]

    def _gather(self, metas: Metas) -> tuple[NDArray[np.int64], Keys, Keys]:
        bounds = np.zeros(len(metas) + 1, np.int64)
        np.cumsum(metas & 0xFFFF, out=bounds[1:])
        keys, weights = np.empty((2, int(bounds[-1])), np.int64)
        gather_tables(metas, self.arena, keys, weights)
        return bounds, keys, weights

    def pack(self, numbers: Numbers) -> Packed:
        self._grow_states(int(numbers.max(initial=-1)) + 1)
        metas = self.metas[numbers]
        places = np.zeros(len(numbers), np.int64)  # 1: a sketch, 2: a table that was purged
        places[metas < 0] = 1
        if self.purged:
            places[self.extras[numbers, 0] > 0] = 2
        parts = [np.flatnonzero(places == part) for part in range(3)]
        packed = [self._pack_part(part, numbers[at]) for part, at in enumerate(parts) if len(at)]
        if len(packed) < 2:
            return packed[0] if packed else packed_of(np.zeros(1, np.int64), np.zeros(0, np.uint8))
        order = np.argsort(np.concatenate(parts))
        return pa.concat_arrays(packed).take(pa.array(order))

    def _pack_part(self, part: int, numbers: Numbers) -> Packed:
        metas = self.metas[numbers]
        if part == 1:
            return self._pack_sketches(~metas)
        bounds, keys, weights = self._gather(metas)
        if part == 0:
            return pack_pairs(bounds, keys, weights, self.ids)
        extra = np.full((len(numbers), 3), self.exact, np.int64)
        extra[:, :2] = self.extras[numbers]
        return pack_pairs(bounds, keys, weights, self.ids, FREQUENT, extra)

    def _pack_sketches(self, rows: NDArray[np.int64]) -> Packed:
        sizes, offsets = self.size.array(self.ids.kind), np.zeros(len(rows) + 1, np.int64)
        measure_sketches(rows, self.sketches, self.candidates, sizes, self.ids.ends, offsets)
        words = np.zeros(int(offsets[-1]), np.uint64)
        write_sketches(
            rows, self.counters, self.wides, self.sketches, self.candidates, sizes,
            self.ids.ends, self.ids.content, int(self.ids.kind), offsets, words,
        )  # fmt: skip
        return packed_of(8 * offsets, words.view(np.uint8))

    def drop(self, numbers: Numbers) -> None:
        if not len(numbers):
            return
        self._grow_states(int(numbers.max()) + 1)
        drop_states(
            numbers, self.metas, self.arena, self.places, self.sketches, self.wides, self.used
        )
        if self.purged:
            self.extras[numbers] = 0
        if self.ids.count and not self.metas.any():
            self.ids.clear()


def longer(rows: NDArray[Any], more: int) -> NDArray[Any]:
    """An array with more rows."""
    grown = np.zeros((len(rows) + more, *rows.shape[1:]), rows.dtype)
    grown[: len(rows)] = rows
    return grown


def variants_of(contents: Contents) -> NDArray[np.int64]:
    heads = contents.words[contents.starts[:-1]]
    return (heads >> np.uint64(24) & np.uint64(15)).astype(np.int64)
