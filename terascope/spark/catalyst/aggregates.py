"""AggCall -> what Spark aggregates, and the value that follows from it.

In: an aggregate call whose arguments are Columns. Out: an `Aggregated`: the aggregate Columns of
the GROUP BY, and how its value is made of their results. The exact aggregates are native; every
other collects its arguments and folds them with its own Python methods (aggregate_python).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.functions.aggregates.float_sums import FLOAT_DIGIT
from terascope.functions.aggregates.rank import Rank
from terascope.functions.aggregates.spread import Spread
from terascope.functions.base import Value
from terascope.functions.overflow import overflow_message
from terascope.plan.expr import AggCall, Call
from terascope.spark.catalyst.float_sums import (
    FloatDigits,
    finished_float_moments,
    finished_integer_moments,
    finished_list,
    finished_sum,
    float_sum_parts,
    integer_moments_parts,
    merged_float_sum_parts,
)
from terascope.spark.catalyst.operands import number
from terascope.spark.mistakes import marked_line
from terascope.types import INT_MAX, INT_MIN, Type

Finish: TypeAlias = Callable[[Sequence[Column]], Column]


@dataclass(frozen=True)
class Aggregated:
    """Columns for agg(), and the value made of what they give."""

    parts: tuple[Column, ...]
    finish: Finish


@dataclass(frozen=True)
class Arguments:
    """What an aggregate call has to work on."""

    call: AggCall
    columns: tuple[Column, ...]
    order: tuple[Column, ...]
    parameters: tuple[Value, ...]
    """The constants of the call: those for the state, then those for the end."""
    digits: FloatDigits | None = None
    """Of a sum of FLOATs: the columns it is made of."""
    written: str = ""
    """The call as a user writes it, for messages."""

    @property
    def value(self) -> Column:
        return self.columns[0]

    @property
    def is_float(self) -> bool:
        return self.call.args[0].type is Type.FLOAT

    @property
    def float_digits(self) -> FloatDigits:
        assert self.digits is not None
        return self.digits

    @property
    def is_bool(self) -> bool:
        return self.call.args[0].type is Type.BOOL


Recipe: TypeAlias = Callable[[Arguments], Aggregated | None]
"""None where the call has no native form."""


def itself(parts: Sequence[Column]) -> Column:
    return parts[0]


def lone(make: Callable[[Arguments], Column]) -> Recipe:
    """An aggregate that is one of Spark's; the same with DISTINCT or without."""
    return lambda a: Aggregated((make(a),), itself)


def plain(make: Callable[[Arguments], Column]) -> Recipe:
    """The same for one that DISTINCT would change."""
    return lambda a: None if a.call.distinct else Aggregated((make(a),), itself)


# ---- counting ------------------------------------------------------------------------------------


def count(a: Arguments) -> Aggregated:
    if not a.columns:
        return Aggregated((F.count(F.lit(1)),), itself)
    made = F.count_distinct(a.value) if a.call.distinct else F.count(a.value)
    return Aggregated((made,), itself)


def count_dups(a: Arguments) -> Aggregated | None:
    if a.call.distinct:
        return None
    return Aggregated((F.count(a.value), F.count_distinct(a.value)), lambda p: p[0] - p[1])


# ---- sums ----------------------------------------------------------------------------------------
# Spark's SUM of integers fails as soon as a partial sum overflows, and so depends on the order of
# the tuples. Summed in halves, only the whole sum decides.


def halves(value: Column) -> tuple[Column, Column]:
    high = F.call_function("shiftright", value, F.lit(32))
    low = value.bitwiseAND(number(0xFFFFFFFF))
    return F.sum(high), F.sum(low)


def carried(high: Column, low: Column) -> tuple[Column, Column]:
    """The sum as high * 2^32 + low with 0 <= low < 2^32."""
    carry = F.call_function("shiftright", low, F.lit(32))
    return high + carry, low.bitwiseAND(number(0xFFFFFFFF))


def whole_sum(written: str) -> Finish:
    def finish(parts: Sequence[Column]) -> Column:
        high, low = carried(parts[0], parts[1])
        total = F.call_function("shiftleft", high, F.lit(32)).bitwiseOR(low)
        fits = high.between(number(-(2**31)), number(2**31 - 1))
        return F.when(fits, total).when(high.isNotNull(), overflow(written))

    return finish


def overflow(written: str) -> Column:
    message = marked_line("value", overflow_message(written))
    return F.raise_error(F.lit(message)).cast("bigint")


def total(a: Arguments) -> Aggregated:
    if a.is_float:
        if a.call.distinct:
            return Aggregated((F.collect_set(a.value),), lambda p: finished_list(p[0]))
        return Aggregated(float_sum_parts(a.float_digits), finished_sum)
    if is_digit(a.call):
        return Aggregated((F.sum(a.value),), itself)
    if not a.call.distinct:
        return Aggregated(halves(a.value), whole_sum(a.written))

    def finish(parts: Sequence[Column]) -> Column:
        fits = parts[0].between(number(INT_MIN), number(INT_MAX))
        wrong = overflow(a.written)
        return F.when(fits, parts[0].cast("bigint")).when(parts[0].isNotNull(), wrong)

    return Aggregated((F.sum_distinct(a.value.cast("decimal(20,0)")),), finish)


def is_digit(call: AggCall) -> bool:
    """Whether digits of FLOATs are summed, which have room for all tuples of a group."""
    argument = call.args[0]
    return isinstance(argument, Call) and argument.function is FLOAT_DIGIT


def running_total(a: Arguments) -> Aggregated:
    summed = total(a)
    return Aggregated(summed.parts, lambda parts: F.coalesce(summed.finish(parts), number(0)))


def mean(a: Arguments) -> Aggregated:
    if a.is_float:
        summed = total(a)
        counted = F.count_distinct(a.value) if a.call.distinct else F.count(a.value)
        return Aggregated((*summed.parts, counted), lambda p: ratio(summed.finish(p[:-1]), p[-1]))
    if a.call.distinct:
        parts = (F.sum_distinct(a.value.cast("decimal(20,0)")), F.count_distinct(a.value))
        return Aggregated(parts, lambda p: ratio(p[0].cast("double"), p[1]))

    def finish(parts: Sequence[Column]) -> Column:
        high, low = carried(parts[0], parts[1])
        exact = high.cast("double") * F.lit(2.0**32) + low.cast("double")
        return ratio(exact, parts[2])

    return Aggregated((*halves(a.value), F.count(a.value)), finish)


def ratio(summed: Column, counted: Column) -> Column:
    return summed / F.nullif(counted, number(0)).cast("double")


def moments(a: Arguments) -> Aggregated | None:
    """Variance and deviation."""
    function = a.call.function
    if a.call.distinct or not isinstance(function, Spread):
        return None
    if a.is_float:
        parts = (F.count(a.value), *float_sum_parts(a.float_digits))
        return Aggregated(parts, finished_float_moments(function))
    return Aggregated(integer_moments_parts(a.value), finished_integer_moments(function))


# ---- order ---------------------------------------------------------------------------------------


def place_in_stream(a: Arguments) -> Column:
    """What puts tuples in stream order: NULLs last. Without one, the value itself, so that the
    answer is at least always the same.
    """
    parts: list[Column] = []
    for i, column in enumerate(a.order or a.columns):
        parts += [F.isnull(column).alias(f"n{i}"), column.alias(f"v{i}")]
    return F.struct(*parts)


def extreme(pick: Callable[[Column], Column]) -> Recipe:
    """Of -0.0 and 0.0, which are equal, Spark keeps the one that came first: both become 0.0."""

    def recipe(a: Arguments) -> Aggregated:
        found = pick(a.value)
        return Aggregated((found,), lambda p: p[0] + F.lit(0.0) if a.is_float else p[0])

    return recipe


def first_in_order(pick: Callable[[Column, Column], Column]) -> Recipe:
    def recipe(a: Arguments) -> Aggregated:
        place = F.when(a.value.isNotNull(), place_in_stream(a))
        return Aggregated((pick(a.value, place),), itself)

    return recipe


def ranked(a: Arguments) -> Aggregated | None:
    """The value at a share of all values put in order."""
    function = a.call.function
    if a.call.distinct or not isinstance(function, Rank):
        return None
    share = F.lit(float(function.share(*a.parameters)))

    def finish(parts: Sequence[Column]) -> Column:
        values = F.sort_array(parts[0])
        at = F.greatest(F.lit(1), F.ceil(share * F.size(values)).cast("int"))
        found = F.try_element_at(values, at)
        return found + F.lit(0.0) if a.is_float else found  # -0.0 equals 0.0

    return Aggregated((F.collect_list(a.value),), finish)


# ---- bits ----------------------------------------------------------------------------------------


def bits(on_integers: Callable[[Column], Column], on_bools: Callable[[Column], Column]) -> Recipe:
    return lone(lambda a: on_bools(a.value) if a.is_bool else on_integers(a.value))


def exclusive_or(a: Arguments) -> Aggregated | None:
    if a.call.distinct:
        return None
    if a.is_bool:
        return Aggregated((F.bit_xor(a.value.cast("int")),), lambda p: p[0] != F.lit(0))
    return Aggregated((F.bit_xor(a.value),), itself)


RECIPES: Mapping[str, Recipe] = {
    "count": count,
    "running_count": count,
    "sum": total,
    "running_sum": running_total,
    "min": extreme(F.min),
    "max": extreme(F.max),
    "avg": mean,
    "posavg": mean,  # its argument is NULL where the value is negative
    "first": first_in_order(F.min_by),
    "last": first_in_order(F.max_by),
    "var_samp": moments,
    "var_pop": moments,
    "stddev_samp": moments,
    "stddev_pop": moments,
    "float_range": lambda a: Aggregated((), lambda _: a.value),  # it is a key of the groups
    "float_sum": lambda a: Aggregated(merged_float_sum_parts(a.columns), finished_sum),
    "median": ranked,
    "percentile": ranked,
    "quantile_of": ranked,
    "count_distinct": lone(lambda a: F.count_distinct(a.value)),
    "count_dups": count_dups,
    "or_aggr": bits(F.bit_or, F.bool_or),
    "and_aggr": bits(F.bit_and, F.bool_and),
    "xor_aggr": exclusive_or,
}


def native_aggregate(a: Arguments) -> Aggregated | None:
    """The aggregate in Spark's own terms, or None when only Python knows how."""
    function = a.call.function
    if function.user_defined or function.name not in RECIPES:
        return None
    if a.call.args and a.call.args[0].type is Type.NULL:
        return None
    return RECIPES[function.name](a)
