"""Pairs of identifier and weight next to the source: buffer, hash and compress (paper 1, 4.2).

In: tuples. Out: packed lists of pairs, which every column of the high level takes, whichever of the
columns here made them.

- `BufferedPairs` keeps the pairs as they arrive. A full state leaves (FLUSHME). With room for one
  pair it forwards each tuple, the contender of the paper's experiments that does all the work in
  the high level.
- `HashedPairs` keeps an array as a hash table, so that the weights of one identifier add up. A
  state leaves when a pair finds no place within eight probes, or the sum of a pair grows too
  large for its word. Its table leaves as it is, empty
  places included (hash), or without them (compress).

The paper's array has 1 KB, that is 128 pairs. Most groups have very few tuples, so that a state
begins with two pairs and doubles; tables of up to eight pairs are lists that are scanned. All
arrays are blocks of one arena, with a list of free blocks for each size. A state is described by
one word: the place of its block, the logarithm of its size, and the number of pairs. A block that
is full is handed to `flushed` as it is, and the state continues with another one.

A pair is one word: the key of the identifier and 31 bits of weight. Heavier tuples, which are rare,
leave at once as lists of their own. Tuples whose weight is not positive are passed over.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.sketches.base import Argument, CodedValues, Numbers, Packed, StateColumn, packed_of
from terascope.sketches.hitter_ids import HitterIds, IdKind, Keys, Words
from terascope.sketches.hitter_layout import (
    LIST,
    LIST_HEAD,
    MAGIC,
    NARROW_MAX,
    RUNS,
    WEIGHT_BITS,
    contents_of,
    named_keys,
    pairs_of,
)
from terascope.sketches.hitter_packing import pack_pairs
from terascope.sketches.pair_blocks import (
    SIZES,
    Metas,
    buffer_tuples,
    free_blocks,
    gather_blocks,
    hash_tuples,
    measure_blocks,
    write_blocks,
)
from terascope.sketches.word_lists import enlarged

PAIRS: Final = 128
"""Pairs of a full state: 1 KB."""
FIRST_WORDS: Final = 1 << 12
KEPT_WORDS: Final = 1 << 20
FIRST_STATES: Final = 1 << 8


class LowPairs(StateColumn):
    """The memory of both columns: the arena, and what leaves it."""

    whole_tables = False
    hashed = False

    def __init__(self, kind: IdKind, pairs: int = PAIRS) -> None:
        if pairs < 1 or pairs & (pairs - 1) or pairs >= 1 << SIZES:
            raise ValueError(f"a state has a power of two of pairs, below {1 << SIZES}: {pairs}")
        self.largest = pairs.bit_length() - 1
        self.ids = HitterIds(kind)
        self.arena: Words = np.empty(FIRST_WORDS, np.uint64)
        self.clear()

    def clear(self) -> None:
        """The arena stays for the next epoch, unless it is large: fresh memory costs more than what
        is written to it.
        """
        self.metas: Metas = np.zeros(FIRST_STATES, np.int64)
        if len(self.arena) > KEPT_WORDS:
            self.arena = np.empty(FIRST_WORDS, np.uint64)
        self.places: NDArray[np.int64] = np.zeros(SIZES + 1, np.int64)
        """The first free block of each size, 0 for none; then the first word never used."""
        self.places[SIZES] = 1
        self._full: NDArray[np.int64] = np.zeros((FIRST_STATES, 2), np.int64)
        self._fulls = 0
        self._heavy: list[tuple[Numbers, Packed]] = []
        self.ids.clear()

    @property
    def memory_bytes(self) -> int:
        used = 8 * int(self.places[SIZES])  # memory that was never written to is not there
        return self.metas.nbytes + used + self._full.nbytes + self.ids.memory_bytes

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        weights = arguments[1]
        assert not isinstance(weights, CodedValues)
        self._take(numbers, self.ids.keys(arguments[0]), weights)

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        contents = contents_of(packed)
        places, keys, weights = pairs_of(contents, named_keys(contents, self.ids))
        self._take(numbers[places], keys, weights)

    def _take(self, numbers: Numbers, keys: Keys, weights: NDArray[np.int64]) -> None:
        if not len(numbers):
            return
        self._grow_states(int(numbers.max()) + 1)
        if weights.min() <= 0:
            kept = weights > 0
            numbers, keys, weights = numbers[kept], keys[kept], weights[kept]
        if len(weights) and weights.max() > NARROW_MAX:
            heavy = weights > NARROW_MAX
            self._forward(numbers[heavy], keys[heavy], weights[heavy])
            numbers, keys, weights = numbers[~heavy], keys[~heavy], weights[~heavy]
        at = 0
        while at < len(numbers):
            at, self._fulls = self._run(numbers, keys, weights, at)
            if at < len(numbers):
                self._grow_room()

    @abstractmethod
    def _run(
        self, numbers: Numbers, keys: Keys, weights: NDArray[np.int64], at: int
    ) -> tuple[int, int]:
        """Take tuples in from a place on; the place reached, and the number of full blocks."""

    def _grow_states(self, count: int) -> None:
        if count > len(self.metas):
            self.metas = enlarged(self.metas, max(count, 2 * len(self.metas)))

    def _grow_room(self) -> None:
        if self._fulls == len(self._full):
            self._full = enlarged(self._full, 2 * len(self._full))
        if int(self.places[SIZES]) + (4 << self.largest) > len(self.arena):
            used, held = int(self.places[SIZES]), self.arena
            self.arena = np.empty(len(held) + max(len(held), 4 << self.largest), np.uint64)
            self.arena[:used] = held[:used]

    def _forward(self, numbers: Numbers, keys: Keys, weights: NDArray[np.int64]) -> None:
        """Tuples that are too heavy for a pair leave at once."""
        order = np.argsort(numbers, kind="stable")
        distinct, firsts = np.unique(numbers[order], return_index=True)
        bounds = np.append(firsts, len(order)).astype(np.int64)
        packed = pack_pairs(bounds, keys[order], weights[order], self.ids, RUNS)
        self._heavy.append((distinct.astype(np.int64), packed))

    def pack(self, numbers: Numbers) -> Packed:
        self._grow_states(int(numbers.max(initial=-1)) + 1)
        return self._pack_blocks(self.metas[numbers])

    def _pack_blocks(self, metas: Metas) -> Packed:
        bounds = np.zeros(len(metas) + 1, np.int64)
        hashed, whole = int(self.hashed), int(self.whole_tables)
        measure_blocks(metas, hashed, whole, bounds)
        variant = LIST if self.hashed else RUNS
        if self.ids.count:
            pairs = np.empty(int(bounds[-1]) + 1, np.uint64)
            gather_blocks(metas, self.arena, hashed, whole, bounds, pairs)
            keys = (pairs[:-1] >> np.uint64(WEIGHT_BITS)).astype(np.int64)
            weights = (pairs[:-1] & np.uint64(NARROW_MAX)).astype(np.int64)
            return pack_pairs(bounds, keys, weights, self.ids, variant)
        offsets = bounds + LIST_HEAD * np.arange(len(bounds))
        words = np.empty(int(offsets[-1]) + 1, np.uint64)
        head = MAGIC | variant << 24 | int(self.ids.kind) << 28
        write_blocks(metas, self.arena, hashed, whole, bounds, head, words)
        return packed_of(8 * offsets, words.view(np.uint8))

    def flushed(self) -> tuple[Numbers, Packed] | None:
        parts, self._heavy = self._heavy, []
        if self._fulls:
            full = self._full[: self._fulls]
            metas = np.ascontiguousarray(full[:, 1])
            parts.append((full[:, 0].copy(), self._pack_blocks(metas)))
            free_blocks(metas, self.arena, self.places)
            self._fulls = 0
        if not parts:
            return None
        numbers = np.concatenate([each for each, _ in parts])
        return numbers, pa.concat_arrays([packed for _, packed in parts])

    def drop(self, numbers: Numbers) -> None:
        if not len(numbers):
            return
        self._grow_states(int(numbers.max()) + 1)
        free_blocks(self.metas[numbers], self.arena, self.places)
        self.metas[numbers] = 0
        if self.ids.count and not self._fulls and not self.metas.any():
            self.ids.clear()


class BufferedPairs(LowPairs):
    """Pairs in the order of arrival."""

    def _run(
        self, numbers: Numbers, keys: Keys, weights: NDArray[np.int64], at: int
    ) -> tuple[int, int]:
        return buffer_tuples(
            numbers, keys, weights, at, self.metas, self.arena, self.places, self.largest,
            self._full, self._fulls,
        )  # fmt: skip


class HashedPairs(LowPairs):
    """Pairs of different identifiers, as far as eight probes find them."""

    hashed = True

    def __init__(
        self,
        kind: IdKind,
        pairs: int = PAIRS,
        whole_tables: bool = False,
        exact: int = 0,
        slots: int = 0,
    ) -> None:
        """`pairs`: of a full state. `exact`: the identifiers that the column of the high level
        counts exactly. `slots`: the places of a full state; as many as pairs unless said.
        """
        super().__init__(kind, slots or pairs)
        self.most = pairs
        self.whole_tables = whole_tables
        self.finishes = pairs <= exact and not whole_tables

    def _run(
        self, numbers: Numbers, keys: Keys, weights: NDArray[np.int64], at: int
    ) -> tuple[int, int]:
        return hash_tuples(
            numbers, keys, weights, at, self.metas, self.arena, self.places, self.largest,
            self.most, self._full, self._fulls,
        )  # fmt: skip
