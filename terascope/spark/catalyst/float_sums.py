"""Sums of FLOATs in Spark: the digits are summed as integers.

In: columns of FLOATs. Out: their ranges and digits (terascope.functions.exact_floats) as columns,
computed in the JVM one step after the other before the GROUP BY, and the aggregates of these. Sums
of integers do not depend on the order in which Spark adds them.

Where it can be, the range is a key of the groups, and a second GROUP BY merges the ranges of a
group (terascope.spark.catalyst.grouping). Where some aggregate beside the sum does not split, a
value beyond the ordinary range goes into a list. A sum is rounded once for each group.

Squares are summed as two FLOATs, the rounded square and what rounding took from it (Dekker 1971),
each moved by a power of two to where it has its bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from terascope.functions.aggregates.spread import Moments, moments, moments_together
from terascope.functions.exact_floats import (
    DIGIT_BITS,
    DIGITS,
    LIMIT,
    LOWEST,
    ORDINARY,
    RANGE_BITS,
    SPECIAL,
    UNIT_EXPONENT,
    WEIGHTS,
    ExactSum,
    added,
    exact,
    from_digits,
    rounded,
)
from terascope.functions.spark_form import SparkArguments
from terascope.kernels.merge.float_ranges import totals
from terascope.spark.catalyst.frame import arrow_function, null, number
from terascope.types import Type

SQUARE_SHIFT = -20
"""Squares are multiplied by 2^-20 before they are cut into digits: up to 1e22 is ordinary."""
REST_SHIFT = 32
"""The shift of the rests of squares: 2^32."""
LEAST_SQUARED, MOST_SQUARED = 2.0**-60, 2.0**37
"""Between these, squaring in two FLOATs is exact."""
SPLITTER = 2.0**27 + 1
MANTISSA_BITS = 52
ALL_BITS = WEIGHTS[0] * 2.0**MANTISSA_BITS
"""From here on all bits of a FLOAT are in the ordinary range or above."""

Columns: TypeAlias = Callable[[DataFrame], DataFrame]
"""A function that adds columns."""


@dataclass(frozen=True)
class FloatDigits:
    """The columns of a FLOAT: the digits of each number computed from it, NULL where the value is
    beyond the ordinary range, and the value itself where it is.
    """

    digits: tuple[tuple[Column, ...], ...]
    beyond: Column


def range_name(column: str) -> str:
    return f"{column}_range"


def digit_name(column: str, place: int) -> str:
    return f"{column}_{place}"


def add_digits(df: DataFrame, column: str) -> DataFrame:
    """The same rows with the range and the digits of a column. Each step is a column of its own, so
    that Spark computes it once for all its uses.
    """
    scaled, whole = f"{column}_scaled", [f"{column}_whole_{k}" for k in range(DIGITS)]
    df = df.withColumn(range_name(column), float_range(F.col(column)))
    df = df.withColumn(scaled, moved(F.col(column), F.col(range_name(column))))
    df = df.withColumns({name: units(F.col(scaled), k) for k, name in enumerate(whole)})
    above = [*map(F.col, whole[1:]), None]
    digits = {
        digit_name(column, k): difference(F.col(name), above[k]) for k, name in enumerate(whole)
    }
    return df.withColumns(digits)


def digits_of(source: str, added: Literal["values", "moments"]) -> tuple[FloatDigits, Columns]:
    """The digits of a column and, for moments, of its square and of the rounding error of that,
    with the function that adds them.
    """
    column = f"{source}_{added}"
    shifts = {column: 0}
    if added == "moments":
        shifts |= {f"{column}_square": SQUARE_SHIFT, f"{column}_rest": REST_SHIFT}
    digits = [[digit_name(part, k) for k in range(DIGITS)] for part in shifts]
    beyond = f"{column}_beyond"

    def make(df: DataFrame) -> DataFrame:
        df = df.withColumn(column, F.col(source))
        if added == "moments":
            df = add_squares(df, column)
        ordinary = F.lit(True)
        for part, shift in shifts.items():
            df = df.withColumn(part, F.col(part) * F.lit(2.0**shift)) if shift else df
            df = add_digits(df, part)
            in_range = F.col(range_name(part)) == number(ORDINARY)
            ordinary = ordinary & F.coalesce(in_range, F.lit(False))
        df = df.withColumn(beyond, F.when(~ordinary, F.col(column)))
        inside = F.col(beyond).isNull()
        return df.withColumns(
            {name: F.when(inside, F.col(name)) for names in digits for name in names}
        )

    columns = tuple(tuple(map(F.col, names)) for names in digits)
    return FloatDigits(columns, F.col(beyond)), make


def add_squares(df: DataFrame, column: str) -> DataFrame:
    """The same rows with the rounded square of a column and what rounding took from it."""
    square, rest, upper = f"{column}_square", f"{column}_rest", f"{column}_upper"
    value, size = F.col(column), F.abs(F.col(column))
    exact_square = (size >= F.lit(LEAST_SQUARED)) & (size < F.lit(MOST_SQUARED))
    df = df.withColumn(upper, F.when(exact_square | (size == F.lit(0.0)), value))
    df = df.withColumn(square, F.col(upper) * F.col(upper))
    scaled = F.col(upper) * F.lit(SPLITTER)
    df = df.withColumn(upper, scaled - (scaled - F.col(upper)))
    lower, twice = value - F.col(upper), F.lit(2.0) * F.col(upper)
    off = F.col(upper) * F.col(upper) - F.col(square) + twice * lower + lower * lower
    return df.withColumn(rest, off).drop(upper)


# ---- ranges and digits of single values ----------------------------------------------------------
# A digit is the difference of two roundings: x in units of the digit, and x in units of the next
# one. All of these are integers times powers of two that a FLOAT holds exactly. A digit is between
# -2^29 and 2^29, the highest one has the bits above.


def float_range(value: Column) -> Column:
    """The range of a value; NULL for NULL. Logarithms are not exact, and a value just above the
    first of a range counts to the range before, whose digits have room for it.
    """
    size, lowest = F.abs(value), value * F.lit(1 / WEIGHTS[0])
    whole = (size >= F.lit(ALL_BITS)) | (lowest == F.rint(lowest))
    exponent = F.log2(size) - F.lit(UNIT_EXPONENT + MANTISSA_BITS + 0.5)
    others = F.greatest(F.floor(exponent / F.lit(float(RANGE_BITS))) + number(1), number(1))
    return (
        F.when((size < F.lit(LIMIT)) & whole, number(ORDINARY))
        .when(size < F.lit(math.inf), others)
        .when(value.isNotNull(), number(SPECIAL))
    )


def moved(value: Column, range_: Column) -> Column:
    """A value times the power of two that moves its range to the ordinary one; for a value that is
    not finite, a number whose digits count it.
    """
    highest = F.lit(float(LOWEST - UNIT_EXPONENT + RANGE_BITS))
    power = F.pow(F.lit(2.0), highest - range_.cast("double") * F.lit(float(RANGE_BITS)))
    nan, up, down = (F.lit(WEIGHTS[k]) for k in range(3))
    return (
        F.when(range_ == number(ORDINARY), value)
        .when(range_ < number(SPECIAL), value * power)
        .when(F.isnan(value), nan)
        .otherwise(F.when(value > F.lit(0.0), up).when(value < F.lit(0.0), down))
    )


def units(scaled: Column, place: int) -> Column:
    """A value in units of a digit, rounded."""
    return F.rint(scaled * F.lit(1 / WEIGHTS[place]))


def difference(rounded_units: Column, above: Column | None) -> Column:
    """The digit, from the value in its units and in those of the next one."""
    if above is not None:
        rounded_units = rounded_units - above * F.lit(2.0**DIGIT_BITS)
    return rounded_units.cast("bigint")


def float_total(call: SparkArguments) -> Column:
    """The sum that the digits of a group represent."""

    def of_groups(*parts: pa.Array) -> pa.Array:
        ranges, *digits = (as_numbers(part) for part in parts)
        missing = np.logical_or.reduce([nulls(part) for part in parts])
        return pa.array(totals(ranges, digits), mask=missing)

    return arrow_function(of_groups, call.type)(*call.columns)


def nulls(values: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False))


# ---- sums ----------------------------------------------------------------------------------------


def float_sum_parts(of: FloatDigits) -> tuple[Column, ...]:
    """The aggregates: sums of digits, and the list of values beyond the range."""
    sums = (F.sum(digit) for digits in of.digits for digit in digits)
    return (*sums, F.collect_list(of.beyond))


def merged_float_sum_parts(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The aggregates over rows of ranges and digits."""
    range_, *digits = columns
    ordinary = range_ == number(ORDINARY)
    row = F.struct(range_.alias("range"), *(d.alias(f"d{k}") for k, d in enumerate(digits)))
    beyond = F.collect_list(F.when(~ordinary, row))
    return (*(F.sum(F.when(ordinary, digit)) for digit in digits), beyond)


def finished_sum(parts: Sequence[Column]) -> Column:
    """The sum, from sums of digits and the list of values beyond; NULL without any value."""
    return arrow_function(sums_of_groups, Type.FLOAT)(*parts)


def sums_of_groups(*parts: pa.Array) -> pa.Array:
    *digits, beyond = parts
    words = [as_numbers(d) for d in digits]
    values = totals(np.zeros(len(beyond), np.int64), words)
    lengths = as_numbers(beyond.value_lengths())
    missing = nulls(digits[0]) & (lengths == 0)
    for i in np.flatnonzero(lengths):
        whole = from_digits(ORDINARY, [int(w[i]) for w in words])
        for one in beyond[int(i)].as_py():
            whole = added(whole, beyond_sum(one))
        values[i] = rounded(whole)
    return pa.array(values, mask=missing)


def as_numbers(column: pa.Array) -> NDArray[np.int64]:
    """Integers, zero for NULL."""
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def beyond_sum(one: float | dict[str, int]) -> ExactSum:
    """A value beyond the range, or a row of digits."""
    if isinstance(one, float):
        return exact(one)
    return from_digits(one["range"], [one[f"d{k}"] for k in range(DIGITS)])


def finished_list(values: Column) -> Column:
    """The sum of the FLOATs in a list; NULL for an empty one."""
    return finished_sum([*[null(Type.LLONG)] * DIGITS, values])


# ---- moments -------------------------------------------------------------------------------------


def finished_moments(
    finish: Callable[[Moments], float | None], moments_of: Callable[..., Moments]
) -> Callable[[Sequence[Column]], Column]:
    """The value of each group: `moments_of` takes the results of its aggregates."""

    def of_groups(*parts: pa.Array) -> pa.Array:
        columns = [
            part.to_pylist() if pa.types.is_list(part.type) else as_numbers(part).tolist()
            for part in parts
        ]
        rows = zip(*columns, strict=True)
        return pa.array([finish(moments_of(*row)) for row in rows], pa.float64())

    return lambda parts: arrow_function(of_groups, Type.FLOAT)(*parts)


def float_moments(count: int, *sums: Any) -> Moments:
    """The moments from a count, digit sums of values, squares and rests, and values beyond."""
    *digits, beyond = sums
    value, square, rest = (
        from_digits(ORDINARY, digits[at : at + DIGITS])[0] for at in range(0, 3 * DIGITS, DIGITS)
    )
    # From units of 2^-1074 to those of squares, 2^-2148.
    squares = (square << (1074 - SQUARE_SHIFT)) + (rest << (1074 - REST_SHIFT))
    found: Moments = count - len(beyond), value, squares, 0, True
    for one in beyond:
        found = moments_together(found, moments(one))
    return found


def integer_moments_parts(value: Column) -> tuple[Column, ...]:
    """Sums of the halves of the square of value = high * 2^32 + low: none overflows, however many
    values there are.
    """
    low = F.call_function("shiftright", F.call_function("shiftleft", value, F.lit(32)), F.lit(32))
    carry = F.when(low < number(0), number(1)).otherwise(number(0))
    high = F.call_function("shiftright", value, F.lit(32)) + carry
    parts = [high, low]
    for product in (high * high, high * low, low * low):
        parts.append(F.call_function("shiftright", product, F.lit(32)))
        parts.append(product.bitwiseAND(number(0xFFFFFFFF)))
    return (F.count(value), *(F.sum(part) for part in parts))


def integer_moments(count: int, high: int, low: int, *halves: int) -> Moments:
    top, middle, bottom = ((halves[i] << 32) + halves[i + 1] for i in (0, 2, 4))
    return count, (high << 32) + low, (top << 64) + (middle << 33) + bottom, 0, False
