"""Blocks of pairs in one arena: the kernels of the low level (terascope.sketches.hitter_low).

In: tuples as keys and weights. Out: the arena changed; blocks that are full; the pairs of blocks.
The kernels that take tuples stop at one for which there is no room, and return its place.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from terascope.hashing import GOLDEN
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.sketches.base import Numbers
from terascope.sketches.hitter_ids import Keys, Words
from terascope.sketches.hitter_layout import LIST_HEAD, NARROW_MAX, WEIGHT_BITS, halves

PROBES: Final = 8
"""Places of a table where a pair is looked for before the table grows, or leaves. Of a table that
may not be full, which has empty places, all are."""
SCANNED: Final = 3
"""Logarithm of the size of the largest table that is scanned from its beginning."""
AHEAD: Final = 32
"""Tuples whose places are fetched at a time."""
SIZES: Final = 16
FOUND: Final = 0
NEW: Final = 1
NO_PLACE: Final = 2
TOO_HEAVY: Final = 3
"""What became of a pair that a table takes."""

Metas: TypeAlias = NDArray[np.int64]
"""Descriptions of states: place << 24 | logarithm of the size << 16 | number of pairs."""

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
def put_pair(
    arena: Words, at: Any, size: Any, count: Any, key: Any, weight: Any, most: Any, probes: Any
) -> Any:
    """Add a pair to a table: FOUND, NEW, NO_PLACE also when there are `most` pairs, or TOO_HEAVY
    when the sum would not fit its word.
    """
    base = np.uint64(at)
    if size <= SCANNED:
        for k in range(np.uint64(count)):
            pair = arena[base + k]
            if pair >> np.uint64(WEIGHT_BITS) == key:
                if (pair & np.uint64(NARROW_MAX)) + weight > NARROW_MAX:
                    return TOO_HEAVY
                arena[base + k] = pair + weight
                return FOUND
        if count == 1 << size:
            return NO_PLACE
        arena[base + np.uint64(count)] = key << np.uint64(WEIGHT_BITS) | weight
        return NEW
    mask = (np.uint64(1) << np.uint64(size)) - np.uint64(1)
    slot = first_slot(key, size)
    for _ in range(probes):
        pair = arena[base + slot]
        if pair == 0:
            if count >= most:
                return NO_PLACE
            arena[base + slot] = key << np.uint64(WEIGHT_BITS) | weight
            return NEW
        if pair >> np.uint64(WEIGHT_BITS) == key:
            if (pair & np.uint64(NARROW_MAX)) + weight > NARROW_MAX:
                return TOO_HEAVY
            arena[base + slot] = pair + weight
            return FOUND
        slot = (slot + np.uint64(1)) & mask
    return NO_PLACE


@compiled_for(
    column(np.int64), column(np.int64), column(np.int64), INTEGER, output(np.int64),
    output(np.uint64), output(np.int64), INTEGER, INTEGER, output(np.int64, 2), INTEGER,
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
    most: int,
    full: NDArray[np.int64],
    fulls: int,
) -> tuple[int, int]:
    """Add tuples to tables from `start` on until all are done or there is no room. A table leaves
    when it has `most` pairs, when a pair finds no place in one of the largest size, or when a sum
    exceeds its word. The
    places of some tuples ahead are read first, so that they are fetched from memory at the same
    time.
    """
    touched = np.uint64(0)
    for j in range(start, len(numbers)):
        i = np.uint64(j)
        if j % AHEAD == 0:
            for k in range(i, min(i + np.uint64(AHEAD), np.uint64(len(numbers)))):
                ahead = metas[np.uint64(numbers[k])]
                slot = np.uint64(0)
                if size_of(ahead) > SCANNED:
                    slot = first_slot(np.uint64(keys[k]), size_of(ahead))
                touched |= arena[np.uint64(ahead >> 24) + slot]
        number = np.uint64(numbers[i])
        key, weight = np.uint64(keys[i]), np.uint64(weights[i])
        while True:
            meta = metas[number]
            at, size, count = meta >> 24, size_of(meta), meta & 0xFFFF
            done = NO_PLACE
            if meta != 0:
                probes = PROBES if size < largest or most == 1 << size else 1 << size
                done = put_pair(arena, at, size, count, key, weight, most, probes)
                if done <= NEW:
                    metas[number] = meta + done
                    break
            grown = min(largest, size + 1)
            if done == TOO_HEAVY or count >= most:
                grown = size
            if fulls == len(full):
                return j, fulls
            block = allocate(arena, places, grown)
            if block == 0:
                return j, fulls
            clear_block(arena, block, grown)
            if meta != 0 and grown == size:
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
    arena[0] = touched  # word 0 is not used; without this the compiler would not read ahead
    return len(numbers), fulls


@compiled_for(column(np.int64), output(np.uint64), output(np.int64))
def free_blocks(metas: Metas, arena: Words, places: NDArray[np.int64]) -> None:
    for meta in metas:
        if meta != 0:
            release(arena, places, meta >> 24, size_of(meta))


@compiled_for(column(np.int64), INTEGER, INTEGER, output(np.int64))
def measure_blocks(metas: Metas, hashed: int, whole: int, bounds: NDArray[np.int64]) -> None:
    """The number of pairs before each block."""
    for i in range(len(metas)):
        pairs = slots_of(metas[i], hashed) if whole != 0 else metas[i] & 0xFFFF
        bounds[i + 1] = bounds[i] + pairs


@inlined
def copy_block(meta: Any, arena: Words, hashed: Any, whole: Any, pairs: Words, start: Any) -> None:
    """The pairs of a block, with the empty places of a whole table."""
    at, to = np.uint64(meta >> 24), np.uint64(start)
    for k in range(np.uint64(slots_of(meta, hashed))):
        pair = arena[at + k]
        pairs[to] = pair
        to += np.uint64(pair != 0 or whole != 0)


@compiled_for(
    column(np.int64), column(np.uint64), INTEGER, INTEGER, column(np.int64), output(np.uint64)
)
def gather_blocks(
    metas: Metas,
    arena: Words,
    hashed: int,
    whole: int,
    bounds: NDArray[np.int64],
    pairs: Words,
) -> None:
    """The pairs of blocks. There is room for one more."""
    for i in range(len(metas)):
        copy_block(metas[i], arena, hashed, whole, pairs, bounds[i])


@compiled_for(
    column(np.int64), column(np.uint64), INTEGER, INTEGER, column(np.int64), INTEGER,
    output(np.uint64),
)  # fmt: skip
def write_blocks(
    metas: Metas,
    arena: Words,
    hashed: int,
    whole: int,
    bounds: NDArray[np.int64],
    head: int,
    words: Words,
) -> None:
    """Blocks of plain identifiers as packed states: their pairs are laid out the same. There is
    room for one word more. `head`: the first half of the first word.
    """
    for i in range(len(metas)):
        first = bounds[i] + i * LIST_HEAD
        copy_block(metas[i], arena, hashed, whole, words, first + LIST_HEAD)
    for i in range(len(metas)):
        first = np.uint64(bounds[i] + i * LIST_HEAD)
        words[first] = halves(head, bounds[i + 1] - bounds[i])
        words[first + np.uint64(1)] = np.uint64(0)
