"""Variances, deviations, sums and means of whole columns of states of moments.

In: a column of packed states (terascope.sketches.moments, terascope.sketches.float_moments). Out:
the variance of each, its root, or the sum of FLOATs or their mean. All of these are exact until
they are rounded, as one by one: of n values with the sum s and the sum of squares q, the variance
is (n q - s^2) / (n (n - 1)), or / n^2 for a whole population.

States of 2^32 values or more, and variances below the smallest FLOAT of full precision, are left to
the function that reads a single state.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from terascope.machine_code import BOOLEAN, column, compiled_for, inlined, output
from terascope.sketches.float_moments import FIXED, MOST_DIGITS, ONE_BYTES, packed_end
from terascope.sketches.float_windows import HAS_INF, HAS_MINUS_INF
from terascope.sketches.long_numbers import (
    DIGIT,
    ZERO,
    add_product,
    read_signed,
    rounded_number,
    rounded_quotient,
    shortened,
    subtract,
)
from terascope.sketches.moments import (
    FLOATS,
    NARROW,
    NARROW_BYTES,
    ONE_FLOAT,
    WIDE,
    WIDE_BYTES,
)
from terascope.sketches.packed_form import HEADER, VERSION, word_at
from terascope.sketches.state_values import FOUND, NOTHING, REST, closed, opened

ROOM: Final = 4 * MOST_DIGITS + 16
"""More digits than the square of a sum has, and the digits below it."""
EXACT: Final = 2.0**52
"""Integers up to twice this one are FLOATs."""
FACTOR: Final = 1 << 26
"""The product of two integers up to this one is at most `EXACT`."""
UNIT: Final = -1074
"""The exponent of the unit of sums of FLOATs."""


def spread_column(
    packed: pa.Array, sample: bool, root: bool, read: Callable[[bytes], float | None]
) -> pa.Array:
    """The variance of each state, of a sample or of a population, or its root; NULL for too few
    values. `read` gives that of one state.
    """
    offsets, data, marks = opened(packed)
    values = np.zeros(len(marks), np.float64)
    spreads(offsets, data, sample, root, np.zeros((4, ROOM), np.uint64), marks, values)
    return closed(packed, values, marks, read)


def sum_column(packed: pa.Array, mean: bool, read: Callable[[bytes], float | None]) -> pa.Array:
    """The sum of the FLOATs of each state, or their mean; NULL for no values."""
    offsets, data, marks = opened(packed)
    values = np.zeros(len(marks), np.float64)
    room = np.zeros(MOST_DIGITS + 16, np.uint64)
    sums(offsets, data, mean, room, marks, values, values.view(np.int64))
    return closed(packed, values, marks, read)


# ---- kernels -------------------------------------------------------------------------------------


@inlined
def variant_of(data: Any, at: Any, size: Any) -> Any:
    """The variant of a state of moments whose parts fill it; -1: it is none."""
    if size < HEADER or data[at] != 84 or data[at + 1] != 77 or data[at + 2] != VERSION:
        return -1
    variant = np.int64(data[at + 3])
    if variant == NARROW:
        return variant if size == NARROW_BYTES else -1
    if variant == WIDE:
        return variant if size == WIDE_BYTES else -1
    if variant == ONE_FLOAT:
        return variant if size == ONE_BYTES else -1
    if variant != FLOATS or size < FIXED or packed_end(data, at) != at + size:
        return -1
    for k in range(2):
        low, many = word_at(data, at + 24 + 4 * k, 2), word_at(data, at + 26 + 4 * k, 2)
        if low + many > np.uint64(MOST_DIGITS):
            return -1
    return variant


@inlined
def flags_of_one(bits: Any) -> Any:
    """Whether a FLOAT is not finite, of its bits."""
    return bits & 0x7FF0000000000000 == 0x7FF0000000000000


@compiled_for(
    column(np.int64), column(np.uint8), BOOLEAN, BOOLEAN, output(np.uint64, 2), output(np.uint8),
    output(np.float64),
)  # fmt: skip
def spreads(
    offsets: Any, data: Any, sample: Any, root: Any, room: Any, marks: Any, values: Any
) -> None:
    for i in range(len(marks)):
        if marks[i] != REST:
            continue
        at = offsets[i]
        variant = variant_of(data, at, offsets[i + 1] - at)
        if variant < 0:
            continue
        if variant == ONE_FLOAT:
            marks[i] = NOTHING if sample else FOUND
            values[i] = math.nan if flags_of_one(np.int64(word_at(data, at + 8, 8))) else 0.0
            continue
        count = word_at(data, at + 4, 4) if variant == NARROW else word_at(data, at + 8, 8)
        if count > DIGIT:
            continue
        degrees = np.int64(count) - (1 if sample else 0)
        if degrees < 1:
            marks[i] = NOTHING
            continue
        divisor = count * np.uint64(degrees)
        if variant == FLOATS and word_at(data, at + 16, 8) != ZERO:
            variance = math.nan
        elif variant == NARROW and is_short(data, at, count):
            total = word_at(data, at + 8, 8)
            difference = count * word_at(data, at + 16, 8) - total * total
            variance = np.float64(difference) / np.float64(divisor)
        else:
            variance = long_variance(data, at, variant, count, divisor, room)
            if variance != variance:
                continue
        marks[i] = FOUND
        values[i] = math.sqrt(variance) if root else variance


@inlined
def is_short(data: Any, at: Any, count: Any) -> Any:
    """Whether numerator and denominator of the variance of a narrow state are FLOATs."""
    total, squares = np.int64(word_at(data, at + 8, 8)), word_at(data, at + 16, 8)
    if total > FACTOR or total < -FACTOR or count > np.uint64(FACTOR):
        return False
    if np.float64(count) * np.float64(squares) > EXACT:
        return False
    return np.uint64(total * total) <= count * squares


@inlined
def long_variance(data: Any, at: Any, variant: Any, count: Any, divisor: Any, room: Any) -> Any:
    """The variance of a state of any size; NaN when it is negative, or too small to be rounded."""
    total, squares, left, right = room[0], room[1], room[2], room[3]
    first: Any = 0
    second: Any = 0
    many: Any = 2
    more: Any = 2
    exponent = 0
    if variant == NARROW:
        read_signed(data, at + 8, 2, total)
        squares[0], squares[1] = word_at(data, at + 16, 4), word_at(data, at + 20, 4)
    elif variant == WIDE:
        read_signed(data, at + 16, 4, total)
        many, more = np.int64(4), np.int64(6)
        for k in range(6):
            squares[k] = word_at(data, at + 32 + 4 * k, 4)
    else:
        first, many = np.int64(word_at(data, at + 24, 2)), np.int64(word_at(data, at + 26, 2))
        second, more = np.int64(word_at(data, at + 28, 2)), np.int64(word_at(data, at + 30, 2))
        many, more = many + (many > 0), more + (more > 0)
        read_signed(data, at + FIXED, many, total)
        if read_signed(data, at + FIXED + 4 * many, more, squares):
            return math.nan
        exponent = 2 * UNIT
    many, more = shortened(total, many), shortened(squares, more)
    base = min(2 * first, second) if many else second
    digits = max(2 * (first + many), second + more + 1) - base + 1
    for k in range(digits):
        left[k] = right[k] = ZERO
    add_product(total, many, total, many, 2 * first - base, right)
    total[0] = count
    add_product(squares, more, total, 1, second - base, left)
    if subtract(left, right, digits):
        return math.nan
    return rounded_quotient(left, shortened(left, digits), divisor, exponent + 32 * base)


@compiled_for(
    column(np.int64), column(np.uint8), BOOLEAN, output(np.uint64), output(np.uint8),
    output(np.float64), output(np.int64),
)  # fmt: skip
def sums(offsets: Any, data: Any, mean: Any, room: Any, marks: Any, values: Any, bits: Any) -> None:
    """`bits` is the memory of `values`."""
    for i in range(len(marks)):
        if marks[i] != REST:
            continue
        at = offsets[i]
        variant = variant_of(data, at, offsets[i + 1] - at)
        if variant < ONE_FLOAT:
            continue
        marks[i] = FOUND
        if variant == ONE_FLOAT:
            bits[i] = np.int64(word_at(data, at + 8, 8))
            values[i] += 0.0  # -0.0 equals 0.0
            continue
        count, flags = word_at(data, at + 8, 8), word_at(data, at + 16, 8)
        if count == ZERO:
            marks[i] = NOTHING
        elif flags == ZERO:
            values[i] = float_sum(data, at, room)
        elif flags == np.uint64(HAS_INF):
            values[i] = math.inf
        elif flags == np.uint64(HAS_MINUS_INF):
            values[i] = -math.inf
        else:
            values[i] = math.nan
        if mean and count != ZERO:
            values[i] /= np.float64(count)


@inlined
def float_sum(data: Any, at: Any, room: Any) -> Any:
    first, many = np.int64(word_at(data, at + 24, 2)), np.int64(word_at(data, at + 26, 2))
    if many == 0:
        return 0.0
    negative = read_signed(data, at + FIXED, many + 1, room)
    total = rounded_number(room, shortened(room, many + 1), 32 * first + UNIT)
    return -total if negative else total
