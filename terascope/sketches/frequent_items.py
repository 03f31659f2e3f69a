"""The frequent-items sketch of Apache DataSketches, as an alternative to Count-Min.

In: a table of pairs (terascope.sketches.pair_tables) that has as many keys as a state may keep.
Out: the same table after a purge. The median of all weights is subtracted from every weight, and
pairs that have nothing left are dropped (Misra and Gries; Anderson and others, "A high-performance
algorithm for identifying frequent items in data streams"). The sum of all medians is the most that
any identifier, kept or not, may be short of, in every case and not only probably. States are merged
by adding their pairs and their sums of medians.

`data_sketches_bytes` gives the bytes of the library's own sketch of integers, which are also the
bytes of the sketch that Spark's approx_top_k functions keep.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import inlined
from terascope.sketches.hitter_ids import Words
from terascope.sketches.pair_blocks import Metas, meta_of, size_of
from terascope.sketches.pair_tables import put_new, slots_in_table

CAPACITY: Final = 384
"""Pairs that a state keeps: three quarters of a table of 512, which takes 8 KB."""

FAMILY: Final = 10
SERIAL_VERSION: Final = 1
LOAD: Final = 0.75


@inlined
def purge(metas: Metas, arena: Words, number: Any) -> Any:
    """Subtract the median of the weights of a state; the median."""
    meta = metas[number]
    base, size, count = np.uint64(meta >> 24), size_of(meta), meta & 0xFFFF
    keys = np.empty(count, np.int64)
    weights = np.empty(count, np.int64)
    found = 0
    for k in range(np.uint64(slots_in_table(meta))):
        place = base + np.uint64(2) * k
        held = np.int64(arena[place + np.uint64(1)])
        if held != 0:
            keys[found] = np.int64(arena[place])
            weights[found] = held
            found += 1
    median = np.sort(weights)[count // 2]
    for k in range(np.uint64(2) << np.uint64(size)):
        arena[base + k] = np.uint64(0)
    kept = 0
    for k in range(count):
        if weights[k] > median:
            put_new(arena, np.int64(base), size, kept, keys[k], weights[k] - median)
            kept += 1
    metas[number] = meta_of(meta >> 24, size, kept)
    return median


def data_sketches_bytes(
    items: Sequence[int], weights: NDArray[np.int64], offset: int, total: int, capacity: int
) -> bytes:
    """The serialised sketch of 64-bit integers: four words of preamble, weights, items."""
    most = max(3, int(np.ceil(np.log2(capacity / LOAD))))
    now = max(3, int(np.ceil(np.log2(max(1, len(items)) / LOAD))))
    if not total:
        return struct.pack("<BBBBBBH", 1, SERIAL_VERSION, FAMILY, most, now, 5, 0)
    head = struct.pack("<BBBBBBH", 4, SERIAL_VERSION, FAMILY, most, now, 0, 0)
    head += struct.pack("<IIqq", len(items), 0, total, offset)
    return head + weights.astype("<i8").tobytes() + np.array(items, "<i8").tobytes()
