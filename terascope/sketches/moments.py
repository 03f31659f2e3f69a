"""Count, sum and sum of squares of integers, exactly, as columns of states: variance and deviation.

In: integers. Out: for each state the three numbers, which terascope.functions.aggregates.spread
turns into a variance. FLOATs are kept by terascope.sketches.float_moments, in states of the same
family, so that one function reads both.

A row is six words: the count, the sum in two (128 bits), the sum of squares in three (192 bits). No
sum of 2^64 values can overflow. A packed state is narrow where all of it fits: header, count in 32
bits, sum and squares in 64; else the header, four bytes of nothing, and the six words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import column, compiled_for, inlined, output
from terascope.sketches.base import (
    Argument,
    CodedValues,
    Numbers,
    Packed,
    StateColumn,
    StateKind,
    packed_of,
)
from terascope.sketches.packed_form import (
    HEADER,
    Data,
    Offsets,
    checked,
    put_word,
    refusal,
    word_at,
)
from terascope.sketches.word_lists import Words, reached

FAMILY: Final = "M"
NAME: Final = "a state of moments"
NARROW, WIDE, ONE_FLOAT, FLOATS = 0, 1, 2, 3
VARIANTS: Final = 4
NARROW_BYTES: Final = HEADER + 20
WIDE_BYTES: Final = HEADER + 4 + 48

Moments = tuple[int, int, int, int, bool]
"""Count, sum, sum of squares, flags of values that are not finite, and whether these are FLOATs."""

Unsigned = NDArray[np.uint64]


class IntegerMoments(StateColumn):
    def __init__(self) -> None:
        self._rows: Words = np.zeros((0, 6), np.int64)
        self._count = 0

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        (values,) = arguments
        assert not isinstance(values, CodedValues)
        self._reach(numbers)
        take_integers(numbers, values, self._rows.view(np.uint64))

    def _reach(self, numbers: Numbers) -> None:
        self._rows, self._count = reached(self._rows, self._count, numbers)

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        offsets, data = checked(packed, FAMILY, NAME, WIDE + 1, NARROW_BYTES)
        self._reach(numbers)
        wrong = merge_integers(numbers, offsets, data, self._rows.view(np.uint64))
        if wrong >= 0:
            raise ValueError(
                refusal(data[offsets[wrong] : offsets[wrong + 1]].tobytes(), FAMILY, NAME)
            )

    def pack(self, numbers: Numbers) -> Packed:
        self._reach(numbers)
        rows = self._rows.view(np.uint64)
        offsets = np.zeros(len(numbers) + 1, np.int64)
        size_integers(numbers, rows, offsets)
        data = np.zeros(offsets[-1], np.uint8)
        pack_integers(numbers, rows, offsets, data)
        return packed_of(offsets, data)

    def drop(self, numbers: Numbers) -> None:
        self._reach(numbers)
        self._rows[numbers] = 0

    def clear(self) -> None:
        self._rows = np.zeros((0, 6), np.int64)
        self._count = 0

    @property
    def memory_bytes(self) -> int:
        return self._rows.nbytes


INTEGER_MOMENTS: Final = StateKind("moments(integer)", IntegerMoments, IntegerMoments)


def integer_moments(state: bytes) -> Moments:
    """The moments of a packed state of integers whose header was checked."""
    if state[3] == NARROW:
        part = (4, 8), (8, 16), (16, 24)
    else:
        part = (8, 16), (16, 32), (32, 56)
    if len(state) != part[-1][1]:
        raise ValueError(refusal(state, FAMILY, NAME))
    count, total, squares = (state[a:b] for a, b in part)
    return (
        int.from_bytes(count, "little"),
        int.from_bytes(total, "little", signed=True),
        int.from_bytes(squares, "little"),
        0,
        False,
    )


def small_moments(packed: Packed) -> tuple[NDArray[np.bool_], Words, Words, Words]:
    """Which packed states are narrow, and the count, sum and sum of squares of these, as arrays;
    sums of squares of 2^63 and more are negative.
    """
    offsets, data = checked(packed, FAMILY, NAME, VARIANTS, 0)
    found = np.zeros((3, len(packed)), np.int64)
    narrow = np.zeros(len(packed), np.bool_)
    read_narrow(offsets, data, narrow, found)
    return narrow, found[0], found[1], found[2]


# ---- in kernels ----------------------------------------------------------------------------------

COUNT, SUM, SUM_TOP, SQUARES, SQUARES_MIDDLE, SQUARES_TOP = range(6)
ONE: Final = np.uint64(1)
HALF: Final = np.uint64(32)
LOW_HALF: Final = np.uint64(0xFFFFFFFF)


@inlined
def add_sum(rows: Unsigned, row: np.uint64, low: np.uint64, top: np.uint64) -> None:
    """Add 128 bits, in two's complement."""
    added = rows[row, SUM] + low
    rows[row, SUM] = added
    rows[row, SUM_TOP] += top + np.uint64(added < low)


@inlined
def add_squares(
    rows: Unsigned, row: np.uint64, low: np.uint64, middle: np.uint64, top: np.uint64
) -> None:
    """Add 192 bits."""
    added = rows[row, SQUARES] + low
    rows[row, SQUARES] = added
    carry = np.uint64(added < low)
    if (middle | top | carry) != np.uint64(0):
        first = rows[row, SQUARES_MIDDLE] + middle
        second = first + carry
        rows[row, SQUARES_MIDDLE] = second
        rows[row, SQUARES_TOP] += top + np.uint64(first < middle) + np.uint64(second < carry)


@compiled_for(column(np.int64), column(np.int64), output(np.uint64, 2))
def take_integers(numbers: Numbers, values: Words, rows: Unsigned) -> None:
    for i in range(len(numbers)):
        row, value = np.uint64(numbers[i]), values[i]
        word = np.uint64(value)
        rows[row, COUNT] += ONE
        add_sum(rows, row, word, np.uint64(value >> 63))
        size = np.uint64(0) - word if value < 0 else word
        if size <= LOW_HALF:
            add_squares(rows, row, size * size, np.uint64(0), np.uint64(0))
        else:
            a, b = size & LOW_HALF, size >> HALF
            cross = a * b  # below 2^63, for size is at most 2^63
            low = a * a
            added = low + (cross << np.uint64(33))
            top = b * b + (cross >> np.uint64(31)) + np.uint64(added < low)
            add_squares(rows, row, added, top, np.uint64(0))


@inlined
def is_narrow(rows: Unsigned, row: np.uint64) -> bool:
    """Whether the count has 32 bits, and the sum and the squares 64."""
    extension = np.uint64(np.int64(rows[row, SUM]) >> 63)
    return bool(
        rows[row, COUNT] <= LOW_HALF
        and rows[row, SUM_TOP] == extension
        and (rows[row, SQUARES_MIDDLE] | rows[row, SQUARES_TOP]) == np.uint64(0)
    )


@compiled_for(column(np.int64), column(np.int64), column(np.uint8), output(np.uint64, 2))
def merge_integers(numbers: Numbers, offsets: Offsets, data: Data, rows: Unsigned) -> int:
    """Merge packed states; returns the first that is not as long as its variant is, or -1."""
    for i in range(len(numbers)):
        at, size = offsets[i], offsets[i + 1] - offsets[i]
        if size != (NARROW_BYTES if data[at + 3] == NARROW else WIDE_BYTES):
            return i
    for i in range(len(numbers)):
        at, row = offsets[i], np.uint64(numbers[i])
        if data[at + 3] == NARROW:
            total = word_at(data, at + 8, 8)
            rows[row, COUNT] += word_at(data, at + 4, 4)
            add_sum(rows, row, total, np.uint64(np.int64(total) >> 63))
            add_squares(rows, row, word_at(data, at + 16, 8), np.uint64(0), np.uint64(0))
        else:
            rows[row, COUNT] += word_at(data, at + 8, 8)
            add_sum(rows, row, word_at(data, at + 16, 8), word_at(data, at + 24, 8))
            low, middle = word_at(data, at + 32, 8), word_at(data, at + 40, 8)
            add_squares(rows, row, low, middle, word_at(data, at + 48, 8))
    return -1


@compiled_for(column(np.int64), column(np.uint64, 2), output(np.int64))
def size_integers(numbers: Numbers, rows: Unsigned, offsets: Offsets) -> None:
    for i in range(len(numbers)):
        narrow = is_narrow(rows, np.uint64(numbers[i]))
        offsets[i + 1] = offsets[i] + (NARROW_BYTES if narrow else WIDE_BYTES)


@compiled_for(column(np.int64), column(np.uint64, 2), column(np.int64), output(np.uint8))
def pack_integers(numbers: Numbers, rows: Unsigned, offsets: Offsets, data: Data) -> None:
    for i in range(len(numbers)):
        at, row = offsets[i], np.uint64(numbers[i])
        data[at] = 84  # T
        data[at + 1] = 77  # M
        data[at + 2] = 1
        if offsets[i + 1] - at == NARROW_BYTES:
            data[at + 3] = NARROW
            put_word(data, at + 4, 4, rows[row, COUNT])
            put_word(data, at + 8, 8, rows[row, SUM])
            put_word(data, at + 16, 8, rows[row, SQUARES])
        else:
            data[at + 3] = WIDE
            for k in range(6):
                put_word(data, at + 8 + 8 * k, 8, rows[row, k])


@compiled_for(column(np.int64), column(np.uint8), output(np.bool_), output(np.int64, 2))
def read_narrow(offsets: Offsets, data: Data, narrow: NDArray[np.bool_], found: Words) -> None:
    for i in range(len(narrow)):
        at = offsets[i]
        if data[at + 3] == NARROW and offsets[i + 1] - at == NARROW_BYTES:
            narrow[i] = True
            found[0, i] = np.int64(word_at(data, at + 4, 4))
            found[1, i] = np.int64(word_at(data, at + 8, 8))
            found[2, i] = np.int64(word_at(data, at + 16, 8))
