"""Quantile summaries as bytes.

In: values or entries. Out: packed states, and their entries again; damaged bytes are noticed.

    b"TQ", version 1, flags, eps as float64, content

Bit 0 of the flags says that the values are FLOATs. Bits 1 and 2 say what the content is: 0, values
in no order, each in 1, 2, 4 or 8 bytes, as bits 3 and 4 say; 1, exact entries; 2, entries with
bounds. Entries begin with their number. Each has its value, as the difference to the one before
(the first one with its sign in the lowest bit), then c, and with bounds h and d
(terascope.sketches.quantile_entries). All these numbers take 7 bits of a byte, the lowest first;
the highest bit says that more follow. So a packet length with its count takes 2 or 3 bytes.

A FLOAT is kept as the integer of its bits, changed so that integers have the order of the numbers:
the other bits of negative numbers are turned around, -0.0 is 0.0, and every NaN is the largest.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from terascope.machine_code import column, compiled_for, inlined, output
from terascope.sketches.quantile_entries import ENTRY, is_exact

HEADER: Final = 12
VERSION: Final = 1
FLOATS: Final = 1
BUFFER, EXACT, SUMMARY = 0, 1, 2
WIDEST: Final = 3 << 3
"""Flags of a BUFFER of values of 8 bytes."""
_NAN: Final = 0x7FF8000000000000
_OTHERS: Final = 0x7FFFFFFFFFFFFFFF
_MOST: Final = 1 << 61
"""More values than this are taken for damage."""


# ---- FLOATs as integers --------------------------------------------------------------------------


@compiled_for(column(np.float64), column(np.int64), output(np.int64))
def keys_of_floats(values: Any, bits: Any, keys: Any) -> None:
    """`bits` is the same memory as `values`, as integers."""
    for i in range(len(values)):
        value = values[i]
        if value != value:
            keys[i] = _NAN
        elif value == 0.0:
            keys[i] = 0
        elif bits[i] < 0:
            keys[i] = bits[i] ^ _OTHERS
        else:
            keys[i] = bits[i]


def floats_of_keys(keys: Any) -> Any:
    return np.where(keys < 0, keys ^ np.int64(_OTHERS), keys).astype(np.int64).view(np.float64)


# ---- writing -------------------------------------------------------------------------------------


@inlined
def buffer_bound(count: Any) -> Any:
    """The most bytes of a state of so many values."""
    return HEADER + 8 * count


@inlined
def entries_bound(count: Any) -> Any:
    """The most bytes of a state of so many entries."""
    return HEADER + 10 + 40 * count


@inlined
def put_header(out: Any, at: Any, flags: Any, eps: Any) -> Any:
    """`eps` has the eight bytes of it."""
    out[at] = np.uint8(84)  # T
    out[at + 1] = np.uint8(81)  # Q
    out[at + 2] = np.uint8(VERSION)
    out[at + 3] = np.uint8(flags)
    for k in range(8):
        out[at + 4 + k] = eps[k]
    return at + HEADER


@inlined
def put_buffer(
    out: Any, at: Any, floats: Any, eps: Any, values: Any, start: Any, count: Any
) -> Any:
    """Write a state of values; return where it ends. There is room for `buffer_bound`."""
    used = np.int64(0)
    for i in range(count):
        value = values[start + i]
        used |= value ^ (value >> np.int64(63))
    code = 0
    if used >= 1 << 31:
        code = 3
    elif used >= 1 << 15:
        code = 2
    elif used >= 1 << 7:
        code = 1
    at = put_header(out, at, floats | (code << 3), eps)
    if code == 0:
        return _put_values(out, at, values, start, count, 1)
    if code == 1:
        return _put_values(out, at, values, start, count, 2)
    if code == 2:
        return _put_values(out, at, values, start, count, 4)
    return _put_values(out, at, values, start, count, 8)


@inlined
def _put_values(out: Any, at: Any, values: Any, start: Any, count: Any, width: Any) -> Any:
    """A known width lets the compiler write a value at once."""
    for i in range(count):
        value = values[start + i]
        for k in range(width):
            out[at + k] = np.uint8(value >> (8 * k))
        at += width
    return at


@inlined
def _put_number(out: Any, at: Any, number: Any) -> Any:
    while number >= np.uint64(128):
        out[at] = np.uint8(number) | np.uint8(128)
        number >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(number)
    return at + 1


@inlined
def put_entries(out: Any, at: Any, floats: Any, eps: Any, entries: Any, count: Any) -> Any:
    """Write a state of entries; return where it ends. There is room for `entries_bound`."""
    exact = is_exact(entries, count)
    at = put_header(out, at, floats | ((EXACT if exact else SUMMARY) << 1), eps)
    at = _put_number(out, at, np.uint64(count))
    before = np.int64(0)
    for i in range(count):
        value = entries[i * ENTRY]
        if i == 0:
            sign = value >> np.int64(63)
            at = _put_number(out, at, np.uint64((value << np.int64(1)) ^ sign))
        else:
            at = _put_number(out, at, np.uint64(value) - np.uint64(before))
        before = value
        at = _put_number(out, at, np.uint64(entries[i * ENTRY + 1]))
        if not exact:
            at = _put_number(out, at, np.uint64(entries[i * ENTRY + 2]))
            at = _put_number(out, at, np.uint64(entries[i * ENTRY + 3]))
    return at


# ---- reading -------------------------------------------------------------------------------------


@inlined
def content_of(data: Any, start: Any, end: Any) -> Any:
    """What a state has: BUFFER, EXACT or SUMMARY; -1 when the bytes begin as no state does."""
    if end - start < HEADER or data[start] != 84 or data[start + 1] != 81:
        return -1
    flags = np.int64(data[start + 3])
    content = (flags >> 1) & 3
    if data[start + 2] != VERSION or flags >> 5 or content == 3:
        return -1
    if content != BUFFER and flags >> 3:
        return -1
    if content == BUFFER and (end - start - HEADER) & ((1 << (flags >> 3)) - 1):
        return -1
    return content


@inlined
def get_eps(data: Any, start: Any, eps: Any, eps_bytes: Any) -> Any:
    """The eps of a state; `eps` and `eps_bytes` are the same memory. Not a number between 0 and 0.5
    (0 not included) when the bytes are damaged.
    """
    for k in range(8):
        eps_bytes[k] = data[start + 4 + k]
    return eps[0]


@inlined
def get_buffer(data: Any, start: Any, end: Any, values: Any) -> Any:
    """Read the values of a BUFFER; return how many."""
    code = np.int64(data[start + 3]) >> 3
    at = start + HEADER
    count = (end - at) >> code
    if code == 0:
        _get_values(data, at, values, count, 1)
    elif code == 1:
        _get_values(data, at, values, count, 2)
    elif code == 2:
        _get_values(data, at, values, count, 4)
    else:
        _get_values(data, at, values, count, 8)
    return count


@inlined
def _get_values(data: Any, at: Any, values: Any, count: Any, width: Any) -> None:
    unused = np.int64(64 - 8 * width)
    for i in range(count):
        word = np.uint64(0)
        for k in range(width):
            word |= np.uint64(data[at + k]) << np.uint64(8 * k)
        values[i] = (np.int64(word) << unused) >> unused
        at += width


@inlined
def _get_number(data: Any, at: Any, end: Any) -> Any:
    """A number and where it ends; -1 when the bytes are cut short or no number."""
    number = np.uint64(0)
    shift = np.uint64(0)
    while at < end and shift < np.uint64(64):
        byte = np.uint64(data[at])
        number |= (byte & np.uint64(127)) << shift
        at += 1
        if byte < np.uint64(128):
            return number, at
        shift += np.uint64(7)
    return np.uint64(0), np.int64(-1)


@inlined
def get_entries(data: Any, start: Any, end: Any, entries: Any) -> Any:
    """Read the entries of a state; return how many, -1 when they are damaged. `entries` has room
    for as many as half of the bytes.
    """
    bounds = (np.int64(data[start + 3]) >> 1) & 3 == SUMMARY
    number, at = _get_number(data, start + HEADER, end)
    if at < 0 or number == 0 or number > np.uint64((end - at) // 2):
        return np.int64(-1)
    count = np.int64(number)
    n = most_delta = np.int64(0)
    before = np.int64(0)
    for i in range(count):
        difference, at = _get_number(data, at, end)
        if at < 0:
            return np.int64(-1)
        if i == 0:
            sign = np.int64(difference & np.uint64(1))
            value = np.int64(difference >> np.uint64(1)) ^ -sign
        else:
            value = np.int64(np.uint64(before) + difference)
            if value <= before:
                return np.int64(-1)
        before = value
        place = i * ENTRY
        entries[place] = value
        entries[place + 2] = 0
        entries[place + 3] = 0
        for part in range(1, 4 if bounds else 2):
            number, at = _get_number(data, at, end)
            if at < 0 or number > np.uint64(_MOST):
                return np.int64(-1)
            entries[place + part] = np.int64(number)
        n += entries[place + 1] + entries[place + 2]
        most_delta = max(most_delta, entries[place + 3])
        if entries[place + 1] == 0 or n > _MOST:
            return np.int64(-1)
    last = (count - 1) * ENTRY
    if at != end or most_delta > n or entries[2] or entries[3] or entries[last + 3]:
        return np.int64(-1)
    return count
