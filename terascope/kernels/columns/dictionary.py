"""Dictionaries: values of any type as small dense codes (strings through dictionaries, 3.4.3).

In: columns of values. Out: int32 codes, the same for the same value as long as the dictionary
lives, in the order values are first seen; code 0 is NULL. Group keys are codes, whatever their type
is: two fit a 64-bit word, tables stay small, and results leave as dictionary columns without being
hashed again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.hashing import GOLDEN, mix, value_hash, word_of
from terascope.kernels.columns.arrays import (
    Bytes,
    Codes,
    Hashes,
    Ints,
    Masks,
    Values,
    all_valid,
    byte_runs,
    numbers,
    validity_of,
    words_of,
)
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.types import Type

NULL_CODE = 0
FIRST_ROOM = 1 << 10
SMALL = 1 << 16
"""Integers below this are looked up in an array instead of being hashed."""
REFILL_BLOCK = 256
"""Rows of a table whose places are listed at a time when the table grows."""


class Dictionary(ABC):
    """Codes of the values of one type."""

    def __init__(self, type: Type) -> None:
        self.type = type
        self._table: Ints = np.zeros((2 * FIRST_ROOM, 2), np.int64)
        self._words: Ints = np.zeros(FIRST_ROOM, np.int64)
        """By code: the value, or a word for it that is hashed."""
        self._count = 1

    def __len__(self) -> int:
        """Codes given so far, NULL's among them."""
        return self._count

    @abstractmethod
    def values(self, codes: Codes | None = None) -> pa.Array:
        """The values of some codes, or of all, as an Arrow column of the type."""

    @abstractmethod
    def encode(self, values: pa.Array) -> Codes:
        """The codes of a column of values."""

    def hashes(self, codes: Codes) -> Hashes:
        """Hashes of values: the same in every process."""
        return hash_numbers(self._words[codes], codes)

    @property
    def memory_bytes(self) -> int:
        return self._words.nbytes + self._table.nbytes

    def bytes_with(self, more: int) -> int:
        """The memory needed with so many more values, if they are as long as those before."""
        room = len(self._words)
        while room < self._count + more:
            room *= 2
        return self.memory_bytes // len(self._words) * room

    def _double(self) -> None:
        """Twice the room for values, and for rows of the table."""
        self._words = np.concatenate([self._words, np.zeros_like(self._words)])
        self._table = enlarged(self._table)


def dictionary_for(type: Type) -> Dictionary:
    if type is Type.STRING or type is Type.BINARY or type.is_address or type is Type.NULL:
        return BytesDictionary(type)
    return NumberDictionary(type)


# ---- numbers -------------------------------------------------------------------------------------


class NumberDictionary(Dictionary):
    """Integers, BOOLs and FLOATs, by their 64 bits."""

    def __init__(self, type: Type) -> None:
        super().__init__(type)
        self._small: Codes = np.zeros(SMALL, np.int32)

    def encode(self, values: pa.Array) -> Codes:
        return self.encode_numbers(*numbers(values, self.type))

    def encode_numbers(self, values: Values, masks: Masks) -> Codes:
        """Codes of numbers; where the mask is 0 the value is NULL."""
        words, codes = words_of(values), np.empty(len(values), np.int32)
        at = 0
        while True:
            at, self._count = encode_integers(
                words, masks, at, codes, self._small, self._table, self._words, self._count
            )
            if at == len(values):
                return codes
            self._double()

    def values(self, codes: Codes | None = None) -> pa.Array:
        if codes is None:
            codes = np.arange(self._count, dtype=np.int32)
        taken: Values = self._words[codes]
        if self.type is Type.FLOAT:
            taken = taken.view(np.float64)
        elif self.type is Type.BOOL:
            taken = taken != 0
        return pa.array(taken, mask=codes == NULL_CODE)

    @property
    def memory_bytes(self) -> int:
        return super().memory_bytes + self._small.nbytes


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


def enlarged(table: Ints) -> Ints:
    larger = np.zeros((2 * len(table), 2), np.int64)
    refill(table, larger)
    return larger


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
            out[i] = value_hash(values[i])
    return out


# ---- text, addresses, bytes ----------------------------------------------------------------------


class BytesDictionary(Dictionary):
    """Values that are runs of bytes."""

    def __init__(self, type: Type) -> None:
        super().__init__(type)
        self._ends: Ints = np.zeros(FIRST_ROOM + 1, np.int64)
        self._content: Bytes = np.zeros(16 * FIRST_ROOM, np.uint8)

    def encode(self, values: pa.Array) -> Codes:
        if pa.types.is_dictionary(values.type):
            distinct = np.append(self.encode(values.dictionary), np.int32(NULL_CODE))
            places = values.indices.cast(pa.int64()).fill_null(len(distinct) - 1)
            codes: Codes = distinct[places.to_numpy(zero_copy_only=False)]
            return codes
        offsets, data = byte_runs(values)
        if is_repeated(offsets, data) and not values.null_count:
            return np.repeat(self.encode(values[:1]), len(values))
        masks = validity_of(values) if values.null_count else all_valid(len(values))
        codes = np.empty(len(values), np.int32)
        at = 0
        while True:
            at, self._count = encode_bytes(
                offsets, data, masks, at, codes,
                self._table, self._ends, self._content, self._words, self._count,
            )  # fmt: skip
            if at == len(values):
                return codes
            self._grow(int(offsets[at + 1] - offsets[at]))

    def _grow(self, longest: int) -> None:
        used = int(self._ends[self._count])
        if used + longest > len(self._content):
            room = max(2 * len(self._content), used + 2 * longest)
            more = np.zeros(room - len(self._content), np.uint8)
            self._content = np.concatenate([self._content, more])
        if self._count == len(self._words):
            self._ends = np.concatenate([self._ends, np.zeros(len(self._words), np.int64)])
            self._double()

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

    @property
    def memory_bytes(self) -> int:
        return super().memory_bytes + self._ends.nbytes + self._content.nbytes


def is_repeated(offsets: Codes, data: Bytes) -> bool:
    """Whether all runs of bytes are the same, as the names of interfaces are: then one is encoded
    for all of them.
    """
    if len(offsets) < 3:
        return False
    begin, second, end = int(offsets[0]), int(offsets[1]), int(offsets[-1])
    size = second - begin
    if end - begin != size * (len(offsets) - 1) or not np.array_equal(
        data[begin:second], data[end - size : end]
    ):
        return False
    repeated = np.array_equal(data[begin : end - size], data[second:end])
    return repeated and bool((np.diff(offsets) == size).all())


@compiled_for(
    column(np.int32), column(np.uint8), column(np.uint8), INTEGER, output(np.int32),
    output(np.int64, 2), output(np.int64), output(np.uint8), output(np.int64), INTEGER,
)  # fmt: skip
def encode_bytes(
    offsets: Codes,
    data: Bytes,
    masks: Masks,
    start: int,
    codes: Codes,
    table: Ints,
    ends: Ints,
    content: Bytes,
    words: Ints,
    count: int,
) -> tuple[int, int]:
    """Encode runs of bytes as encode_integers does integers. A row of the table is (word, code)."""
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
def same(content: Bytes, ends: Ints, code: int, data: Bytes, begin: int, end: int) -> bool:
    """Whether some bytes are the value of a code."""
    first = ends[code]
    if ends[code + 1] - first != end - begin:
        return False
    k = 0
    while k < end - begin and content[first + k] == data[begin + k]:
        k += 1
    return k == end - begin
