"""The values of a vector that are in a long list of constants.

In: a vector of numbers, and `Members`. Out: a vector of flags. The list is data, not code: a bit
for each number where they lie close together, a hash table otherwise; a value is looked up once.
NaN equals itself, and -0.0 is 0.0.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from terascope.functions.members import Members
from terascope.hashing import multiplied
from terascope.kernels.codegen.statements import Statements
from terascope.kernels.codegen.terms import InputKind, Term, Unsupported
from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.plan.expr import Call, Lit

Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

WIDEST: Final = 1 << 22
"""Numbers within a range of this size have a flag each."""
FULLNESS: Final = 4
"""The least places of a hash table for each number."""


def among(w: Statements, call: Call, guard: str | None) -> Term:
    """A vector of its own. The operand is computed here, too, for the sake of its overflows."""
    operand, listed = call.args
    if not isinstance(listed, Lit) or not isinstance(listed.value, Members):
        raise Unsupported("IN a list that is no constant")
    w.term(operand, guard)
    return w.load(InputKind.MEMBERS, call)


def member_vector(
    members: Members, values: NDArray[Any], valid: NDArray[Any]
) -> tuple[Flags, NDArray[np.uint8]]:
    """Whether each value is in the list, and where that is known."""
    words = words_of(values)
    found = np.zeros(len(words), np.bool_)
    table = table_of(members, values.dtype.kind == "f")
    table.find(words, found)
    known = np.asarray(valid) != 0
    if members.has_null:
        known = known & found
    return found, known.view(np.uint8)


def words_of(values: NDArray[Any]) -> Ints:
    """Numbers as words that are equal when they are."""
    if values.dtype.kind != "f":
        return np.ascontiguousarray(values, np.int64)
    numbers = values.astype(np.float64) + 0.0  # -0.0 becomes 0.0
    numbers[np.isnan(numbers)] = np.nan
    words: Ints = numbers.view(np.int64)
    return words


class FlagTable:
    """A flag for every number from the smallest to the largest."""

    def __init__(self, words: Ints, low: int, high: int) -> None:
        self._low = low
        self._flags = np.zeros(high - low + 1, np.bool_)
        self._flags[words - low] = True

    def find(self, words: Ints, found: Flags) -> None:
        find_flags(words, self._low, self._flags, found)


class HashTable:
    """Numbers by their hash; one that is taken goes to the next place."""

    def __init__(self, words: Ints) -> None:
        self._bits = max(4, int(FULLNESS * len(words) - 1).bit_length())
        self._words = np.zeros(1 << self._bits, np.int64)
        self._taken = np.zeros(1 << self._bits, np.bool_)
        fill_hashes(words, self._bits, self._words, self._taken)

    def find(self, words: Ints, found: Flags) -> None:
        find_hashes(words, self._bits, self._words, self._taken, found)


@lru_cache(maxsize=64)
def table_of(members: Members, floats: bool) -> FlagTable | HashTable:
    words = words_of(np.array(members.values, np.float64 if floats else np.int64))
    if len(words):
        low, high = int(words.min()), int(words.max())
        if high - low < WIDEST:
            return FlagTable(words, low, high)
    return HashTable(words)


@compiled_for(column(np.int64), INTEGER, column(np.bool_), output(np.bool_))
def find_flags(words: Ints, low: int, flags: Flags, found: Flags) -> None:
    last = len(flags)
    for i in range(len(words)):
        place = np.uint64(words[i]) - np.uint64(low)  # below the smallest it is very large
        found[i] = place < np.uint64(last) and flags[place]


@compiled_for(column(np.int64), INTEGER, output(np.int64), output(np.bool_))
def fill_hashes(words: Ints, bits: int, held: Ints, taken: Flags) -> None:
    mask = np.int64(len(held) - 1)
    shift = np.uint64(64 - bits)
    for i in range(len(words)):
        place = np.int64(multiplied(words[i], shift))
        while taken[place] and held[place] != words[i]:
            place = (place + 1) & mask
        taken[place] = True
        held[place] = words[i]


@compiled_for(column(np.int64), INTEGER, column(np.int64), column(np.bool_), output(np.bool_))
def find_hashes(words: Ints, bits: int, held: Ints, taken: Flags, found: Flags) -> None:
    mask = np.int64(len(held) - 1)
    shift = np.uint64(64 - bits)
    for i in range(len(words)):
        place = np.int64(multiplied(words[i], shift))
        while taken[place] and held[place] != words[i]:
            place = (place + 1) & mask
        found[i] = taken[place]
