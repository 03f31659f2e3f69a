"""MurmurHash3 of 128 bits, as the sketches of Apache DataSketches hash values.

In: numbers, or runs of bytes. Out: two words for each: the same that DataSketches and Spark's
functions on its sketches compute, so that sketches of the same values made there can be merged with
ours. An integer is hashed as its eight bytes, a FLOAT as those of its bits, text in UTF-8.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.machine_code import column, compiled_for, inlined, output
from terascope.sketches.base import Argument, CodedValues, ValueDictionary, bytes_of

Hashes = NDArray[np.uint64]

SEED: Final = 9001
"""The seed that DataSketches uses unless it is told another."""
C1: Final = 0x87C37B91114253D5
C2: Final = 0x4CF5AD432745937F


@inlined
def rotated(word: np.uint64, bits: int) -> np.uint64:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@inlined
def final_mix(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@inlined
def finished(h1: np.uint64, h2: np.uint64, length: int) -> tuple[np.uint64, np.uint64]:
    h1 ^= np.uint64(length)
    h2 ^= np.uint64(length)
    h1 += h2
    h2 += h1
    h1 = final_mix(h1)
    h2 = final_mix(h2)
    h1 += h2
    return h1, h1 + h2


@inlined
def hash_word(word: np.uint64) -> tuple[np.uint64, np.uint64]:
    k1 = rotated(word * np.uint64(C1), 31) * np.uint64(C2)
    return finished(np.uint64(SEED) ^ k1, np.uint64(SEED), 8)


@inlined
def part(data: NDArray[np.uint8], begin: int, count: int) -> np.uint64:
    """Up to eight bytes as a word."""
    word = np.uint64(0)
    for k in range(count):
        word |= np.uint64(data[np.uint64(begin + k)]) << np.uint64(8 * k)
    return word


@inlined
def hash_run(data: NDArray[np.uint8], begin: int, end: int) -> tuple[np.uint64, np.uint64]:
    """The hash of some bytes, at least one."""
    h1, h2 = np.uint64(SEED), np.uint64(SEED)
    at = begin
    while end - at >= 16:
        k1, k2 = part(data, at, 8), part(data, at + 8, 8)
        h1 ^= rotated(k1 * np.uint64(C1), 31) * np.uint64(C2)
        h1 = (rotated(h1, 27) + h2) * np.uint64(5) + np.uint64(0x52DCE729)
        h2 ^= rotated(k2 * np.uint64(C2), 33) * np.uint64(C1)
        h2 = (rotated(h2, 31) + h1) * np.uint64(5) + np.uint64(0x38495AB5)
        at += 16
    rest = end - at
    if rest > 8:
        h2 ^= rotated(part(data, at + 8, rest - 8) * np.uint64(C2), 33) * np.uint64(C1)
    if rest > 0:
        h1 ^= rotated(part(data, at, min(rest, 8)) * np.uint64(C1), 31) * np.uint64(C2)
    return finished(h1, h2, end - begin)


@compiled_for(column(np.int64), output(np.uint64), output(np.uint64))
def hash_words(words: NDArray[np.int64], low: Hashes, high: Hashes) -> None:
    for i in range(len(words)):
        low[i], high[i] = hash_word(np.uint64(words[i]))


@compiled_for(column(np.int64), column(np.uint8), output(np.uint64), output(np.uint64))
def hash_runs(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], low: Hashes, high: Hashes
) -> None:
    for i in range(len(offsets) - 1):
        low[i], high[i] = hash_run(data, offsets[i], offsets[i + 1])


def canonical_floats(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bits of FLOATs, the same for all that are equal: -0.0 is 0.0, and there is one NaN."""
    plain = values + 0.0
    plain[np.isnan(plain)] = np.nan
    words: NDArray[np.int64] = plain.view(np.int64)
    return words


def binary_values(dictionary: ValueDictionary, codes: NDArray[np.int32]) -> pa.LargeBinaryArray:
    """The values of codes as bytes."""
    return dictionary.values(codes).cast(pa.large_binary())


class ValueHashes:
    """Hashes of the values of an argument. Those of codes are kept, so that a value of a dictionary
    is hashed once.
    """

    def __init__(self) -> None:
        self._dictionary: ValueDictionary | None = None
        self._known = np.zeros(0, np.bool_)
        self._low: Hashes = np.zeros(0, np.uint64)
        self._high: Hashes = np.zeros(0, np.uint64)

    def of(self, argument: Argument) -> tuple[Hashes, Hashes]:
        if isinstance(argument, CodedValues):
            return self._of_codes(argument)
        words = argument if argument.dtype == np.int64 else canonical_floats(argument)
        low, high = np.empty(len(words), np.uint64), np.empty(len(words), np.uint64)
        hash_words(words, low, high)
        return low, high

    def _of_codes(self, coded: CodedValues) -> tuple[Hashes, Hashes]:
        codes = coded.codes
        if coded.dictionary is not self._dictionary:
            self.__init__()  # type: ignore[misc]
            self._dictionary = coded.dictionary
        room = int(codes.max()) + 1 if len(codes) else 0
        if room > len(self._known):
            room = max(room, 2 * len(self._known))
            self._known = np.resize(self._known, room) & (np.arange(room) < len(self._known))
            self._low, self._high = np.resize(self._low, room), np.resize(self._high, room)
        new = np.unique(codes[~self._known[codes]])
        if len(new):
            offsets, data = bytes_of(binary_values(coded.dictionary, new))
            low, high = np.empty(len(new), np.uint64), np.empty(len(new), np.uint64)
            hash_runs(offsets, data, low, high)
            self._low[new], self._high[new], self._known[new] = low, high, True
        return self._low[codes], self._high[codes]

    @property
    def memory_bytes(self) -> int:
        return self._known.nbytes + self._low.nbytes + self._high.nbytes
