"""Sums of FLOATs and of their squares, exactly, as columns of states.

In: FLOATs. Out: for each state the count, the sum in units of 2^-1074, the smallest FLOAT, the sum
of squares in units of 2^-2148, and flags for NaN and the infinities: the same numbers that
terascope.functions.exact_floats and aggregates.spread keep, whatever the order of values.

A sum is a number with digits of 32 bits, each in a word of 64 bits, which has room for carries of
2^28 additions. All digits of all finite FLOATs would be 1.6 KB, but the values of a group are
usually of similar size: a state keeps a *window* of digits. Digit k stands for 2^(32 k) units. A
window of n digits from digit b on has a second one beside it for the squares, of 2n digits from 2b
on. It begins with 4 digits, and is doubled when a value has digits outside, which takes a new block
of memory; the old block is used again by other states. The highest digit of a window is above the
highest of any value, so that it takes the carries of 2^62 values. A single value stands in the row
itself, without a window.

A packed state has both sums without leading and trailing digits that are zero: each as its first
digit and number of digits (16 bits each), its digits (32 bits each) and the highest one (64 bits,
with the sign). Before them stand the count and the flags.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from terascope.machine_code import BOOLEAN, INTEGER, column, compiled_for, inlined, output
from terascope.sketches.base import (
    Argument,
    CodedValues,
    Numbers,
    Packed,
    StateColumn,
    StateKind,
    packed_of,
)
from terascope.sketches.float_windows import (
    ALONE,
    COUNT,
    DIGIT,
    FLAG_BITS,
    FLAGS,
    HAS_INF,
    HAS_MINUS_INF,
    HAS_NAN,
    SHAPE,
    START,
    add_finite,
    add_slowly,
    carry,
    count_addition,
    give_block,
    has_room,
    settle,
    widen,
)
from terascope.sketches.moments import (
    FAMILY,
    FLOATS,
    NAME,
    ONE_FLOAT,
    VARIANTS,
    Moments,
    integer_moments,
)
from terascope.sketches.packed_form import (
    HEADER,
    Data,
    Offsets,
    checked,
    checked_one,
    header_of,
    put_word,
    refusal,
    word_at,
)
from terascope.sketches.value_forms import write_header
from terascope.sketches.word_lists import ROWS, WORDS, Words, enlarged, reached

ONE_BYTES: Final = HEADER + 4 + 8
FIXED: Final = HEADER + 4 + 16 + 8
"""The bytes of a packed state before its digits."""
MOST_DIGITS: Final = 256
"""More than any sum has."""


class FloatMoments(StateColumn):
    """`squares`: the sum of squares is kept, too."""

    def __init__(self, squares: bool) -> None:
        self._squares = squares
        self._rows: Words = np.zeros((0, 4), np.int64)
        self._count = 0
        self._digits: Words = np.zeros(0, np.int64)
        self._free: Words = np.zeros(8, np.int64)

    def clear(self) -> None:
        self._rows, self._count = np.zeros((0, 4), np.int64), 0
        self._digits, self._free = np.zeros(0, np.int64), np.zeros(8, np.int64)

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        (values,) = arguments
        assert not isinstance(values, CodedValues)
        self._reach(numbers)
        bits = np.ascontiguousarray(values, np.float64).view(np.int64)
        at = 0
        while at < len(numbers):
            at = take_floats(numbers, bits, at, self._squares, self._rows, self._digits, self._free)
            if at < len(numbers):
                self._digits = enlarged(self._digits, max(1024, 2 * len(self._digits)))

    def _reach(self, numbers: Numbers) -> None:
        self._rows, self._count = reached(self._rows, self._count, numbers)

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        offsets, data = checked(packed, FAMILY, NAME, VARIANTS, ONE_BYTES)
        wrong = wrong_floats(offsets, data)
        if wrong >= 0:
            state = data[offsets[wrong] : offsets[wrong + 1]].tobytes()
            raise ValueError(refusal(state, FAMILY, NAME))
        self._reach(numbers)
        at = 0
        while at < len(numbers):
            at = merge_floats(
                numbers, offsets, data, at, self._squares, self._rows, self._digits, self._free
            )
            if at < len(numbers):
                self._digits = enlarged(self._digits, max(1024, 2 * len(self._digits)))

    def pack(self, numbers: Numbers) -> Packed:
        self._reach(numbers)
        offsets = np.zeros(len(numbers) + 1, np.int64)
        shapes = np.zeros((len(numbers), 4), np.int64)
        size_floats(numbers, self._squares, self._rows, self._digits, shapes, offsets)
        data = np.zeros(offsets[-1], np.uint8)
        write_header(data, offsets[:-1], header_of(FAMILY, FLOATS))
        pack_floats(numbers, self._squares, self._rows, self._digits, shapes, offsets, data)
        return packed_of(offsets, data)

    def drop(self, numbers: Numbers) -> None:
        self._reach(numbers)
        drop_floats(numbers, self._squares, self._rows, self._digits, self._free)

    @property
    def memory_bytes(self) -> int:
        return self._rows.nbytes + self._digits.nbytes


class SumsOfPositives(FloatMoments):
    """Sums of the values that are not negative, as posavg takes them."""

    def __init__(self) -> None:
        super().__init__(squares=False)

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        (values,) = arguments
        assert not isinstance(values, CodedValues)
        kept = ~(values < 0)
        super().iterate(numbers[kept], [values[kept]])


FLOAT_MOMENTS: Final = StateKind(
    "moments(float)", partial(FloatMoments, True), partial(FloatMoments, True)
)
POSITIVE_SUM: Final = StateKind("sum(positive float)", SumsOfPositives, SumsOfPositives)
FLOAT_SUM: Final = StateKind(
    "sum(float)", partial(FloatMoments, False), partial(FloatMoments, False)
)


def moments_of(state: bytes) -> Moments:
    """The moments of a packed state, of integers or of FLOATs."""
    variant = checked_one(state, FAMILY, NAME, VARIANTS, HEADER)
    if variant < ONE_FLOAT:
        return integer_moments(state)
    if variant == ONE_FLOAT:
        return _of_one(state)
    if len(state) < FIXED:
        raise ValueError(refusal(state, FAMILY, NAME))
    count, flags = (int.from_bytes(state[at : at + 8], "little") for at in (8, 16))
    sums, at = [], FIXED
    for k in (24, 28):
        first, digits = (int.from_bytes(state[j : j + 2], "little") for j in (k, k + 2))
        end = at + (4 * digits + 4 if digits else 0)
        if end > len(state):
            raise ValueError(refusal(state, FAMILY, NAME))
        sums.append(_number(state[at:end]) << (32 * first))
        at = end
    return count, sums[0], sums[1], flags, True


def _of_one(state: bytes) -> Moments:
    if len(state) != ONE_BYTES:
        raise ValueError(refusal(state, FAMILY, NAME))
    bits = int.from_bytes(state[8:], "little")
    exponent, size = bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    if exponent == 0x7FF:
        return 1, 0, 0, HAS_NAN if size else HAS_MINUS_INF if bits >> 63 else HAS_INF, True
    units = (size | 1 << 52) << (exponent - 1) if exponent else size
    return 1, -units if bits >> 63 else units, units * units, 0, True


def _number(digits: bytes) -> int:
    """The number of packed digits; the highest has eight bytes."""
    return int.from_bytes(digits, "little", signed=True) if digits else 0


# ---- kernels -------------------------------------------------------------------------------------


@compiled_for(column(np.int64), column(np.int64), INTEGER, BOOLEAN, ROWS, WORDS, WORDS)
def take_floats(
    numbers: Numbers, values: Words, at: int, squares: bool, rows: Words, digits: Words, free: Words
) -> int:
    """Add values from `at` on, until all are done or there is no room; returns how many are."""
    for i in range(at, len(numbers)):
        row, bits = np.uint64(numbers[i]), values[i]
        exponent = (bits >> 52) & 0x7FF
        if exponent != 0x7FF and has_room(rows, row, exponent):
            add_finite(rows, digits, row, bits, exponent, squares)
            count_addition(rows, digits, row, squares)
            rows[row, COUNT] += 1
        elif not add_slowly(rows, digits, free, row, bits, squares):
            return i
    return len(numbers)


@inlined
def packed_end(data: Data, at: int) -> Any:
    """Where the digits of a packed state end, as its shapes say."""
    end: Any = at + FIXED
    for k in range(2):
        digits = np.int64(word_at(data, at + 26 + 4 * k, 2))
        end += 4 * digits + 4 if digits > 0 else 0
    return end


@compiled_for(column(np.int64), column(np.uint8))
def wrong_floats(offsets: Offsets, data: Data) -> int:
    """The first packed state that is none of FLOATs, or whose parts do not fill it; -1: none."""
    for i in range(len(offsets) - 1):
        at, size = offsets[i], offsets[i + 1] - offsets[i]
        if data[at + 3] == ONE_FLOAT:
            if size != ONE_BYTES:
                return i
        elif data[at + 3] != FLOATS or size < FIXED or packed_end(data, at) != at + size:
            return i
        else:
            for k in range(2):
                low, many = word_at(data, at + 24 + 4 * k, 2), word_at(data, at + 26 + 4 * k, 2)
                if low + many > np.uint64(MOST_DIGITS):
                    return i
    return -1


@inlined
def add_packed(data: Data, at: int, many: Any, digits: Words, to: int) -> None:
    """Add `many` packed digits to those from `to` on; the highest is spread over two."""
    for k in range(many - 1):
        digits[to + k] += np.int64(word_at(data, at + 4 * k, 4))
    if many > 0:
        top = np.int64(word_at(data, at + 4 * (many - 1), 8))
        digits[to + many - 1] += top & DIGIT
        digits[to + many] += top >> 32


@compiled_for(
    column(np.int64), column(np.int64), column(np.uint8), INTEGER, BOOLEAN, ROWS, WORDS, WORDS
)
def merge_floats(
    numbers: Numbers, offsets: Offsets, data: Data, start: int, squares: bool,
    rows: Words, digits: Words, free: Words,
) -> int:  # fmt: skip
    for i in range(start, len(numbers)):
        at, row = offsets[i], np.uint64(numbers[i])
        if data[at + 3] == ONE_FLOAT:
            bits = np.int64(word_at(data, at + 8, 8))
            if not add_slowly(rows, digits, free, row, bits, squares):
                return i
            continue
        count, flags = np.int64(word_at(data, at + 8, 8)), np.int64(word_at(data, at + 16, 8))
        first, many = np.int64(word_at(data, at + 24, 2)), np.int64(word_at(data, at + 26, 2))
        second, more = np.int64(word_at(data, at + 28, 2)), np.int64(word_at(data, at + 30, 2))
        if count > 0 and not settle(rows, digits, free, row, squares):
            return i
        if not squares:
            more = np.int64(0)
        if many + more > 0:
            low, high = first, first + many
            if many == 0:
                low, high = second >> 1, second >> 1
            if more > 0:
                low, high = min(low, second >> 1), max(high, (second + more + 1) >> 1)
            shape = rows[row, SHAPE]
            base, held = shape & 0xFFFF, shape >> 16
            inside = low >= base and high < base + held
            if not inside and not widen(rows, digits, free, row, low, high, squares):
                return i
            shape = rows[row, SHAPE]
            base, held, to = shape & 0xFFFF, shape >> 16, rows[row, START]
            add_packed(data, at + FIXED, many, digits, to + first - base)
            skipped = 4 * many + 4 if many > 0 else 0
            add_packed(data, at + FIXED + skipped, more, digits, to + held + second - 2 * base)
            count_addition(rows, digits, row, squares)
        rows[row, FLAGS] |= flags & FLAG_BITS
        rows[row, COUNT] += count
    return len(numbers)


@inlined
def bounds(digits: Words, start: int, count: int) -> tuple[int, int]:
    """The first digit that is not zero, and the number of digits that are needed from it on, after
    carries; 0 and 0 when all are zero. The highest needed digit has the sign.
    """
    low = 0
    while low < count and digits[start + low] == 0:
        low += 1
    if low == count:
        return 0, 0
    end = count
    top = digits[start + end - 1]
    while end - 1 > low and (top == 0 or top == -1):
        end -= 1
        top = digits[start + end - 1] - (1 << 32 if top < 0 else 0)
    return low, end - low


@compiled_for(column(np.int64), BOOLEAN, ROWS, WORDS, output(np.int64, 2), output(np.int64))
def size_floats(
    numbers: Numbers, squares: bool, rows: Words, digits: Words, shapes: Words, offsets: Offsets
) -> None:
    """Where packed states end, and the first digit and the number of digits of both sums."""
    for i in range(len(numbers)):
        row = np.uint64(numbers[i])
        if rows[row, FLAGS] & ALONE != 0:
            offsets[i + 1] = offsets[i] + ONE_BYTES
            continue
        size = FIXED
        start, base = rows[row, START], rows[row, SHAPE] & 0xFFFF
        count = rows[row, SHAPE] >> 16
        for k in range(2 if squares else 1):
            carry(digits, start, count)
            low, many = bounds(digits, start, count)
            shapes[i, 2 * k] = base + low if many > 0 else 0
            shapes[i, 2 * k + 1] = many
            size += 4 * many + 4 if many > 0 else 0
            start, base, count = start + count, 2 * base, 2 * count
        offsets[i + 1] = offsets[i] + size


@compiled_for(
    column(np.int64), BOOLEAN, ROWS, WORDS, column(np.int64, 2), column(np.int64), output(np.uint8)
)
def pack_floats(
    numbers: Numbers, squares: bool, rows: Words, digits: Words, shapes: Words,
    offsets: Offsets, data: Data,
) -> None:  # fmt: skip
    for i in range(len(numbers)):
        row, at = np.uint64(numbers[i]), offsets[i]
        if rows[row, FLAGS] & ALONE != 0:
            data[at + 3] = ONE_FLOAT
            put_word(data, at + 8, 8, np.uint64(rows[row, START]))
            continue
        put_word(data, at + 8, 8, np.uint64(rows[row, COUNT]))
        put_word(data, at + 16, 8, np.uint64(rows[row, FLAGS] & FLAG_BITS))
        for k in range(4):
            put_word(data, at + 24 + 2 * k, 2, np.uint64(shapes[i, k]))
        start, base = rows[row, START], rows[row, SHAPE] & 0xFFFF
        count = rows[row, SHAPE] >> 16
        at += FIXED
        for k in range(2 if squares else 1):
            first, many = start + shapes[i, 2 * k] - base, shapes[i, 2 * k + 1]
            if many > 0:
                for j in range(many - 1):
                    put_word(data, at + 4 * j, 4, np.uint64(digits[first + j]))
                top = digits[first + many - 1]
                if first + many < start + count and digits[start + count - 1] < 0:
                    top -= 1 << 32
                put_word(data, at + 4 * (many - 1), 8, np.uint64(top))
                at += 4 * many + 4
            start, base, count = start + count, 2 * base, 2 * count


@compiled_for(column(np.int64), BOOLEAN, ROWS, WORDS, WORDS)
def drop_floats(numbers: Numbers, squares: bool, rows: Words, digits: Words, free: Words) -> None:
    for i in range(len(numbers)):
        row = np.uint64(numbers[i])
        if rows[row, SHAPE] != 0:
            give_block(digits, free, rows[row, SHAPE] >> 16, rows[row, START])
        rows[row, :] = 0
