"""Sums of FLOATs in Spark: the digits are summed as integers, values beyond are collected.

In: columns of FLOATs. Out: their digits (terascope.functions.exact_floats) as columns, computed one
step after the other before the GROUP BY, and the aggregates of these. Sums of integers do not
depend on the order in which Spark adds them. A value beyond the ordinary range, which is rare, goes
into a list; what is made of digits and lists is computed once for each group.

Squares are summed as two FLOATs, the rounded square and what rounding took from it (Dekker 1971),
each moved by a power of two to where it has its bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from terascope.functions.aggregates.spread import Moments, Spread, moments, moments_together
from terascope.functions.exact_floats import (
    DIGITS,
    LIMIT,
    NOTHING,
    ORDINARY,
    WEIGHTS,
    ExactSum,
    added,
    exact,
    from_digits,
    rounded,
    to_digits,
)
from terascope.low.float_ranges import ranges_of, totals
from terascope.spark.arrow_functions import arrow_function
from terascope.spark.operands import Operand, number
from terascope.types import Type

SQUARE_SHIFT = -20
"""Squares are multiplied by 2^-20 before they are cut into digits: up to 1e22 is ordinary."""
REST_SHIFT = 32
"""The rests of squares, by 2^32."""
LEAST_SQUARED, MOST_SQUARED = 2.0**-60, 2.0**37
"""Between these, squaring in two FLOATs is exact."""
SPLITTER = 2.0**27 + 1


@dataclass(frozen=True)
class FloatDigits:
    """The columns of a FLOAT: the digits of each number that is made of it, NULL where the value is
    beyond the ordinary range, and the value itself where it is.
    """

    digits: tuple[tuple[Column, ...], ...]
    beyond: Column


Columns: TypeAlias = Callable[[DataFrame], DataFrame]
"""Adds columns."""


def digits_of_sum(column: str) -> tuple[FloatDigits, Columns]:
    """The digits of a column, and what makes them."""
    return named([column], column), lambda df: finished_digits(cut(df, column, 0), [column], column)


def digits_of_moments(column: str) -> tuple[FloatDigits, Columns]:
    """The digits of a column, of its square, and of what the square was rounded by."""
    source, column = column, f"{column}_moments"
    square, rest, upper = f"{column}_square", f"{column}_rest", f"{column}_upper"

    def make(df: DataFrame) -> DataFrame:
        df = df.withColumn(column, F.col(source))
        value, size = F.col(column), F.abs(F.col(column))
        exact_square = (size >= F.lit(LEAST_SQUARED)) & (size < F.lit(MOST_SQUARED))
        df = df.withColumn(upper, F.when(exact_square | (size == F.lit(0.0)), value))
        df = df.withColumn(square, F.col(upper) * F.col(upper))
        scaled = F.col(upper) * F.lit(SPLITTER)
        df = df.withColumn(upper, scaled - (scaled - F.col(upper)))
        lower, twice = value - F.col(upper), F.lit(2.0) * F.col(upper)
        off = F.col(upper) * F.col(upper) - F.col(square) + twice * lower + lower * lower
        df = df.withColumn(rest, off).drop(upper)
        df = cut(cut(cut(df, column, 0), square, SQUARE_SHIFT), rest, REST_SHIFT)
        return finished_digits(df, [column, square, rest], column).drop(square, rest)

    return named([column, square, rest], column), make


def names_of(column: str) -> list[str]:
    return [f"{column}_{k}" for k in range(DIGITS)]


def named(cut_columns: Iterable[str], column: str) -> FloatDigits:
    digits = tuple(tuple(map(F.col, names_of(one))) for one in cut_columns)
    return FloatDigits(digits, F.col(f"{column}_beyond"))


def cut(df: DataFrame, column: str, shift: int) -> DataFrame:
    """With the digits of a column times a power of two, and what is then left of it."""
    value, left = F.col(column) * F.lit(2.0**shift), f"{column}_left"
    df = df.withColumn(left, F.when(F.abs(value) < F.lit(LIMIT), value))
    for k, name in reversed(list(enumerate(names_of(column)))):
        df = df.withColumn(name, (F.col(left) * F.lit(1 / WEIGHTS[k])).cast("bigint"))
        df = df.withColumn(left, F.col(left) - F.col(name).cast("double") * F.lit(WEIGHTS[k]))
    return df


def finished_digits(df: DataFrame, cut_columns: Sequence[str], column: str) -> DataFrame:
    """Digits only of values of which nothing is left; all others are beyond."""
    fits = F.lit(True)
    for one in cut_columns:
        fits = fits & F.coalesce(F.col(f"{one}_left") == F.lit(0.0), F.lit(False))
    df = df.withColumn(f"{column}_beyond", F.when(~fits, F.col(column)))
    ordinary = F.col(f"{column}_beyond").isNull()
    for name in (name for one in cut_columns for name in names_of(one)):
        df = df.withColumn(name, F.when(ordinary, F.col(name)))
    return df.drop(*(f"{one}_left" for one in cut_columns))


# ---- ranges and digits of single values ----------------------------------------------------------


def float_range(value: Column) -> Column:
    """The range of a value; NULL for NULL."""
    return arrow_function(ranges_of_values, Type.LLONG)(value)


def ranges_of_values(values: pa.Array) -> pa.Array:
    found = ranges_of(as_floats(values))
    ranges = np.zeros(len(values), np.int64) if found is None else found
    return pa.array(ranges, mask=nulls(values))


def float_digit(operands: Sequence[Operand], type: Type) -> Column:
    """A digit of a value, whatever its range is; the place is constant."""
    place = operands[1].value

    def of_values(values: pa.Array) -> pa.Array:
        digits = [to_digits(value)[1][place] for value in as_floats(values).tolist()]
        return pa.array(np.array(digits, np.int64), mask=nulls(values))

    return arrow_function(of_values, type)(operands[0].column)


def float_total(operands: Sequence[Operand], type: Type) -> Column:
    """The sum that the digits of a group stand for."""

    def of_groups(*parts: pa.Array) -> pa.Array:
        ranges, *digits = (as_numbers(part) for part in parts)
        missing = np.logical_or.reduce([nulls(part) for part in parts])
        return pa.array(totals(ranges, digits), mask=missing)

    return arrow_function(of_groups, type)(*(operand.column for operand in operands))


def as_floats(values: pa.Array) -> NDArray[np.float64]:
    """FLOATs, zero for NULL."""
    return np.asarray(values.fill_null(0.0).to_numpy(zero_copy_only=False), np.float64)


def nulls(values: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False))


# ---- sums ----------------------------------------------------------------------------------------


def float_sum_parts(of: FloatDigits) -> tuple[Column, ...]:
    """The aggregates: sums of digits, and the values beyond."""
    sums = (F.sum(digit) for digits in of.digits for digit in digits)
    return (*sums, F.collect_list(of.beyond))


def merged_float_sum_parts(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The same over rows of ranges and digits."""
    range_, *digits = columns
    ordinary = range_ == number(ORDINARY)
    row = F.struct(range_.alias("range"), *(d.alias(f"d{k}") for k, d in enumerate(digits)))
    beyond = F.collect_list(F.when(~ordinary, row))
    return (*(F.sum(F.when(ordinary, digit)) for digit in digits), beyond)


def finished_sum(parts: Sequence[Column]) -> Column:
    """The sum, from sums of digits and the list of what is beyond; NULL without any value."""
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
    """A value beyond, or a row of digits."""
    if isinstance(one, float):
        return exact(one)
    return from_digits(one["range"], [one[f"d{k}"] for k in range(DIGITS)])


def finished_list(values: Column) -> Column:
    """The sum of the FLOATs in a list; NULL of an empty one."""
    return arrow_function(sums_of_lists, Type.FLOAT)(values)


def sums_of_lists(lists: pa.Array) -> pa.Array:
    sums: list[float | None] = []
    for values in lists.to_pylist():
        whole = NOTHING
        for value in values:
            whole = added(whole, exact(value))
        sums.append(rounded(whole) if values else None)
    return pa.array(sums, pa.float64())


# ---- moments -------------------------------------------------------------------------------------


def finished_float_moments(function: Spread) -> Callable[[Sequence[Column]], Column]:
    """Of a count, the sums of digits of values, squares and rests, and what is beyond."""

    def of_groups(*parts: pa.Array) -> pa.Array:
        counted, *digits, beyond = parts
        rows = zip(as_numbers(counted).tolist(), *(as_numbers(d).tolist() for d in digits),
                   beyond.to_pylist(), strict=True)  # fmt: skip
        return pa.array([function.finish(float_moments(*row)) for row in rows], pa.float64())

    return lambda parts: arrow_function(of_groups, Type.FLOAT)(*parts)


def float_moments(count: int, *sums: int | list[float]) -> Moments:
    *digits, beyond = sums
    assert isinstance(beyond, list)
    whole = [int(d) for d in digits if not isinstance(d, list)]
    value, square, rest = (
        from_digits(ORDINARY, whole[at : at + DIGITS])[0] for at in range(0, 3 * DIGITS, DIGITS)
    )
    # From units of 2^-1074 to those of squares, 2^-2148.
    squares = (square << (1074 - SQUARE_SHIFT)) + (rest << (1074 - REST_SHIFT))
    found: Moments = count - len(beyond), value, squares, 0, True
    for one in beyond:
        found = moments_together(found, moments(one))
    return found


def integer_moments_parts(value: Column) -> tuple[Column, ...]:
    """Sums of what the square of value = high * 2^32 + low is made of, in halves: none overflows
    however many there are.
    """
    low = F.call_function("shiftright", F.call_function("shiftleft", value, F.lit(32)), F.lit(32))
    carry = F.when(low < number(0), number(1)).otherwise(number(0))
    high = F.call_function("shiftright", value, F.lit(32)) + carry
    parts = [high, low]
    for product in (high * high, high * low, low * low):
        parts.append(F.call_function("shiftright", product, F.lit(32)))
        parts.append(product.bitwiseAND(number(0xFFFFFFFF)))
    return (F.count(value), *(F.sum(part) for part in parts))


def finished_integer_moments(function: Spread) -> Callable[[Sequence[Column]], Column]:
    def of_groups(*parts: pa.Array) -> pa.Array:
        rows = zip(*(as_numbers(part).tolist() for part in parts), strict=True)
        return pa.array([function.finish(integer_moments(*row)) for row in rows], pa.float64())

    return lambda parts: arrow_function(of_groups, Type.FLOAT)(*parts)


def integer_moments(count: int, high: int, low: int, *halves: int) -> Moments:
    top, middle, bottom = ((halves[i] << 32) + halves[i + 1] for i in (0, 2, 4))
    return count, (high << 32) + low, (top << 64) + (middle << 33) + bottom, 0, False
