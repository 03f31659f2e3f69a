"""Identifiers of heavy hitters: values of any type as keys of 33 bits (paper 1, 4.2).

In: the values of an argument, or the names in packed states. Out: keys. An IPv4 address and an
integer of 32 bits are *plain*: the key is the value. Every other value is *named*: its bytes are
kept once in the table of names of a column, and the key is the number of the name with bit 32 set.
So a pair of key and weight fits one word of 64 bits as long as the weight has 31 bits.

A sketch counts 32 bits of an identifier at several lengths of prefix. Those of a plain identifier
are its own; those of a name are a hash. Of an IPv6 address the prefixes /128, /64, /48 and /32 are
hashed one by one, in place of the prefixes of 32, 24, 16 and 8 bits, so that the sketch also counts
prefixes of IPv6 addresses.
"""

from __future__ import annotations

import enum
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.hashing import mix
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.sketches.base import Argument, CodedValues, ValueDictionary, bytes_of
from terascope.types import Type

Keys: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Bytes: TypeAlias = NDArray[np.uint8]
Prefixes: TypeAlias = NDArray[np.int64]

NAMED: Final = 1 << 32
"""The bit of keys that are numbers of names."""
PLAIN_MAX: Final = NAMED - 1
UNKNOWN: Final = -1
FIRST_NAMES: Final = 64


class IdKind(enum.IntEnum):
    """The type of identifiers, which says how they are printed. A packed state carries it."""

    NOTHING = 0
    INTEGER = 1
    FLOAT = 2
    BOOL = 3
    ADDRESS = 4
    TEXT = 5


def kind_of(type_: Type) -> IdKind:
    """The kind of identifiers of a type."""
    if type_.is_address:
        return IdKind.ADDRESS
    if type_.is_text:
        return IdKind.TEXT
    kinds = {Type.FLOAT: IdKind.FLOAT, Type.BOOL: IdKind.BOOL, Type.NULL: IdKind.NOTHING}
    return kinds.get(type_, IdKind.INTEGER)


class HitterIds:
    """The names of a column of states, and the keys of values."""

    def __init__(self, kind: IdKind = IdKind.NOTHING) -> None:
        self.kind = kind
        self.clear()

    def clear(self) -> None:
        self.ends: NDArray[np.int64] = np.zeros(FIRST_NAMES + 1, np.int64)
        self.content: Bytes = np.zeros(16 * FIRST_NAMES, np.uint8)
        self.prefixes: Prefixes = np.zeros((FIRST_NAMES, 4), np.int64)
        """By name: the 32, 24, 16 and 8 bits that a sketch counts."""
        self.count = 0
        self._table: NDArray[np.int64] = np.zeros((2 * FIRST_NAMES, 2), np.int64)
        self._dictionary: ValueDictionary | None = None
        self._by_code: Keys = np.zeros(0, np.int64)

    @property
    def memory_bytes(self) -> int:
        arrays = (self.ends, self.content, self.prefixes, self._table, self._by_code)
        return sum(array.nbytes for array in arrays)

    def keys(self, values: Argument) -> Keys:
        """The keys of the values of tuples."""
        if isinstance(values, CodedValues):
            return self._keys_of_codes(values)
        if values.dtype == np.float64:
            same = np.where(np.isnan(values), np.nan, values + 0.0)  # one zero, one NaN
            return self._keys_of_words(same.view(np.int64), np.ones(len(values), np.bool_))
        words = np.ascontiguousarray(values, np.int64)
        if not len(words) or (words.min() >= 0 and words.max() <= PLAIN_MAX):
            return words
        return self._keys_of_words(words, (words < 0) | (words > PLAIN_MAX))

    def _keys_of_words(self, words: NDArray[np.int64], named: NDArray[np.bool_]) -> Keys:
        """Keys where the words marked as named have a name of eight bytes."""
        distinct, places = np.unique(words[named], return_inverse=True)
        keys = words.copy()
        offsets = 8 * np.arange(len(distinct) + 1, dtype=np.int64)
        keys[named] = self.name(offsets, distinct.view(np.uint8), False)[places]
        return keys

    def _keys_of_codes(self, values: CodedValues) -> Keys:
        """Keys by a table of all codes seen; only codes that are new are looked up."""
        codes = values.codes
        if not len(codes):
            return np.zeros(0, np.int64)
        if values.dictionary is not self._dictionary:
            self._dictionary, self._by_code = values.dictionary, np.zeros(0, np.int64)
        most = int(codes.max()) + 1
        if most > len(self._by_code):
            more = max(most, 2 * len(self._by_code)) - len(self._by_code)
            self._by_code = np.concatenate([self._by_code, np.full(more, UNKNOWN, np.int64)])
        keys: Keys = self._by_code[codes]
        if keys.min() == UNKNOWN:
            fresh = np.unique(codes[keys == UNKNOWN])
            self._by_code[fresh] = self._keys_of_values(values.dictionary.values(fresh))
            keys = self._by_code[codes]
        return keys

    def _keys_of_values(self, values: pa.Array) -> Keys:
        if pa.types.is_floating(values.type):
            return self.keys(values.cast(pa.float64()).to_numpy(zero_copy_only=False))
        if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
            return self.keys(values.cast(pa.int64()).to_numpy(zero_copy_only=False))
        offsets, data = bytes_of(values.cast(pa.large_binary()))
        return self.name(offsets, data, self.kind is IdKind.ADDRESS)

    def name(self, offsets: NDArray[np.int64], data: Bytes, addresses: bool) -> Keys:
        """The keys of runs of bytes; IPv4 addresses among addresses are plain."""
        keys = np.empty(len(offsets) - 1, np.int64)
        at = 0
        while True:
            at, self.count = name_runs(
                offsets, data, int(addresses), at, keys,
                self._table, self.ends, self.content, self.prefixes, self.count,
            )  # fmt: skip
            if at == len(keys):
                return keys
            self._grow(int(offsets[at + 1] - offsets[at]))

    def _grow(self, longest: int) -> None:
        used = int(self.ends[self.count])
        if used + longest > len(self.content):
            more = max(len(self.content), used + 2 * longest - len(self.content))
            self.content = np.concatenate([self.content, np.zeros(more, np.uint8)])
        if self.count == len(self.prefixes):
            self.ends = np.concatenate([self.ends, np.zeros(self.count, np.int64)])
            self.prefixes = np.concatenate([self.prefixes, np.zeros_like(self.prefixes)])
            self._table = np.zeros((2 * len(self._table), 2), np.int64)
            refill_names(self._table, self.ends, self.content, self.count)


# ---- kernels -------------------------------------------------------------------------------------


@inlined
def hash_of(data: Bytes, begin: Any, size: Any) -> Any:
    """A hash of a run of bytes, the same in every process."""
    state = np.uint64(size)
    at = np.uint64(begin)
    end = at + np.uint64(size)
    while at < end:
        part = np.uint64(0)
        for k in range(min(np.uint64(8), end - at)):
            part |= np.uint64(data[at + np.uint64(k)]) << np.uint64(8 * k)
        state = mix(state ^ part) + np.uint64(0x9E3779B97F4A7C15)
        at += np.uint64(8)
    return mix(state)


@inlined
def same_name(content: Bytes, first: Any, data: Bytes, begin: Any, size: Any) -> bool:
    k = 0
    while k < size and content[first + k] == data[begin + k]:
        k += 1
    return bool(k == size)


@inlined
def note_prefixes(prefixes: Prefixes, number: Any, data: Bytes, begin: Any, size: Any) -> None:
    """The bits of a name that a sketch counts: prefixes of an IPv6 address, or of one hash."""
    hashed = np.int64(hash_of(data, begin, size) >> np.uint64(32))
    if size == 17 and data[begin] == 6:
        prefixes[number, 0] = hashed
        prefixes[number, 1] = np.int64(hash_of(data, begin, 9) >> np.uint64(40))
        prefixes[number, 2] = np.int64(hash_of(data, begin, 7) >> np.uint64(48))
        prefixes[number, 3] = np.int64(hash_of(data, begin, 5) >> np.uint64(56))
    else:
        for level in range(4):
            prefixes[number, level] = hashed >> (8 * level)


@compiled_for(
    column(np.int64), column(np.uint8), INTEGER, INTEGER, output(np.int64),
    output(np.int64, 2), output(np.int64), output(np.uint8), output(np.int64, 2), INTEGER,
)  # fmt: skip
def name_runs(
    offsets: NDArray[np.int64],
    data: Bytes,
    addresses: int,
    start: int,
    keys: Keys,
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    content: Bytes,
    prefixes: Prefixes,
    count: int,
) -> tuple[int, int]:
    """Keys from `start` on, until all are done or there is no room for a new name.

    A row of the table is (hash, number + 1), with 0 behind the hash of an empty row.
    """
    top = np.uint64(len(table) - 1)
    for i in range(start, len(keys)):
        begin = offsets[i]
        size = offsets[i + 1] - begin
        if addresses != 0 and size == 5 and data[begin] == 4:
            plain = np.int64(0)
            for k in range(1, 5):
                plain = plain << 8 | np.int64(data[begin + k])
            keys[i] = plain
            continue
        hashed = hash_of(data, begin, size)
        at = hashed & top
        while True:
            number = table[at, 1] - 1
            if number < 0:
                used = ends[count]
                if count == len(prefixes) or used + size > len(content):
                    return i, count
                content[used : used + size] = data[begin : begin + size]
                ends[count + 1] = used + size
                note_prefixes(prefixes, count, data, begin, size)
                table[at, 0] = np.int64(hashed)
                table[at, 1] = count + 1
                keys[i] = NAMED | count
                count += 1
                break
            first = ends[number]
            if (
                table[at, 0] == np.int64(hashed)
                and ends[number + 1] - first == size
                and same_name(content, first, data, begin, size)
            ):
                keys[i] = NAMED | number
                break
            at = (at + np.uint64(1)) & top
    return len(keys), count


@compiled_for(output(np.int64, 2), column(np.int64), column(np.uint8), INTEGER)
def refill_names(
    table: NDArray[np.int64], ends: NDArray[np.int64], content: Bytes, count: int
) -> None:
    """Put all names into an empty table."""
    top = np.uint64(len(table) - 1)
    for number in range(count):
        hashed = hash_of(content, ends[number], ends[number + 1] - ends[number])
        at = hashed & top
        while table[at, 1] != 0:
            at = (at + np.uint64(1)) & top
        table[at, 0] = np.int64(hashed)
        table[at, 1] = number + 1
