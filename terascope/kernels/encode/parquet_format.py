"""The bytes of a Parquet file: headers in Thrift's compact protocol, and the encodings, compiled.

In: what pages, column chunks and the file hold; arrays of a page. Out: bytes. The structures and
their numbers are those of parquet.thrift, version 2 of the format. The encodings:
- RLE / bit-packed hybrid, for dictionary indices and definition levels;
- DELTA_BINARY_PACKED, for integers: blocks of 128 differences, each 32 as wide as they need;
- PLAIN byte arrays, for text.

A buffer has SLACK bytes more than what is written to it: words are stored whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from terascope.connectors.packets.words import store64
from terascope.kernels.columns.arrays import Bytes, Codes, Ints
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.types import Type
from terascope.version import VERSION

BOOLEAN, INT64, DOUBLE, BYTE_ARRAY = 0, 2, 5, 6
PLAIN, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY = 0, 3, 5, 8
DATA_PAGE, DICTIONARY_PAGE = 0, 2
OPTIONAL: Final = 1
UTF8: Final = 0
UINT_64: Final = 14
UNCOMPRESSED: Final = 0

TRUE, FALSE, BYTE, I32, I64, BINARY, LIST, STRUCT = 1, 2, 3, 5, 6, 8, 9, 12
Member: TypeAlias = tuple[int, int, bytes]
"""The number of a member, its Thrift type, and its content."""


@dataclass(frozen=True)
class Chunk:
    """A column of a row group, as it stands in the file."""

    physical: int
    name: str
    encodings: tuple[int, ...]
    values: int
    bytes: int
    first_data_page: int
    dictionary_page: int | None
    bounds: tuple[int, int] | None = None
    """The smallest and the largest integer, where that is known."""


@dataclass(frozen=True)
class RowGroup:
    chunks: tuple[Chunk, ...]
    rows: int


def physical_type(type: Type) -> int:
    if type is Type.BOOL:
        return BOOLEAN
    if type.is_whole:
        return INT64
    return DOUBLE if type is Type.FLOAT else BYTE_ARRAY


def data_page_header(size: int, values: int, encoding: int) -> bytes:
    inner = data_page_values(values, encoding)
    return struct(i32(1, DATA_PAGE), i32(2, size), i32(3, size), (5, STRUCT, inner))


@lru_cache
def data_page_values(values: int, encoding: int) -> bytes:
    """The same for most pages of a file."""
    return struct(i32(1, values), i32(2, encoding), i32(3, RLE), i32(4, RLE))


def dictionary_page_header(size: int, values: int) -> bytes:
    inner = struct(i32(1, values), i32(2, PLAIN), (3, FALSE, b""))
    return struct(i32(1, DICTIONARY_PAGE), i32(2, size), i32(3, size), (7, STRUCT, inner))


def file_metadata(columns: Sequence[tuple[str, Type, bool]], groups: Sequence[RowGroup]) -> bytes:
    """The footer; a column is its name, its type, and whether it is text."""
    schema = [struct(text(4, "schema"), i32(5, len(columns)))]
    schema += [schema_element(name, type, is_text) for name, type, is_text in columns]
    return struct(
        i32(1, 2),
        structs(2, schema),
        i64(3, sum(group.rows for group in groups)),
        structs(4, [row_group(group) for group in groups]),
        text(6, f"terascope version {VERSION}"),
        # Bounds are in the order of the type: without this word readers pass over them.
        structs(7, [struct((1, STRUCT, struct()))] * len(columns)),
    )


def schema_element(name: str, type: Type, is_text: bool) -> bytes:
    members = [i32(1, physical_type(type)), i32(3, OPTIONAL), text(4, name)]
    if type is Type.WIDE:
        unsigned = struct((1, BYTE, bytes([64])), (2, FALSE, b""))
        members += [i32(6, UINT_64), (10, STRUCT, struct((10, STRUCT, unsigned)))]
    if is_text:
        members += [i32(6, UTF8), (10, STRUCT, struct((1, STRUCT, struct())))]
    return struct(*members)


def row_group(group: RowGroup) -> bytes:
    chunks = [column_chunk(chunk) for chunk in group.chunks]
    size = sum(chunk.bytes for chunk in group.chunks)
    return struct(structs(1, chunks), i64(2, size), i64(3, group.rows))


def column_chunk(chunk: Chunk) -> bytes:
    name = chunk.name.encode()
    members = [
        i32(1, chunk.physical),
        (2, LIST, list_head(len(chunk.encodings), I32) + b"".join(map(zigzag, chunk.encodings))),
        (3, LIST, list_head(1, BINARY) + varint(len(name)) + name),
        i32(4, UNCOMPRESSED),
        i64(5, chunk.values),
        i64(6, chunk.bytes),
        i64(7, chunk.bytes),
        i64(9, chunk.first_data_page),
    ]
    if chunk.dictionary_page is not None:
        members.append(i64(11, chunk.dictionary_page))
    if chunk.bounds is not None:
        least, most = (bound.to_bytes(8, "little", signed=True) for bound in chunk.bounds)
        members.append((12, STRUCT, struct(binary(5, most), binary(6, least))))
    # A chunk's own offset is no longer used; 0 says so.
    return struct(i64(2, 0), (3, STRUCT, struct(*members)))


# ---- the protocol -------------------------------------------------------------------------------


def struct(*members: Member) -> bytes:
    """Members in the order of their numbers, each written as its distance from the one before."""
    parts: list[bytes] = []
    last = 0
    for number, type, body in members:
        parts.append(bytes([(number - last) << 4 | type]))
        parts.append(body)
        last = number
    return b"".join(parts) + b"\x00"


def i32(number: int, value: int) -> Member:
    return number, I32, zigzag(value)


def i64(number: int, value: int) -> Member:
    return number, I64, zigzag(value)


def text(number: int, value: str) -> Member:
    return binary(number, value.encode())


def binary(number: int, value: bytes) -> Member:
    return number, BINARY, varint(len(value)) + value


def structs(number: int, items: Sequence[bytes]) -> Member:
    return number, LIST, list_head(len(items), STRUCT) + b"".join(items)


def list_head(count: int, type: int) -> bytes:
    return bytes([count << 4 | type]) if count < 15 else bytes([0xF0 | type]) + varint(count)


def zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def varint(value: int) -> bytes:
    given = bytearray()
    while value >= 128:
        given.append(value & 127 | 128)
        value >>= 7
    given.append(value)
    return bytes(given)


# ---- encodings -----------------------------------------------------------------------------------

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
    at = np.uint64(0)
    for i in range(np.uint64(len(ends) - 1)):
        first = np.uint64(ends[i])
        size = np.uint64(ends[i + np.uint64(1)]) - first
        for k in range(np.uint64(4)):
            out[at + k] = np.uint8(size >> np.uint64(8) * k & np.uint64(255))
        at += np.uint64(4)
        for k in range(size):  # unsigned indices: a run is copied many bytes at a time
            out[at + k] = content[first + k]
        at += size
