"""Columns as the bytes of Parquet pages: the encodings, compiled.

In: arrays of a page. Out: bytes in a buffer, after the encodings of the Parquet format:
- RLE / bit-packed hybrid, for dictionary indices and definition levels;
- DELTA_BINARY_PACKED, for integers: blocks of 128 differences, each 32 as wide as they need;
- PLAIN byte arrays, for text.

A buffer has SLACK bytes more than what is written to it: words are stored whole.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from terascope.connectors.packets.words import store64
from terascope.kernels.columns.arrays import Bytes, Codes, Ints
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output

SLACK: Final = 64
BLOCK: Final = 128
MINIBLOCK: Final = 32


@inlined
def put_varint(out: Bytes, at: int, value: np.uint64) -> int:
    """Seven bits a byte, the lowest first (ULEB128)."""
    while value >= np.uint64(128):
        out[at] = np.uint8(value & np.uint64(127)) | np.uint8(128)
        value >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@inlined
def put_zigzag(out: Bytes, at: int, value: np.int64) -> int:
    return put_varint(out, at, np.uint64((value << 1) ^ (value >> 63)))


@inlined
def width_of(most: np.uint64) -> int:
    """Bits that hold every value up to `most`."""
    width = 0
    while most != np.uint64(0):
        most >>= np.uint64(1)
        width += 1
    return width


@compiled_for(
    column(np.int32, layout="A"), output(np.int32), output(np.int32), output(np.int32), INTEGER
)
def number_codes(
    codes: Codes, indices: Codes, numbers: Codes, used: Codes, count: int
) -> tuple[int, int]:
    """Codes as their numbers in the dictionary of a chunk; new ones get the next number, NULLs
    (code 0) are left out.

    `used` is the code of each number. Returns how many numbers and how many indices there are then.
    """
    present = np.uint64(0)
    for i in range(len(codes)):
        code = np.uint32(codes[i])
        number = numbers[code]
        if number < 0:
            if code == 0:
                continue
            number = np.int32(count)
            numbers[code] = number
            used[count] = codes[i]
            count += 1
        indices[present] = number
        present += np.uint64(1)
    return count, int(present)


@inlined
def put_bits(
    out: Bytes, place: int, numbers: Ints | Codes, begin: int, end: int, least: int, width: int
) -> int:
    """Bit-packed differences of some numbers from the least; the place of the last word."""
    word = np.uint64(0)
    filled = 0
    for k in range(begin, end):
        value = np.uint64(numbers[k] - least)
        word |= value << np.uint64(filled)
        filled += width
        if filled >= 64:
            store64(out, place, int(word))
            place += 8
            filled -= 64
            word = value >> np.uint64(width - filled) if filled > 0 else np.uint64(0)
    store64(out, place, int(word))
    return place


@compiled_for(output(np.uint8), column(np.int32), INTEGER)
def put_indices(out: Bytes, indices: Codes, width: int) -> int:
    """A page of dictionary indices: their width, then one bit-packed run, or one repeated value.

    A run has a multiple of eight; those after the last mean nothing.
    """
    out[0] = np.uint8(width)
    count = len(indices)
    first = indices[0]
    differs = 0
    for index in indices:
        differs |= index ^ first
    if differs == 0:
        at = put_varint(out, 1, np.uint64(count << 1))
        store64(out, at, int(first))
        return at + (width + 7) // 8
    groups = (count + 7) // 8
    at = put_varint(out, 1, np.uint64(groups << 1 | 1))
    store64(out, put_bits(out, at, indices, 0, count, 0, width) + 8, 0)
    return at + groups * width


def deltas_room(count: int) -> int:
    """Bytes that `put_deltas` may need: a block has its least difference, widths, and the rest."""
    return (count // BLOCK + 1) * (8 * BLOCK + 16) + SLACK


@compiled_for(output(np.uint8), column(np.int64, layout="A"))
def put_deltas(out: Bytes, values: Ints) -> int:
    """Integers as DELTA_BINARY_PACKED. Differences wrap around, and so does adding them up."""
    at = put_varint(out, 0, np.uint64(BLOCK))
    at = put_varint(out, at, np.uint64(BLOCK // MINIBLOCK))
    count = len(values)
    at = put_varint(out, at, np.uint64(count))
    before = values[0] if count else np.int64(0)
    at = put_zigzag(out, at, before)
    deltas = np.empty(BLOCK, np.int64)
    start = 1
    while start < count:
        some = min(BLOCK, count - start)
        for k in range(some):
            value = values[start + k]
            deltas[k] = value - before
            before = value
        least = deltas[0]
        for k in range(1, some):
            least = min(least, deltas[k])
        for k in range(some, BLOCK):
            deltas[k] = least
        at = put_zigzag(out, at, least)
        widths = at
        at += BLOCK // MINIBLOCK
        for mini in range(BLOCK // MINIBLOCK):
            base = mini * MINIBLOCK
            most = np.uint64(0)
            for k in range(base, base + MINIBLOCK):
                most |= np.uint64(deltas[k] - least)
            width = width_of(most) if base < some else 0
            out[widths + mini] = np.uint8(width)
            if width > 0:
                put_bits(out, at, deltas, base, base + MINIBLOCK, least, width)
                at += width * MINIBLOCK // 8
        start += BLOCK
    return at


@compiled_for(output(np.uint8), column(np.int32), column(np.uint8))
def put_byte_arrays(out: Bytes, ends: Codes, content: Bytes) -> None:
    """Runs of bytes, each after its length."""
    at = 0
    for i in range(len(ends) - 1):
        size = ends[i + 1] - ends[i]
        for k in range(4):
            out[at + k] = np.uint8((size >> (8 * k)) & 255)
        at += 4
        for k in range(ends[i], ends[i + 1]):
            out[at] = content[k]
            at += 1
