"""One column of a row group on its way into a Parquet file.

In: columns of a result, a page at a time. Out: the pages' bytes, encoded at once so that little is
held: codes as dictionary indices, numbered anew in the order they occur and never hashed again,
integers as differences, everything else plain. The page of the dictionary is made last, when all
of its values are known.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.kernels.columns.arrays import Codes, Flags, Values, byte_runs
from terascope.kernels.columns.dictionary import NULL_CODE, Dictionary
from terascope.kernels.encode.parquet_format import (
    DELTA_BINARY_PACKED,
    PLAIN,
    RLE,
    RLE_DICTIONARY,
    SLACK,
    Chunk,
    data_page_header,
    deltas_room,
    dictionary_page_header,
    number_codes,
    physical_type,
    put_byte_arrays,
    put_deltas,
    put_indices,
    varint,
)
from terascope.kernels.encode.text import readable
from terascope.kernels.merge.finish import Coded, ConstantColumn, Numbers, ResultColumn
from terascope.types import INT_MIN, Type

Kind: TypeAlias = Literal["constants", "codes", "values"]
NO_INDICES: Final = b"\x01"
"""The indices of a page with NULLs only: readers still need the width of its indices."""


class ColumnPages:
    """The pages of a column; `take` gives them away and starts the next row group."""

    def __init__(self, name: str, type: Type, held: bool) -> None:
        self.name = name
        self.type = type
        self.held = held
        """Whether values stay as engines hold them; else they are written to be read."""
        self._pages: list[bytes] = []
        self.bytes = 0
        self._rows = 0
        self._encodings: set[int] = set()
        self._codes = CodesInUse()
        self._constants: list[int] = []
        self._kind: Kind | None = None
        self._varies = False
        """Whether a page was not constant: then no other is written as if it were."""

    def accepts(self, column: ResultColumn) -> bool:
        """Whether a page of this column can stand in the same chunk as those before.

        The pages of a chunk are of one kind: DuckDB 2.0 now and then read a wrong value
        where some of them are of dictionary indices and others are not.
        """
        known = not isinstance(column, Coded) or self._codes.accepts(column.dictionary)
        return known and self._kind in (None, self._kind_of(column))

    def _kind_of(self, column: ResultColumn) -> Kind:
        match column:
            case ConstantColumn() if not self._varies:
                return "constants"
            case Coded() if self.type is not Type.BOOL:
                return "codes"
            case _:
                return "values"

    @property
    def file_type(self) -> Type:
        return Type.LLONG if self.held and self.type is Type.WIDE else self.type

    @property
    def is_text(self) -> bool:
        return self.type in (Type.STRING, Type.NULL) or (self.type.is_address and not self.held)

    # ---- pages -----------------------------------------------------------------------------------

    def add(self, column: ResultColumn) -> None:
        self._kind = self._kind_of(column)
        match column:
            case ConstantColumn(value, rows) if self._varies:
                valid = None if value is not None else np.zeros(rows, np.bool_)
                self._add_numbers(np.full(rows, value or 0, np.int64), valid)
            case ConstantColumn(value, rows):
                self._add_constant(value, rows)
            case Coded(dictionary, codes) if self.type is not Type.BOOL:
                self._add_codes(dictionary, codes)
            case Coded(dictionary, codes):
                self._add_plain(dictionary.values(codes))
            case Numbers(values, valid):
                self._varies = True
                self._add_numbers(values, valid)
            case _:
                self._add_array(column)

    def _add_constant(self, value: int | None, rows: int) -> None:
        if value is None:
            self._page(rows, repeated_level(rows, False), NO_INDICES, RLE_DICTIONARY)
            return
        if value not in self._constants:
            self._constants.append(value)
        width = max(1, (len(self._constants) - 1).bit_length())
        index = self._constants.index(value).to_bytes((width + 7) // 8, "little")
        self._page(
            rows, levels(rows, None), bytes([width]) + varint(rows << 1) + index, RLE_DICTIONARY
        )

    def _add_codes(self, dictionary: Dictionary, codes: Codes) -> None:
        rows, valid = len(codes), None
        indices = self._codes.numbers(dictionary, codes)
        if len(indices) < rows:
            valid = codes != NULL_CODE
        content = NO_INDICES
        if len(indices):
            width = max(1, (self._codes.count - 1).bit_length())
            out = np.empty(len(indices) * width // 8 + SLACK, np.uint8)
            content = out[: put_indices(out, indices, width)].tobytes()
        self._page(rows, levels(rows, valid), content, RLE_DICTIONARY)

    def _add_numbers(self, values: Values, valid: Flags | None) -> None:
        if self.type is Type.BOOL:
            self._add_plain(pa.array(values != 0, mask=None if valid is None else ~valid))
            return
        rows = len(values)
        if valid is not None:
            values = values[valid]
        if self.type is Type.WIDE and not self.held:
            values = values ^ np.int64(INT_MIN)
        if self.type is Type.FLOAT:
            self._page(rows, levels(rows, valid), values.tobytes(), PLAIN)
            return
        out = np.empty(deltas_room(len(values)), np.uint8)
        content = out[: put_deltas(out, values)].tobytes()
        self._page(rows, levels(rows, valid), content, DELTA_BINARY_PACKED)

    def _add_array(self, array: pa.Array) -> None:
        if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
            valid = None
            if array.null_count:
                valid = array.is_valid().to_numpy(zero_copy_only=False)
                array = array.fill_null(0)
            self._add_numbers(array.to_numpy(), valid)
        else:
            self._add_plain(array)

    def _add_plain(self, array: pa.Array) -> None:
        rows, valid = len(array), None
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
            array = array.drop_null()
        self._page(rows, levels(rows, valid), plain(self._written(array)), PLAIN)

    def _written(self, values: pa.Array) -> pa.Array:
        """Values as the file has them; only raw bytes are the same in both forms."""
        return values if self.held or self.type is Type.BINARY else readable(values, self.type)

    def _page(self, rows: int, before: bytes, content: bytes, encoding: int) -> None:
        header = data_page_header(len(before) + len(content), rows, encoding)
        self._pages += (header, before, content)
        self.bytes += len(header) + len(before) + len(content)
        self._rows += rows
        self._encodings |= {RLE, encoding}

    # ---- the whole chunk -------------------------------------------------------------------------

    def take(self, offset: int) -> tuple[Chunk, list[bytes]]:
        """The chunk as it will stand at an offset of the file."""
        values = self._dictionary_values()
        first: list[bytes] = []
        if values is not None:
            content = plain(self._written(values))
            first = [dictionary_page_header(len(content), len(values)), content]
            self._encodings.add(PLAIN)
        before = sum(map(len, first))
        has_bounds = bool(self._constants) and self.type is not Type.WIDE
        chunk = Chunk(
            physical_type(self.type),
            self.name,
            tuple(sorted(self._encodings)),
            self._rows,
            before + self.bytes,
            offset + before,
            offset if first else None,
            # Epochs: whoever asks for some of them need not read the others.
            (min(self._constants), max(self._constants)) if has_bounds else None,
        )
        pages = first + self._pages
        self._pages, self.bytes, self._rows, self._encodings = [], 0, 0, set()
        self._codes = CodesInUse()  # a task writes many parts: nothing is kept
        self._constants, self._kind = [], None
        return chunk, pages

    def _dictionary_values(self) -> pa.Array | None:
        if self._constants:
            return pa.array(self._constants, pa.int64())
        if RLE_DICTIONARY in self._encodings:
            values = self._codes.values()
            return pa.array([], arrow_type(self.type)) if values is None else values
        return None


class CodesInUse:
    """The codes of a dictionary that occur in a row group, numbered in order of occurrence."""

    def __init__(self) -> None:
        self._dictionary: Dictionary | None = None
        self._numbers: Codes = np.empty(0, np.int32)
        self._used: Codes = np.empty(0, np.int32)
        self.count = 0

    def accepts(self, dictionary: Dictionary) -> bool:
        return self._dictionary is None or self._dictionary is dictionary

    def numbers(self, dictionary: Dictionary, codes: Codes) -> Codes:
        """The numbers of the codes that are not NULL."""
        self._dictionary = dictionary
        if len(dictionary) > len(self._numbers):
            room = max(len(dictionary), 2 * len(self._numbers))
            more = np.full(room - len(self._numbers), -1, np.int32)
            self._numbers = np.concatenate([self._numbers, more])
        if self.count + len(codes) > len(self._used):
            room = max(self.count + len(codes), 2 * len(self._used))
            self._used = np.concatenate([self._used[: self.count], np.empty(room, np.int32)])
        indices = np.empty(len(codes), np.int32)
        self.count, present = number_codes(codes, indices, self._numbers, self._used, self.count)
        return indices[:present]

    def values(self) -> pa.Array | None:
        if self._dictionary is None:
            return None
        return self._dictionary.values(self._used[: self.count].copy())


def levels(rows: int, valid: Flags | None) -> bytes:
    """Definition levels, with their length: which of the rows have a value."""
    if valid is None:
        return repeated_level(rows, True)
    packed = np.packbits(valid, bitorder="little").tobytes()
    runs = varint(len(packed) << 1 | 1) + packed
    return len(runs).to_bytes(4, "little") + runs


@lru_cache
def repeated_level(rows: int, present: bool) -> bytes:
    runs = varint(rows << 1) + bytes([present])
    return len(runs).to_bytes(4, "little") + runs


def plain(values: pa.Array) -> bytes:
    """Values without NULLs, one after the other."""
    if pa.types.is_boolean(values.type):
        bits = values.to_numpy(zero_copy_only=False)
        return bytes(np.packbits(bits, bitorder="little").tobytes())
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return bytes(values.to_numpy().tobytes())
    ends, content = byte_runs(values)
    out = np.empty(4 * len(values) + int(ends[-1] - ends[0]), np.uint8)
    put_byte_arrays(out, ends, content)
    return bytes(out.tobytes())
