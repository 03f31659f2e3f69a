"""One pass over JSON lines: every line checked against RFC 8259, and where the values of the wanted
keys lie.

In: a block of bytes that begins at a line.
Out: for each line that is not blank its start, end and status, and the span of each wanted
top-level value.

A string's span is its inside, any other value's its text as written, null's and a missing key's is
-1. Of a key that is there twice the last counts. Invalid UTF-8 is found elsewhere, for a whole
block at once.
"""

from __future__ import annotations

import numpy as np

from terascope.connectors.tables import kernels, records
from terascope.connectors.tables.kernels import Bytes, Int32s, Int64s
from terascope.machine_code import compiled

MAX_DEPTH = 1024
_QUOTE, _BACKSLASH, _COLON, _COMMA, _MINUS, _DOT = 34, 92, 58, 44, 45, 46
_BRACE, _UNBRACE, _BRACKET, _UNBRACKET = 123, 125, 91, 93


@compiled
def _skip_blanks(data: Bytes, i: int, end: int) -> int:
    while i < end and (data[i] == 32 or data[i] == 9 or data[i] == 13):
        i += 1
    return i


@compiled
def _string_end(data: Bytes, i: int, end: int) -> int:
    """Behind the closing quote of the string that opens at `i`, or -1."""
    if i >= end or data[i] != _QUOTE:
        return -1
    i += 1
    while i < end:
        c = data[i]
        if c == _QUOTE:
            return i + 1
        if c < 32:
            return -1
        if c == _BACKSLASH:
            i += 1
            if i >= end:
                return -1
            c = data[i]
            if c == 117:  # u
                if i + 4 >= end:
                    return -1
                for k in range(1, 5):
                    if kernels.HEX_DIGITS[data[i + k]] < 0:
                        return -1
                i += 4
            elif c not in (_QUOTE, _BACKSLASH, 47, 98, 102, 110, 114, 116):
                return -1
        i += 1
    return -1


@compiled
def _digits_end(data: Bytes, i: int, end: int) -> int:
    """Behind the digits at `i`, or -1 when there is none."""
    first = i
    while i < end and 48 <= data[i] <= 57:
        i += 1
    return i if i > first else -1


@compiled
def _number_end(data: Bytes, i: int, end: int) -> int:
    if data[i] == _MINUS:
        i += 1
    if i < end and data[i] == 48:
        i += 1
    else:
        i = _digits_end(data, i, end)
    if 0 <= i < end and data[i] == _DOT:
        i = _digits_end(data, i + 1, end)
    if 0 <= i < end and (data[i] == 101 or data[i] == 69):
        i += 1
        if i < end and (data[i] == 43 or data[i] == _MINUS):
            i += 1
        i = _digits_end(data, i, end)
    return i


@compiled
def _word_end(data: Bytes, i: int, end: int) -> int:
    """Behind true, false or null at `i`, or -1."""
    if i + 4 <= end:
        a, b, c, d = data[i], data[i + 1], data[i + 2], data[i + 3]
        if a == 116 and b == 114 and c == 117 and d == 101:
            return i + 4
        if a == 110 and b == 117 and c == 108 and d == 108:
            return i + 4
        if a == 102 and b == 97 and c == 108 and d == 115 and i + 5 <= end and data[i + 4] == 101:
            return i + 5
    return -1


@compiled
def _value_start(data: Bytes, i: int, end: int) -> int:
    """Behind the colon that follows a key, at the value, or -1."""
    i = _skip_blanks(data, i, end)
    if i >= end or data[i] != _COLON:
        return -1
    return _skip_blanks(data, i + 1, end)


@compiled
def _skip_key(data: Bytes, i: int, end: int) -> int:
    """At the value of the key at `i`, or -1."""
    i = _string_end(data, i, end)
    return _value_start(data, i, end) if i >= 0 else -1


@compiled
def _value_end(data: Bytes, i: int, end: int, stack: Bytes) -> int:
    """Behind the value at `i`, or -1 when none is there. `stack` holds the open brackets."""
    depth = 0
    while 0 <= i < end:
        c = data[i]
        if c == _BRACE or c == _BRACKET:
            if depth == stack.size:
                return -1
            stack[depth] = c + 2  # the closing bracket's code, for either kind
            depth += 1
            i = _skip_blanks(data, i + 1, end)
            if i < end and data[i] != c + 2:
                i = _skip_key(data, i, end) if c == _BRACE else i
                continue
        elif c == _QUOTE:
            i = _string_end(data, i, end)
        elif c == _MINUS or 48 <= c <= 57:
            i = _number_end(data, i, end)
        else:
            i = _word_end(data, i, end)
        # Behind a value, or at the bracket that closes an empty object or array.
        while depth > 0 and i >= 0:
            i = _skip_blanks(data, i, end)
            if i >= end:
                return -1
            if data[i] != stack[depth - 1]:
                break
            depth -= 1
            i += 1
        if depth == 0 or i < 0:
            return i
        if data[i] != _COMMA:
            return -1
        i = _skip_blanks(data, i + 1, end)
        i = _skip_key(data, i, end) if stack[depth - 1] == _UNBRACE else i
    return -1


@compiled
def _has_escape(data: Bytes, start: int, end: int) -> bool:
    i = start
    while i < end and data[i] != _BACKSLASH:
        i += 1
    return i < end


@compiled
def _find_key(data: Bytes, start: int, end: int, keys: Bytes, key_offsets: Int32s) -> int:
    """The number of the requested key in data[start:end], or -1."""
    size = end - start
    for slot in range(key_offsets.size - 1):
        first = key_offsets[slot]
        if key_offsets[slot + 1] - first != size:
            continue
        k = 0
        while k < size and data[start + k] == keys[first + k]:
            k += 1
        if k == size:
            return slot
    return -1


@compiled
def _scan_object(
    data: Bytes,
    i: int,
    end: int,
    keys: Bytes,
    key_offsets: Int32s,
    stack: Bytes,
    row: int,
    field_starts: Int64s,
    field_ends: Int64s,
    field_modes: Bytes,
) -> int:
    """The status of the line whose first character is at `i`; fills the row's spans."""
    if data[i] != _BRACE:
        return records.NOT_OBJECT
    i = _skip_blanks(data, i + 1, end)
    more = i < end and data[i] != _UNBRACE
    while more:
        key, key_end = i + 1, _string_end(data, i, end) - 1
        if key_end < 0:
            return records.INVALID_JSON
        if _has_escape(data, key, key_end):
            plain = np.empty(key_end - key, np.uint8)
            size = kernels.unescape_json(data, key, key_end, plain, 0)
            slot = _find_key(plain, 0, size, keys, key_offsets)
        else:
            slot = _find_key(data, key, key_end, keys, key_offsets)
        start = _value_start(data, key_end + 1, end)
        i = _value_end(data, start, end, stack)
        if i < 0:
            return records.INVALID_JSON
        if slot >= 0:
            mode = kernels.PLAIN
            value_start, value_end = start, i
            if data[start] == _QUOTE:
                value_start, value_end = start + 1, i - 1
                if _has_escape(data, value_start, value_end):
                    mode = kernels.JSON_ESCAPES
            elif data[start] == 110:  # null
                value_start, value_end = -1, -1
            field_starts[slot, row] = value_start
            field_ends[slot, row] = value_end
            field_modes[slot, row] = mode
        i = _skip_blanks(data, i, end)
        more = i < end and data[i] == _COMMA
        if more:
            i = _skip_blanks(data, i + 1, end)
    if i >= end or data[i] != _UNBRACE:
        return records.INVALID_JSON
    return records.GOOD if _skip_blanks(data, i + 1, end) == end else records.INVALID_JSON


@compiled
def scan_json(
    max_record: int,
    keys: Bytes,
    key_offsets: Int32s,
    arrays: records.Arrays,
    data: Bytes,
    begin: int,
    final: bool,
) -> tuple[int, int]:
    """Fill the arrays from `begin` on; how many lines, and where the first unscanned one begins."""
    starts, ends, _, status, field_starts, field_ends, field_modes = arrays
    n = data.size
    rows = 0
    line = begin
    stack = np.empty(MAX_DEPTH, np.uint8)
    while line < n and rows < starts.size:
        end = line
        while end < n and data[end] != kernels.LF:
            end += 1
        if end == n and not final:
            break
        i = _skip_blanks(data, line, end)
        if i < end:
            for slot in range(key_offsets.size - 1):
                field_starts[slot, rows] = -1
                field_ends[slot, rows] = -1
                field_modes[slot, rows] = kernels.PLAIN
            if end - line > max_record:
                status[rows] = records.TOO_LONG
            else:
                status[rows] = _scan_object(
                    data, i, end, keys, key_offsets, stack, rows,
                    field_starts, field_ends, field_modes,
                )  # fmt: skip
            starts[rows] = line
            ends[rows] = end
            rows += 1
        line = min(end + 1, n)
    return rows, line
