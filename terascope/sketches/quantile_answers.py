"""Percentiles of whole columns of quantile states.

In: a column of packed states (terascope.sketches.quantile_bytes). Out: the same percentile of each,
as terascope.sketches.quantile_reading computes it of one; and the states that have a value. KLL
sketches are read one by one.

The values of a BUFFER are all known, and the one at a rank is selected. Of entries, the first one
is taken whose rank is wrong by the least.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.machine_code import BOOLEAN, REAL, column, compiled_for, inlined, output
from terascope.sketches.kll import quantiles_of
from terascope.sketches.packed_form import word_at
from terascope.sketches.quantile_bytes import (
    BUFFER,
    FLOATS,
    HEADER,
    content_of,
    get_buffer,
    get_entries,
)
from terascope.sketches.quantile_entries import ENTRY
from terascope.sketches.selection import room_for_parts, selected
from terascope.sketches.state_values import FOUND, NOTHING, REST, closed, longest, opened

LARGEST_EPS: Final = 0x3FE0000000000000
"""The bits of 0.5. Those of positive FLOATs have the order of the numbers."""
OTHER_BITS: Final = 0x7FFFFFFFFFFFFFFF


def percentile_column(packed: pa.Array, percent: float, whole: bool = False) -> pa.Array | None:
    """The percentile of each state as a FLOAT, or as an integer; NULL where the state is NULL or
    has no value. None: not all are integers, as is asked for.

    Raises:
        ValueError: one of them is no state of approx_quantile.
    """
    offsets, data, marks = opened(packed)
    values = np.zeros(len(marks), np.float64)
    room = longest(offsets) + 1
    raw, entries = np.empty(room, np.int64), np.empty(ENTRY * room, np.int64)
    bits = values.view(np.int64)
    counts = room_for_parts()
    percentiles(offsets, data, percent / 100.0, whole, raw, entries, counts, marks, values, bits)
    if whole:
        return None if (marks == REST).any() else closed(packed, bits, marks, quantiles_of)

    def read(state: bytes) -> float | None:
        found = quantiles_of(state).percentile(percent)
        return None if found is None else float(found)

    return closed(packed, values, marks, read)


def states_with_values(packed: pa.Array) -> pa.Array:
    """The same column, with NULL in place of states that have no value.

    Raises:
        ValueError: one of them is no state of approx_quantile.
    """
    offsets, data, marks = opened(packed)
    entries = np.empty(ENTRY * (longest(offsets) + 1), np.int64)
    mark_values(offsets, data, entries, marks)
    has_value = closed(packed, marks == FOUND, marks, lambda state: quantiles_of(state).count > 0)
    return pc.if_else(has_value, packed, None)


@inlined
def rank_of(share: Any, count: Any) -> Any:
    return max(np.int64(1), np.int64(math.ceil(share * count)))


@inlined
def has_eps(data: Any, start: Any) -> Any:
    """Whether the eps of a state is above 0 and up to 0.5."""
    eps = np.int64(word_at(data, start + 4, 8))
    return 0 < eps <= LARGEST_EPS


@inlined
def nearest(entries: Any, count: Any, share: Any) -> Any:
    """The value of the first entry whose rank is wrong by the least."""
    n = np.int64(0)
    for i in range(count):
        n += entries[i * ENTRY + 1] + entries[i * ENTRY + 2]
    rank = rank_of(share, n)
    best, least = np.int64(0), np.int64(OTHER_BITS)
    upto = np.int64(0)
    for i in range(count):
        at = i * ENTRY
        upto += entries[at + 1] + entries[at + 2]
        above = upto - entries[at + 1] + entries[at + 3] + 1 - rank
        wrong = max(np.int64(0), above, rank - upto)
        if wrong < least:
            best, least = entries[at], wrong
    return best


@compiled_for(
    column(np.int64), column(np.uint8), REAL, BOOLEAN, output(np.int64), output(np.int64),
    output(np.int64), output(np.uint8), output(np.float64), output(np.int64),
)  # fmt: skip
def percentiles(
    offsets: Any, data: Any, share: Any, whole: Any, raw: Any, entries: Any, counts: Any,
    marks: Any, values: Any, bits: Any,
) -> None:  # fmt: skip
    """`raw` and `entries` have room for the longest state; `bits` is the memory of `values`, in
    which integers stand as they are if they are asked for as a whole.
    """
    for i in range(len(marks)):
        if marks[i] != REST:
            continue
        start, end = offsets[i], offsets[i + 1]
        content = content_of(data, start, end)
        is_float = data[start + 3] & FLOATS != 0
        if content < 0 or not has_eps(data, start) or (whole and is_float):
            continue
        if content == BUFFER:
            count = get_buffer(data, start, end, raw)
            if count == 0:
                marks[i] = NOTHING
                continue
            key = selected(raw, count, rank_of(share, count) - 1, counts)
        else:
            count = get_entries(data, start, end, entries)
            if count < 0:
                continue
            key = nearest(entries, count, share)
        marks[i] = FOUND
        if is_float:
            bits[i] = key ^ OTHER_BITS if key < 0 else key
        elif whole:
            bits[i] = key
        else:
            values[i] = np.float64(key)


@compiled_for(column(np.int64), column(np.uint8), output(np.int64), output(np.uint8))
def mark_values(offsets: Any, data: Any, entries: Any, marks: Any) -> None:
    for i in range(len(marks)):
        if marks[i] != REST:
            continue
        start, end = offsets[i], offsets[i + 1]
        content = content_of(data, start, end)
        if content < 0 or not has_eps(data, start):
            continue
        if content == BUFFER:
            marks[i] = FOUND if end > start + HEADER else NOTHING
        elif get_entries(data, start, end, entries) > 0:
            marks[i] = FOUND
