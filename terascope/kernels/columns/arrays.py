"""Arrays that kernels read and write: their types, columns of Arrow as arrays, arrays that grow.

In: columns of Arrow, selections of tuples. Out: numpy arrays, most of them views. A task also keeps
the memory that arrays give back, instead of handing it to the system and asking for it anew: a page
that the system has just given costs more to touch than to fill.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.machine_code import WORD, column, compiled_for, output
from terascope.types import Type

Codes: TypeAlias = NDArray[np.int32]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Hashes: TypeAlias = NDArray[np.uint64]
Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Masks: TypeAlias = NDArray[np.uint8]
"""1 where there is a value, 0 where it is NULL."""
Values: TypeAlias = NDArray[Any]
Vector: TypeAlias = tuple[Values, Masks]
"""Values and validity."""
Rows: TypeAlias = NDArray[np.int64]
"""Groups as rows of a Shape without epoch word, int64[n, stride]."""


# ---- columns of Arrow ----------------------------------------------------------------------------


def byte_runs(column: pa.Array) -> tuple[Codes, Bytes]:
    """A column of text or bytes: where each value begins, and the end; and the bytes of all."""
    _, ends, content = column.buffers()
    offsets = np.zeros(1, np.int32) if ends is None else np.frombuffer(ends, np.int32)
    data = np.frombuffer(content, np.uint8) if content else np.zeros(1, np.uint8)
    return offsets[column.offset : column.offset + len(column) + 1], data


def decoded(column: pa.Array) -> pa.Array:
    """A column without a dictionary."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def words_of(values: Values) -> Ints:
    """Numbers as 64-bit words that are equal where GSQL's numbers are: one word for every NaN, and
    one for both zeros.
    """
    if values.dtype.kind != "f":
        return np.ascontiguousarray(values, np.int64)
    floats = values + 0.0  # -0.0 becomes 0.0
    floats[np.isnan(floats)] = np.nan
    words: Ints = floats.view(np.int64)
    return words


def validity_of(column: pa.Array) -> Masks:
    valid: Flags = column.is_valid().to_numpy(zero_copy_only=False)
    return valid.view(np.uint8)


def numbers(column: pa.Array, type: Type) -> Vector:
    """A column of numbers as a vector; NULLs have the value 0."""
    column = decoded(column)
    if column.null_count and column.type in (pa.bool_(), pa.int64()):
        return present_numbers(column)
    masks = all_valid(len(column))
    if column.null_count:
        masks = validity_of(column)
        column = column.fill_null(False if type is Type.BOOL else 0)
    return column.to_numpy(zero_copy_only=False), masks


def present_numbers(column: pa.Array) -> Vector:
    """The numbers of a column with NULLs, as most sources have."""
    bits, data = column.buffers()
    masks = unpacked_bits(bits, column.offset, len(column))
    if column.type == pa.bool_():
        return (unpacked_bits(data, column.offset, len(column)) & masks).view(np.bool_), masks
    return np.frombuffer(data, np.int64)[column.offset : column.offset + len(column)] * masks, masks


def unpacked_bits(buffer: pa.Buffer, start: int, count: int) -> Masks:
    first = start % 8
    data = np.frombuffer(buffer, np.uint8)[start // 8 :]
    return np.unpackbits(data, count=first + count, bitorder="little")[first:]


_ONES: dict[int, Masks] = {}


def all_valid(count: int) -> Masks:
    """An array of ones, which all vectors without NULLs share."""
    known = _ONES.get(0)
    if known is None or len(known) < count:
        known = _ONES[0] = np.ones(max(count, 1 << 16), np.uint8)
    return known[:count]


# ---- selections ----------------------------------------------------------------------------------


def select(bits: Sequence[Hashes], signature: Sequence[int], count: int) -> Codes:
    """The tuples that have all bits of a signature (dissertation 3.4.2)."""
    masks: dict[int, int] = {}
    for bit in signature:
        masks[bit // 64] = masks.get(bit // 64, 0) | 1 << bit % 64
    rows: Codes | None = None
    for word, mask in masks.items():
        vector, wanted = bits[word], np.uint64(mask)
        if rows is None:
            rows = np.empty(count, np.int32)
            rows = rows[: matching(vector, wanted, rows)]
        else:
            rows = rows[(vector[rows] & wanted) == wanted]
    return np.arange(count, dtype=np.int32) if rows is None else rows


@compiled_for(column(np.uint64), WORD, output(np.int32))
def matching(vector: Hashes, wanted: np.uint64, rows: Codes) -> np.int64:
    """Branch-free: a tuple that does not match is overwritten by the next."""
    count = np.int64(0)
    for i in range(len(vector)):
        rows[count] = i
        count += np.int64((vector[i] & wanted) == wanted)
    return count


@compiled_for(column(np.int32), output(np.uint8))
def mark(rows: Codes, marks: Masks) -> None:
    """Numpy takes five times as long."""
    for i in range(len(rows)):
        marks[np.uint32(rows[i])] = 1


def spread(part: Values, rows: Codes, count: int) -> Values:
    """Values of some tuples as a vector of all; of the others, anything."""
    vector = np.zeros(count, part.dtype)
    vector[rows] = part
    return vector


# ---- memory --------------------------------------------------------------------------------------


class GrowingArray:
    """Values behind each other. Their memory is used again after `take`."""

    def __init__(self, dtype: Any) -> None:
        self._room: Values = np.empty(0, dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        return self._count * self._room.itemsize

    @property
    def values(self) -> Values:
        return self._room[: self._count]

    def add(self, values: Values) -> Values:
        """Append values, and return the place where they stand now."""
        end = self._count + len(values)
        if end > len(self._room):
            larger = np.empty(max(end, 3 * self._count // 2), self._room.dtype)
            larger[: self._count] = self.values
            self._room = larger
        place = self._room[self._count : end]
        place[:] = values
        self._count = end
        return place

    def take(self) -> Values:
        """Return all values. The next ones go to the same place."""
        values, self._count = self.values, 0
        return values


M_TRIM_THRESHOLD: Final = -1
M_MMAP_MAX: Final = -4
KEPT_BYTES: Final = 2**31 - 1


@cache
def keep_freed_memory() -> None:
    """Keep freed memory in this process. With another C library than GNU's nothing happens."""
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(M_MMAP_MAX, 0)
    pa.set_memory_pool(pa.system_memory_pool())


def give_back() -> None:
    """Hand unused memory to the system, after much of it was freed: it lies in pieces between used
    memory, and the next large array might find none that is large enough.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
