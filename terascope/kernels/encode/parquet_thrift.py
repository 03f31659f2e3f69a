"""The headers of a Parquet file: Thrift's compact protocol, as much of it as Parquet needs.

In: what pages, column chunks and the file hold. Out: bytes. The structures and their numbers are
those of parquet.thrift, version 2 of the format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

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


# ---- the protocol --------------------------------------------------------------------------------


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
