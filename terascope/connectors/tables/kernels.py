"""Compiled loops over bytes that the text formats share.

In: a block of bytes and where each field of a column lies in it.
Out: the fields packed as one text column, and integers or IPv4 addresses parsed from such a column.
numpy and Arrow have no operation for these; each loop is one pass without a Python object per row.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from terascope.machine_code import compiled

Bytes: TypeAlias = npt.NDArray[np.uint8]
Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]

PLAIN: Final = 0
DOUBLED_QUOTES: Final = 1
JSON_ESCAPES: Final = 2

PARSED: Final = 0
EMPTY: Final = 1
NOT_INTEGER: Final = 2
OUT_OF_RANGE: Final = 3
NEGATIVE: Final = 4

LF: Final = 10
CR: Final = 13
_BACKSLASH: Final = 92

HEX_DIGITS: Final = np.full(256, -1)
"""The value of each character that is a hexadecimal digit; -1 of the others."""
HEX_DIGITS[list(b"0123456789abcdef")] = HEX_DIGITS[list(b"0123456789ABCDEF")] = range(16)
ESCAPED: Final = np.arange(256).astype(np.uint8)
"""The character for which each character behind a backslash stands in JSON."""
ESCAPED[list(b"bfnrt")] = list(b"\b\f\n\r\t")


@compiled
def _code_unit(data: Bytes, i: int) -> int:
    """The number that the four hexadecimal digits at `i` write."""
    unit = 0
    for k in range(4):
        unit = unit * 16 + HEX_DIGITS[data[i + k]]
    return unit


@compiled
def _put_utf8(out: Bytes, o: int, point: int) -> int:
    """Write one code point; where the next one goes."""
    if point < 0x80:
        out[o] = point
        return o + 1
    size = 2 if point < 0x800 else 3 if point < 0x10000 else 4
    out[o] = (0xF00 >> size) & 0xFF | (point >> (6 * (size - 1)))
    for k in range(1, size):
        out[o + k] = 0x80 | ((point >> (6 * (size - 1 - k))) & 63)
    return o + size


@compiled
def unescape_json(data: Bytes, start: int, end: int, out: Bytes, o: int) -> int:
    """Copy the inside of a JSON string, escapes undone; half a surrogate pair becomes U+FFFD."""
    i = start
    while i < end:
        c = data[i]
        if c != _BACKSLASH:
            out[o] = c
            o += 1
            i += 1
            continue
        c = data[i + 1]
        i += 2
        if c == 117:  # u
            point = _code_unit(data, i)
            i += 4
            if 0xD800 <= point < 0xDC00 and i + 6 <= end and data[i] == 92 and data[i + 1] == 117:
                low = _code_unit(data, i + 2)
                if 0xDC00 <= low < 0xE000:
                    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
                    i += 6
            if 0xD800 <= point < 0xE000:
                point = 0xFFFD
            o = _put_utf8(out, o, point)
            continue
        out[o] = ESCAPED[c]
        o += 1
    return o


@compiled
def pack_fields(
    data: Bytes, starts: Int64s, ends: Int64s, modes: Bytes, rows: Int64s, quote: int
) -> tuple[Bytes, Int32s]:
    """The fields of the given rows behind one another, undone of quoting, with their offsets.

    A start of -1 is a field that is not there; it packs as nothing.
    """
    size = 0
    for k in range(rows.size):
        size += ends[rows[k]] - starts[rows[k]]
    out = np.empty(size, np.uint8)
    offsets = np.empty(rows.size + 1, np.int32)
    offsets[0] = 0
    o = 0
    for k in range(rows.size):
        row = rows[k]
        start, end, mode = starts[row], ends[row], modes[row]
        if mode == JSON_ESCAPES:
            o = unescape_json(data, start, end, out, o)
        else:
            i = start
            while i < end:
                c = data[i]
                out[o] = c
                o += 1
                i += 1
                if mode == DOUBLED_QUOTES and c == quote:
                    i += 1
        offsets[k + 1] = o
    return out[:o], offsets


@compiled
def parse_integers(data: Bytes, offsets: Int32s, values: Int64s, states: Bytes, wide: bool) -> None:
    """Decimal or 0x hexadecimal integers, signed, blanks around them allowed. If `wide`, unsigned
    ones of 64 bits, as WIDE columns hold them (terascope.types).
    """
    signed_most = np.uint64(9223372036854775807)
    most = np.uint64(18446744073709551615) if wide else signed_most
    flipped = np.uint64(9223372036854775808) if wide else np.uint64(0)
    for row in range(values.size):
        i, end = offsets[row], offsets[row + 1]
        values[row] = 0
        while i < end and (data[i] == 32 or data[i] == 9):
            i += 1
        while end > i and (data[end - 1] == 32 or data[end - 1] == 9):
            end -= 1
        if i == end:
            states[row] = EMPTY
            continue
        negative = data[i] == 45
        if negative or data[i] == 43:
            i += 1
        base = 10
        if i + 2 < end and data[i] == 48 and (data[i + 1] == 120 or data[i + 1] == 88):
            base = 16
            i += 2
        state = PARSED if i < end else NOT_INTEGER
        total = np.uint64(0)
        limit = signed_most + np.uint64(1) if negative else most
        while i < end:
            digit = HEX_DIGITS[data[i]]
            if digit < 0 or digit >= base:
                state = NOT_INTEGER
                break
            if state == PARSED:
                if total > (limit - np.uint64(digit)) // np.uint64(base):
                    state = OUT_OF_RANGE
                else:
                    total = total * np.uint64(base) + np.uint64(digit)
            i += 1
        if wide and negative and (state == OUT_OF_RANGE or total != np.uint64(0)):
            state = state if state == NOT_INTEGER else NEGATIVE
        states[row] = state
        if state == PARSED:
            # Negating the unsigned number wraps to the right bits, also for the smallest one.
            values[row] = np.int64((np.uint64(0) - total if negative else total) ^ flipped)


@compiled
def parse_ipv4(data: Bytes, offsets: Int32s, packed: Bytes, parsed: Bytes) -> None:
    """Dotted quads to version byte and address; the rest is left for a full parser."""
    for row in range(parsed.size):
        i, end = offsets[row], offsets[row + 1]
        parsed[row] = 0
        for part in range(4):
            digits = 0
            value = 0
            first = i
            while i < end and digits < 4 and 48 <= data[i] <= 57:
                value = value * 10 + (data[i] - 48)
                digits += 1
                i += 1
            if digits == 0 or value > 255 or (digits > 1 and data[first] == 48):
                break
            packed[row * 5 + 1 + part] = value
            if part < 3:
                if i >= end or data[i] != 46:
                    break
                i += 1
            elif i == end:
                packed[row * 5] = 4
                parsed[row] = 1
