"""Dictionaries: values of any type as small dense codes (strings through dictionaries, 3.4.3).

In: columns of values. Out: int32 codes, the same for the same value as long as the dictionary
lives, in the order values are first seen; code 0 is NULL. Group keys are codes, whatever their type
is: two fit a 64-bit word, tables stay small, and results leave as dictionary columns without being
hashed again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.connectors.base import arrow_type
from terascope.hashing import GOLDEN, mix
from terascope.kernels.columns.growing_array import GrowingArray
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.types import Type

Codes: TypeAlias = NDArray[np.int32]
Ints: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint64]
Masks: TypeAlias = NDArray[np.uint8]

NULL_CODE = 0
FIRST_ROOM = 1 << 10
SMALL = 1 << 16
"""Integers below this are looked up in an array instead of being hashed."""
REFILL_BLOCK = 256
"""Rows of a table whose places are listed at a time when the table grows."""


class Dictionary(Protocol):
    """The interface of a dictionary for tables, payloads and results."""

    type: Type

    def __len__(self) -> int:
        """Codes given so far, NULL's among them."""
        ...

    def values(self, codes: Codes | None = None) -> pa.Array:
        """The values of some codes, or of all, as an Arrow column of the type."""
        ...

    def hashes(self, codes: Codes) -> Hashes:
        """Hashes of values: the same in every process."""
        ...

    def encode(self, values: pa.Array) -> Codes:
        """The codes of a column of values."""
        ...

    def bytes_with(self, more: int) -> int:
        """The most memory with this many more values."""
        ...

    @property
    def memory_bytes(self) -> int: ...


def dictionary_for(type: Type) -> Dictionary:
    if type is Type.STRING or type is Type.BINARY or type.is_address or type is Type.NULL:
        return BytesDictionary(type)
    return NumberDictionary(type)


def room_for(count: int, room: int) -> int:
    """The size of an array that doubles until it holds this many values."""
    while room < count:
        room *= 2
    return room


def enlarged(table: Ints) -> Ints:
    """A table of twice the length with the same rows."""
    larger = np.zeros((2 * len(table), 2), np.int64)
    refill(table, larger)
    return larger


# ---- numbers -------------------------------------------------------------------------------------


class NumberDictionary:
    """Integers, BOOLs and FLOATs, by their 64 bits."""

    def __init__(self, type: Type) -> None:
        self.type = type
        self._small: Codes = np.zeros(SMALL, np.int32)
        self._table: Ints = np.zeros((2 * FIRST_ROOM, 2), np.int64)
        self._values: Ints = np.zeros(FIRST_ROOM, np.int64)
        self._count = 1

    def __len__(self) -> int:
        return self._count

    def encode(self, values: pa.Array) -> Codes:
        return self.encode_numbers(*number_arrays(values, self.type))

    def encode_numbers(self, values: Ints, masks: Masks | None) -> Codes:
        """Codes of values given as 64-bit words; where the mask is 0 the value is NULL."""
        codes = np.empty(len(values), np.int32)
        if masks is None:
            masks = all_valid(len(values))
        at = 0
        while True:
            at, self._count = encode_integers(
                values, masks, at, codes, self._small, self._table, self._values, self._count
            )
            if at == len(values):
                return codes
            self._grow()

    def _grow(self) -> None:
        self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        self._table = enlarged(self._table)

    def bytes_with(self, more: int) -> int:
        room = room_for(self._count + more, len(self._values))
        return self.memory_bytes // len(self._values) * room

    def numbers(self, codes: Codes) -> Ints:
        """The 64-bit words of some codes."""
        return self._values[codes]

    def values(self, codes: Codes | None = None) -> pa.Array:
        taken = self._values[: self._count] if codes is None else self._values[codes]
        missing = np.zeros(len(taken), np.bool_)
        if codes is None:
            missing[NULL_CODE] = True
        else:
            np.equal(codes, NULL_CODE, out=missing)
        if self.type is Type.FLOAT:
            return pa.array(taken.view(np.float64), pa.float64(), mask=missing)
        if self.type is Type.BOOL:
            return pa.array(taken != 0, pa.bool_(), mask=missing)
        return pa.array(taken, pa.int64(), mask=missing)

    def hashes(self, codes: Codes) -> Hashes:
        return hash_numbers(self._values[codes], codes)

    @property
    def memory_bytes(self) -> int:
        return self._values.nbytes + self._table.nbytes + self._small.nbytes


def number_arrays(given: pa.Array, type: Type) -> tuple[Ints, Masks | None]:
    """The 64-bit words of a column of numbers, and its validity."""
    masks = None
    if given.null_count:
        masks = given.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
        given = given.fill_null(False if type is Type.BOOL else 0)
    values = given.to_numpy(zero_copy_only=False)
    return words_of(values, type), masks


def words_of(values: NDArray[Any], type: Type) -> Ints:
    """Numbers as the 64-bit words of a dictionary."""
    return canonical_floats(values) if type is Type.FLOAT else values.astype(np.int64, copy=False)


def canonical_floats(values: NDArray[np.float64]) -> Ints:
    """One word for every NaN, and one for both zeros, as GSQL compares them."""
    values = values + 0.0
    values[np.isnan(values)] = np.nan
    return values.view(np.int64)


_ONES: dict[int, Masks] = {}


def all_valid(count: int) -> Masks:
    """An array of ones, shared by everybody."""
    known = _ONES.get(0)
    if known is None or len(known) < count:
        known = _ONES[0] = np.ones(max(count, 1 << 16), np.uint8)
    return known[:count]


@compiled_for(
    column(np.int64), column(np.uint8), INTEGER, output(np.int32),
    output(np.int32), output(np.int64, 2), output(np.int64), INTEGER,
)  # fmt: skip
def encode_integers(
    values: Ints,
    masks: Masks,
    start: int,
    codes: Codes,
    small: Codes,
    table: Ints,
    known: Ints,
    count: int,
) -> tuple[int, int]:
    """Codes from `start` on, until all are done or there is no room for a new value.

    A row of the table is (value, code), with code 0 for an empty one.
    """
    top = np.uint64(len(table) - 1)
    for i in range(start, len(values)):
        value = values[i]
        if masks[i] == 0:
            codes[i] = 0
            continue
        if 0 <= value < 65536:
            code = small[value]
            if code == 0:
                if count == len(known):
                    return i, count
                code = count
                known[count] = value
                small[value] = count
                count += 1
            codes[i] = code
            continue
        at = (mix(np.uint64(value)) >> np.uint64(8)) & top
        while True:
            held = table[at, 1]
            if held == 0:
                if count == len(known):
                    return i, count
                table[at, 0] = value
                table[at, 1] = count
                known[count] = value
                codes[i] = count
                count += 1
                break
            if table[at, 0] == value:
                codes[i] = held
                break
            at = (at + np.uint64(1)) & top
    return len(values), count


@compiled_for(column(np.int64, 2), output(np.int64, 2))
def refill(small: Ints, table: Ints) -> None:
    """Put the rows of a table, (word, code) with code 0 for an empty one, into a larger empty one.

    The rows come in the order of their places, and a place in the larger table is the old one or
    one that lies the old length above it: both tables are passed through once from front to back,
    whatever their size, where rows in the order of their codes would go all over the larger one.
    Rows in use are listed block by block, without a branch, which could not be predicted.
    """
    top = np.uint64(len(table) - 1)
    used = np.empty(REFILL_BLOCK, np.int64)
    for start in range(0, len(small), REFILL_BLOCK):
        count = 0
        for i in range(start, min(start + REFILL_BLOCK, len(small))):
            used[count] = i
            count += int(small[i, 1] != 0)
        for i in used[:count]:
            at = (mix(np.uint64(small[i, 0])) >> np.uint64(8)) & top
            while table[at, 1] != 0:
                at = (at + np.uint64(1)) & top
            table[at, 0] = small[i, 0]
            table[at, 1] = small[i, 1]


@compiled_for(column(np.int64), column(np.int32))
def hash_numbers(values: Ints, codes: Codes) -> Hashes:
    out = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        if codes[i] == 0:
            out[i] = np.uint64(GOLDEN)
        else:
            out[i] = mix(np.uint64(values[i] + 0x632BE5AB))
    return out


# ---- text, addresses, bytes ----------------------------------------------------------------------


class BytesDictionary:
    """Values that are runs of bytes."""

    def __init__(self, type: Type) -> None:
        self.type = type
        self._table: Ints = np.zeros((2 * FIRST_ROOM, 2), np.int64)
        self._ends: Ints = np.zeros(FIRST_ROOM + 1, np.int64)
        self._content: NDArray[np.uint8] = np.zeros(16 * FIRST_ROOM, np.uint8)
        self._words: Ints = np.zeros(FIRST_ROOM, np.int64)
        self._count = 1

    def __len__(self) -> int:
        return self._count

    def encode(self, values: pa.Array) -> Codes:
        if pa.types.is_dictionary(values.type):
            distinct = np.append(self.encode(values.dictionary), np.int32(NULL_CODE))
            places = values.indices.cast(pa.int64()).fill_null(len(distinct) - 1)
            codes: Codes = distinct[places.to_numpy(zero_copy_only=False)]
            return codes
        _, ends, content = values.buffers()
        count = len(values)
        offsets = np.frombuffer(ends, np.int32)[values.offset : values.offset + count + 1]
        data = np.frombuffer(content, np.uint8) if content else np.zeros(1, np.uint8)
        masks = all_valid(count)
        if values.null_count:
            masks = values.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
        codes = np.empty(count, np.int32)
        at = 0
        while True:
            at, self._count = encode_bytes(
                offsets, data, masks, at, codes,
                self._table, self._ends, self._content, self._words, self._count,
            )  # fmt: skip
            if at == count:
                return codes
            longest = int(offsets[at + 1] - offsets[at])
            self._grow(longest)

    def _grow(self, longest: int) -> None:
        used = int(self._ends[self._count])
        if used + longest > len(self._content):
            room = max(2 * len(self._content), used + 2 * longest)
            self._content = np.concatenate(
                [self._content, np.zeros(room - len(self._content), np.uint8)]
            )
        if self._count == len(self._words):
            self._ends = np.concatenate([self._ends, np.zeros(len(self._words), np.int64)])
            self._words = np.concatenate([self._words, np.zeros_like(self._words)])
            self._table = enlarged(self._table)

    def bytes_with(self, more: int) -> int:
        """If they are as long as those before."""
        room = room_for(self._count + more, len(self._words))
        return self.memory_bytes // len(self._words) * room

    def values(self, codes: Codes | None = None) -> pa.Array:
        large = pa.large_string() if self.type in (Type.STRING, Type.NULL) else pa.large_binary()
        valid = np.full(self._count // 8 + 1, 0xFF, np.uint8)
        valid[0] = 0xFE  # NULL is code 0
        ends = self._ends[: self._count + 1]
        content = self._content[: int(ends[-1])]
        if codes is None:  # given away while they may still grow
            ends, content = ends.copy(), content.copy()
        everything = pa.Array.from_buffers(
            large, self._count, [pa.py_buffer(valid), pa.py_buffer(ends), pa.py_buffer(content)]
        )
        taken = everything if codes is None else everything.take(pa.array(codes))
        return taken.cast(arrow_type(self.type))

    def hashes(self, codes: Codes) -> Hashes:
        return hash_numbers(self._words[codes], codes)

    @property
    def memory_bytes(self) -> int:
        parts = (self._table, self._ends, self._content, self._words)
        return sum(part.nbytes for part in parts)


@inlined
def word_of(data: NDArray[np.uint8], begin: int, end: int) -> np.int64:
    """A word for a run of bytes: exact below eight of them, else negative, and a mere hash.

    An IPv4 address, held in five bytes, is the common case.
    """
    size = end - begin
    if size == 5:
        first = np.uint64(begin)
        return (
            np.int64(5 << 56)
            | np.int64(data[first])
            | np.int64(data[first + np.uint64(1)]) << 8
            | np.int64(data[first + np.uint64(2)]) << 16
            | np.int64(data[first + np.uint64(3)]) << 24
            | np.int64(data[first + np.uint64(4)]) << 32
        )
    word = np.int64(size) << 56
    if size < 8:
        for k in range(size):
            word |= np.int64(data[begin + k]) << (8 * k)
        return word
    state = np.uint64(size)
    at = begin
    while at < end:
        part = np.uint64(0)
        for k in range(min(8, end - at)):
            part |= np.uint64(data[at + k]) << np.uint64(8 * k)
        state = mix(state ^ part)
        at += 8
    return np.int64(state | np.uint64(1 << 63))


@compiled_for(
    column(np.int32), column(np.uint8), column(np.uint8), INTEGER, output(np.int32),
    output(np.int64, 2), output(np.int64), output(np.uint8), output(np.int64), INTEGER,
)  # fmt: skip
def encode_bytes(
    offsets: Codes,
    data: NDArray[np.uint8],
    masks: Masks,
    start: int,
    codes: Codes,
    table: Ints,
    ends: Ints,
    content: NDArray[np.uint8],
    words: Ints,
    count: int,
) -> tuple[int, int]:
    """As encode_integers; a row of the table is (word, code)."""
    top = np.uint64(len(table) - 1)
    for i in range(start, len(codes)):
        if masks[i] == 0:
            codes[i] = 0
            continue
        begin, end = offsets[i], offsets[i + 1]
        size = end - begin
        word = word_of(data, begin, end)
        at = (mix(np.uint64(word)) >> np.uint64(8)) & top
        while True:
            held = table[at, 1]
            if held == 0:
                used = ends[count]
                if count == len(words) or used + size > len(content):
                    return i, count
                content[used : used + size] = data[begin:end]
                ends[count + 1] = used + size
                words[count] = word
                table[at, 0] = word
                table[at, 1] = count
                codes[i] = count
                count += 1
                break
            if table[at, 0] == word and (word >= 0 or same(content, ends, held, data, begin, end)):
                codes[i] = held
                break
            at = (at + np.uint64(1)) & top
    return len(codes), count


@inlined
def same(
    content: NDArray[np.uint8],
    ends: Ints,
    code: int,
    data: NDArray[np.uint8],
    begin: int,
    end: int,
) -> bool:
    first = ends[code]
    if ends[code + 1] - first != end - begin:
        return False
    k = 0
    while k < end - begin and content[first + k] == data[begin + k]:
        k += 1
    return k == end - begin


# ---- what follows from a dictionary --------------------------------------------------------------


class Derived:
    """A function of a dictionary's values, computed once for each of them as they come."""

    def __init__(self, source: Dictionary, function: Callable[[pa.Array], pa.Array]) -> None:
        self._source = source
        self._function = function
        self._column: pa.Array | None = None

    def column(self) -> pa.Array:
        """One value per code of the source."""
        count = len(self._source)
        done = 0 if self._column is None else len(self._column)
        if self._column is None or done < count:
            fresh = self._function(self._source.values(np.arange(done, count, dtype=np.int32)))
            self._column = fresh if done == 0 else pa.concat_arrays([self._column, fresh])
        return self._column


class DerivedCodes:
    """Derived values with their codes in another dictionary."""

    def __init__(
        self, source: Dictionary, function: Callable[[pa.Array], pa.Array], target: Dictionary
    ) -> None:
        self._source = source
        self._function = function
        self._target = target
        self._codes = GrowingArray(np.int32)

    def codes(self) -> Codes:
        """One per code of the source."""
        done, count = len(self._codes), len(self._source)
        if done < count:
            values = self._source.values(np.arange(done, count, dtype=np.int32))
            self._codes.add(self._target.encode(self._function(values)))
        return self._codes.values
