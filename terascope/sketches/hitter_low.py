"""Pairs of identifier and weight next to the source: buffer, hash and compress (paper 1, 4.2).

In: tuples. Out: packed lists of pairs, which every column of the high level takes, whichever of the
columns here made them.

- `BufferedPairs` keeps the pairs as they arrive. A full state leaves (FLUSHME). With room for one
  pair it forwards each tuple, the contender of the paper's experiments that does all the work in
  the high level.
- `HashedPairs` keeps an array as a hash table, so that the weights of one identifier add up. A
  state leaves when a pair finds no place within eight probes. Its table leaves as it is, empty
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
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.hashing import GOLDEN
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.sketches.base import Argument, CodedValues, Numbers, Packed, StateColumn
from terascope.sketches.hitter_ids import HitterIds, IdKind, Keys, Words
from terascope.sketches.hitter_layout import (
    NARROW_MAX,
    WEIGHT_BITS,
    contents_of,
    named_keys,
    pack_pairs,
    pairs_of,
)

PAIRS: Final = 128
"""Pairs of a full state: 1 KB."""
PROBES: Final = 8
SCANNED: Final = 3
"""Logarithm of the size of the largest table that is scanned from its beginning."""
SIZES: Final = 16
FIRST_WORDS: Final = 1 << 12
FIRST_STATES: Final = 1 << 8

Metas: TypeAlias = NDArray[np.int64]
"""Descriptions of states: place << 24 | logarithm of the size << 16 | number of pairs."""


class LowPairs(StateColumn):
    """The memory of both columns: the arena, and what leaves it."""

    whole_tables = False
    hashed = False

    def __init__(self, kind: IdKind, pairs: int = PAIRS) -> None:
        if pairs < 1 or pairs & (pairs - 1) or pairs >= 1 << SIZES:
            raise ValueError(f"a state has a power of two of pairs, below {1 << SIZES}: {pairs}")
        self.largest = pairs.bit_length() - 1
        self.ids = HitterIds(kind)
        self.clear()

    def clear(self) -> None:
        self.metas: Metas = np.zeros(FIRST_STATES, np.int64)
        self.arena: Words = np.zeros(FIRST_WORDS, np.uint64)
        self.places: NDArray[np.int64] = np.zeros(SIZES + 1, np.int64)
        """The first free block of each size, 0 for none; then the first word never used."""
        self.places[SIZES] = 1
        self._full: NDArray[np.int64] = np.zeros((FIRST_STATES, 2), np.int64)
        self._fulls = 0
        self._heavy: list[tuple[Numbers, Packed]] = []
        self.ids.clear()

    @property
    def memory_bytes(self) -> int:
        arrays = (self.metas, self.arena, self._full)
        return sum(array.nbytes for array in arrays) + self.ids.memory_bytes

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
            more = max(count, 2 * len(self.metas)) - len(self.metas)
            self.metas = np.concatenate([self.metas, np.zeros(more, np.int64)])

    def _grow_room(self) -> None:
        if self._fulls == len(self._full):
            self._full = np.concatenate([self._full, np.zeros_like(self._full)])
        if int(self.places[SIZES]) + (4 << self.largest) > len(self.arena):
            more = max(len(self.arena), 4 << self.largest)
            self.arena = np.concatenate([self.arena, np.zeros(more, np.uint64)])

    def _forward(self, numbers: Numbers, keys: Keys, weights: NDArray[np.int64]) -> None:
        """Tuples that are too heavy for a pair leave at once."""
        order = np.argsort(numbers, kind="stable")
        distinct, firsts = np.unique(numbers[order], return_index=True)
        bounds = np.append(firsts, len(order)).astype(np.int64)
        packed = pack_pairs(bounds, keys[order], weights[order], self.ids)
        self._heavy.append((distinct.astype(np.int64), packed))

    def pack(self, numbers: Numbers) -> Packed:
        self._grow_states(int(numbers.max(initial=-1)) + 1)
        return self._pack_blocks(self.metas[numbers])

    def _pack_blocks(self, metas: Metas) -> Packed:
        bounds = np.zeros(len(metas) + 1, np.int64)
        hashed, whole = int(self.hashed), int(self.whole_tables)
        measure_blocks(metas, hashed, whole, bounds)
        keys, weights = np.empty((2, int(bounds[-1])), np.int64)
        gather_blocks(metas, self.arena, hashed, whole, bounds, keys, weights)
        return pack_pairs(bounds, keys, weights, self.ids)

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

    def __init__(self, kind: IdKind, pairs: int = PAIRS, whole_tables: bool = False) -> None:
        super().__init__(kind, pairs)
        self.whole_tables = whole_tables

    def _run(
        self, numbers: Numbers, keys: Keys, weights: NDArray[np.int64], at: int
    ) -> tuple[int, int]:
        return hash_tuples(
            numbers, keys, weights, at, self.metas, self.arena, self.places, self.largest,
            self._full, self._fulls,
        )  # fmt: skip


# ---- kernels -------------------------------------------------------------------------------------
# All indices of hot kernels are unsigned: with signed ones every access tests for negative ones.


@inlined
def allocate(arena: Words, places: NDArray[np.int64], size: Any) -> Any:
    """A block of 2 ** size words; 0 when there is no room."""
    free = places[size]
    if free != 0:
        places[size] = np.int64(arena[np.uint64(free)])
        return free
    top = places[SIZES]
    if top + (1 << size) > len(arena):
        return np.int64(0)
    places[SIZES] = top + (1 << size)
    return top


@inlined
def release(arena: Words, places: NDArray[np.int64], at: Any, size: Any) -> None:
    arena[np.uint64(at)] = np.uint64(places[size])
    places[size] = at


@inlined
def meta_of(at: Any, size: Any, count: Any) -> Any:
    return at << 24 | size << 16 | count


@inlined
def size_of(meta: Any) -> Any:
    return meta >> 16 & 255


@inlined
def slots_of(meta: Any, hashed: Any) -> Any:
    """The number of words of a block that may hold pairs."""
    size = size_of(meta)
    return np.int64(1) << size if hashed != 0 and size > SCANNED else meta & 0xFFFF


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), INTEGER, output(np.int64),
    output(np.uint64), output(np.int64), INTEGER, output(np.int64, 2), INTEGER,
)  # fmt: skip
def buffer_tuples(
    numbers: Numbers,
    keys: Keys,
    weights: NDArray[np.int64],
    start: int,
    metas: Metas,
    arena: Words,
    places: NDArray[np.int64],
    largest: int,
    full: NDArray[np.int64],
    fulls: int,
) -> tuple[int, int]:
    """Append tuples from `start` on until all are done or there is no room."""
    for j in range(start, len(numbers)):
        i = np.uint64(j)
        number = np.uint64(numbers[i])
        meta = metas[number]
        at, size, count = meta >> 24, size_of(meta), meta & 0xFFFF
        if meta == 0 or count == 1 << size:
            grown = min(largest, size + 1)
            if fulls == len(full):
                return j, fulls
            block = allocate(arena, places, grown)
            if block == 0:
                return j, fulls
            if meta != 0 and size == largest:
                full[fulls, 0] = numbers[i]
                full[fulls, 1] = meta
                fulls += 1
                count = 0
            elif meta != 0:
                for k in range(count):
                    arena[np.uint64(block + k)] = arena[np.uint64(at + k)]
                release(arena, places, at, size)
            at, size = block, grown
        pair = np.uint64(keys[i]) << np.uint64(WEIGHT_BITS) | np.uint64(weights[i])
        arena[np.uint64(at + count)] = pair
        metas[number] = meta_of(at, size, count + 1)
    return len(numbers), fulls


@inlined
def first_slot(key: Any, size: Any) -> Any:
    return (key * np.uint64(GOLDEN)) >> (np.uint64(64) - np.uint64(size))


@inlined
def clear_block(arena: Words, at: Any, size: Any) -> None:
    for k in range(np.uint64(1) << np.uint64(size)):
        arena[np.uint64(at) + k] = np.uint64(0)


@inlined
def rehash(arena: Words, at: Any, size: Any, block: Any, grown: Any) -> None:
    """Copy a block into an empty one of twice the size."""
    mask = (np.uint64(1) << np.uint64(grown)) - np.uint64(1)
    for k in range(np.uint64(1) << np.uint64(size)):
        pair = arena[np.uint64(at) + k]
        if pair != 0:
            slot = first_slot(pair >> np.uint64(WEIGHT_BITS), grown)
            while arena[np.uint64(block) + slot] != 0:
                slot = (slot + np.uint64(1)) & mask
            arena[np.uint64(block) + slot] = pair


@inlined
def put_pair(arena: Words, at: Any, size: Any, count: Any, key: Any, weight: Any) -> Any:
    """Add a pair to a table: 0 when it was there, 1 when it is new, 2 when it has no place. A sum
    that would not fit makes a second pair of the same identifier.
    """
    base = np.uint64(at)
    if size <= SCANNED:
        for k in range(np.uint64(count)):
            pair = arena[base + k]
            same = pair >> np.uint64(WEIGHT_BITS) == key
            if same and (pair & np.uint64(NARROW_MAX)) + weight <= NARROW_MAX:
                arena[base + k] = pair + weight
                return 0
        if count == 1 << size:
            return 2
        arena[base + np.uint64(count)] = key << np.uint64(WEIGHT_BITS) | weight
        return 1
    mask = (np.uint64(1) << np.uint64(size)) - np.uint64(1)
    slot = first_slot(key, size)
    for _ in range(PROBES):
        pair = arena[base + slot]
        if pair == 0:
            arena[base + slot] = key << np.uint64(WEIGHT_BITS) | weight
            return 1
        same = pair >> np.uint64(WEIGHT_BITS) == key
        if same and (pair & np.uint64(NARROW_MAX)) + weight <= NARROW_MAX:
            arena[base + slot] = pair + weight
            return 0
        slot = (slot + np.uint64(1)) & mask
    return 2


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), INTEGER, output(np.int64),
    output(np.uint64), output(np.int64), INTEGER, output(np.int64, 2), INTEGER,
)  # fmt: skip
def hash_tuples(
    numbers: Numbers,
    keys: Keys,
    weights: NDArray[np.int64],
    start: int,
    metas: Metas,
    arena: Words,
    places: NDArray[np.int64],
    largest: int,
    full: NDArray[np.int64],
    fulls: int,
) -> tuple[int, int]:
    """Add tuples to tables from `start` on until all are done or there is no room."""
    for j in range(start, len(numbers)):
        i = np.uint64(j)
        number = np.uint64(numbers[i])
        key, weight = np.uint64(keys[i]), np.uint64(weights[i])
        while True:
            meta = metas[number]
            at, size, count = meta >> 24, size_of(meta), meta & 0xFFFF
            if meta != 0:
                done = put_pair(arena, at, size, count, key, weight)
                if done < 2:
                    metas[number] = meta + done
                    break
            grown = min(largest, size + 1)
            if fulls == len(full):
                return j, fulls
            block = allocate(arena, places, grown)
            if block == 0:
                return j, fulls
            clear_block(arena, block, grown)
            if meta != 0 and size == largest:
                full[fulls, 0] = numbers[i]
                full[fulls, 1] = meta
                fulls += 1
                count = 0
            elif meta != 0:
                if grown <= SCANNED:
                    for k in range(count):
                        arena[np.uint64(block + k)] = arena[np.uint64(at + k)]
                else:
                    rehash(arena, at, size, block, grown)
                release(arena, places, at, size)
            metas[number] = meta_of(block, grown, count)
    return len(numbers), fulls


@compiled_for(column(np.int64), output(np.uint64), output(np.int64))
def free_blocks(metas: Metas, arena: Words, places: NDArray[np.int64]) -> None:
    for meta in metas:
        if meta != 0:
            release(arena, places, meta >> 24, size_of(meta))


@compiled_for(column(np.int64), INTEGER, INTEGER, output(np.int64))
def measure_blocks(metas: Metas, hashed: int, whole: int, bounds: NDArray[np.int64]) -> None:
    for i in range(len(metas)):
        pairs = slots_of(metas[i], hashed) if whole != 0 else metas[i] & 0xFFFF
        bounds[i + 1] = bounds[i] + pairs


@compiled_for(
    column(np.int64), column(np.uint64), INTEGER, INTEGER, column(np.int64),
    output(np.int64), output(np.int64),
)  # fmt: skip
def gather_blocks(
    metas: Metas,
    arena: Words,
    hashed: int,
    whole: int,
    bounds: NDArray[np.int64],
    keys: Keys,
    weights: NDArray[np.int64],
) -> None:
    """The pairs of blocks, with the empty places of whole tables."""
    for i in range(len(metas)):
        at = np.uint64(metas[i] >> 24)
        to = np.uint64(bounds[i])
        for k in range(np.uint64(slots_of(metas[i], hashed))):
            pair = arena[at + k]
            if pair != 0 or whole != 0:
                keys[to] = np.int64(pair >> np.uint64(WEIGHT_BITS))
                weights[to] = np.int64(pair & np.uint64(NARROW_MAX))
                to += np.uint64(1)
