"""Exact tables of identifiers and weights, of many states in one arena: parts of kernels.

In: keys and weights. Out: tables that find a key, add to it, and grow. A table of up to eight pairs
is a list that is scanned; a larger one is a hash table that is at most three quarters full. A pair
is two words of the arena, key and weight; an empty place has the weight 0. A state is described by
one word (terascope.sketches.pair_blocks.Metas); the size of its block is that of its pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from terascope.hashing import GOLDEN
from terascope.machine_code import inlined
from terascope.sketches.hitter_ids import Words
from terascope.sketches.hitter_layout import WEIGHT_MAX
from terascope.sketches.pair_blocks import (
    FOUND,
    NEW,
    NO_PLACE,
    SCANNED,
    Metas,
    allocate,
    meta_of,
    release,
    size_of,
)


def size_for(pairs: int) -> int:
    """The logarithm of the size of a table that holds so many pairs."""
    size = 1
    while pairs > (1 << size if size <= SCANNED else 3 << size >> 2):
        size += 1
    return size


@inlined
def plus(left: Any, right: Any) -> Any:
    """The sum of two weights, or the largest weight there is."""
    return min(left, WEIGHT_MAX - right) + right


@inlined
def is_full(size: Any, count: Any) -> bool:
    return bool(count >= (1 << size if size <= SCANNED else 3 << size >> 2))


@inlined
def slots_in_table(meta: Any) -> Any:
    """The number of places of a table that may hold pairs."""
    size = size_of(meta)
    return np.int64(1) << size if size > SCANNED else meta & 0xFFFF


@inlined
def put_new(arena: Words, at: Any, size: Any, count: Any, key: Any, weight: Any) -> None:
    """Put a pair whose key is not there into a table that is not full."""
    base = np.uint64(at)
    slot = np.uint64(count)
    if size > SCANNED:
        mask = (np.uint64(1) << np.uint64(size)) - np.uint64(1)
        slot = (np.uint64(key) * np.uint64(GOLDEN)) >> (np.uint64(64) - np.uint64(size))
        while arena[base + np.uint64(2) * slot + np.uint64(1)] != 0:
            slot = (slot + np.uint64(1)) & mask
    arena[base + np.uint64(2) * slot] = np.uint64(key)
    arena[base + np.uint64(2) * slot + np.uint64(1)] = np.uint64(weight)


@inlined
def add_found(arena: Words, meta: Any, key: Any, weight: Any) -> bool:
    """Add to the pair of a key, if there is one."""
    base, size, count = np.uint64(meta >> 24), size_of(meta), meta & 0xFFFF
    wanted = np.uint64(key)
    if size <= SCANNED:
        for k in range(np.uint64(count)):
            place = base + np.uint64(2) * k
            if arena[place] == wanted:
                held = np.int64(arena[place + np.uint64(1)])
                arena[place + np.uint64(1)] = np.uint64(plus(held, weight))
                return True
        return False
    mask = (np.uint64(1) << np.uint64(size)) - np.uint64(1)
    slot = (wanted * np.uint64(GOLDEN)) >> (np.uint64(64) - np.uint64(size))
    while True:
        place = base + np.uint64(2) * slot
        held = np.int64(arena[place + np.uint64(1)])
        if held == 0:
            return False
        if arena[place] == wanted:
            arena[place + np.uint64(1)] = np.uint64(plus(held, weight))
            return True
        slot = (slot + np.uint64(1)) & mask


@inlined
def add_pair(
    metas: Metas,
    arena: Words,
    places: NDArray[np.int64],
    number: Any,
    key: Any,
    weight: Any,
    most: Any,
) -> Any:
    """Add a weight to a key of a state: FOUND, NEW, or NO_PLACE when there are `most` keys already.
    The arena has room for one block more.
    """
    meta = metas[number]
    at, size, count = meta >> 24, size_of(meta), meta & 0xFFFF
    if meta != 0 and add_found(arena, meta, key, weight):
        return FOUND
    if count >= most:
        return NO_PLACE
    if meta == 0 or is_full(size, count):
        grown = size + 1
        block = allocate(arena, places, grown + 1)
        for k in range(np.uint64(2) << np.uint64(grown)):
            arena[np.uint64(block) + k] = np.uint64(0)
        if meta != 0:
            filled = 0
            for k in range(np.uint64(slots_in_table(meta))):
                place = np.uint64(at) + np.uint64(2) * k
                held = np.int64(arena[place + np.uint64(1)])
                if held != 0:
                    put_new(arena, block, grown, filled, np.int64(arena[place]), held)
                    filled += 1
            release(arena, places, at, size + 1)
        at, size = block, grown
    put_new(arena, at, size, count, key, weight)
    metas[number] = meta_of(at, size, count + 1)
    return NEW
