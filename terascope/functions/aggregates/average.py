"""AVG, and POSAVG for values whose negatives mean that nothing was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from terascope.functions.aggregates.counting import Count
from terascope.functions.aggregates.float_sums import float_sum_part
from terascope.functions.aggregates.folding import PlainAggregate
from terascope.functions.aggregates.total import (
    Sum,
    Total,
    carried,
    half_sums,
    is_total,
    is_wide,
    plus,
    spark_carried,
    spark_half_sums,
    together,
)
from terascope.functions.base import (
    FIRST,
    Apply,
    Constant,
    Decomposition,
    Place,
    Value,
    single,
)
from terascope.functions.exact_floats import rounded
from terascope.functions.operators import operators
from terascope.functions.scalars.logic import if_
from terascope.functions.signatures import NUMBER
from terascope.functions.spark_form import SparkCall, SparkColumn, SparkForm
from terascope.functions.values import compare
from terascope.types import Type

State: TypeAlias = tuple[Total | None, int]
"""Sum and count. The sum is exact; it is rounded once, before the division."""


class Average(PlainAggregate):
    name = "avg"
    takes = (NUMBER,)
    returns = Type.FLOAT
    kind = "algebraic"
    sampling = "keep"
    counts_true = True
    adds_floats = "values"
    doc = "the mean, as FLOAT; of BOOLs, the share that is TRUE"

    def zero(self, *parameters: Value) -> State:
        return None, 0

    def reduce(self, state: State, *args: Value) -> State:
        total, count = state
        return plus(total, args[0]), count + 1

    def merge(self, left: State, right: State) -> State:
        return together(left[0], right[0]), left[1] + right[1]

    def finish(self, state: State, *parameters: Value) -> float | None:
        total, count = state
        if total is None:
            return None
        return (rounded(total) if isinstance(total, tuple) else float(total)) / count

    def is_state(self, state: Value) -> bool:
        if not isinstance(state, tuple) or len(state) != 2:
            return False
        total, count = state
        return is_total(total) if count else total is None

    def spark(self, call: SparkCall) -> SparkForm | None:
        F, value = call.F, call.value
        counted = F.count_distinct(value) if call.distinct else F.count(value)
        if call.type is Type.FLOAT:
            summed = call.float_sum()
            made = summed.finish
            return SparkForm(
                (*summed.parts, counted), lambda p: spark_ratio(call, made(p[:-1]), p[-1])
            )
        if call.distinct:
            parts = (F.sum_distinct(value.cast("decimal(20,0)")), counted)
            return SparkForm(parts, lambda p: spark_ratio(call, p[0].cast("double"), p[1]))

        def finish(parts: Sequence[SparkColumn]) -> SparkColumn:
            upper, lower = spark_carried(call, parts[0], parts[1])
            exact = upper.cast("double") * F.lit(2.0**32) + lower.cast("double")
            return spark_ratio(call, exact, parts[2])

        return SparkForm((*spark_half_sums(call), counted), finish)

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        """SUM and COUNT; the sum of 64-bit values, such as nanosecond clocks, in two halves."""
        (type_,) = args
        count = single(Count(), Sum(), FIRST)
        if type_ is Type.FLOAT:
            mean = Apply(operators["/"], (FIRST, Place(1)))
            return Decomposition((float_sum_part(Sum()), count), mean)
        if not is_wide(type_):
            mean = Apply(operators["/"], (FIRST, Place(1)))
            return Decomposition((single(Sum(), Sum(), FIRST), count), mean)
        upper, lower = carried(type_)
        scaled = Apply(operators["*"], (upper, Constant(2.0**32, Type.FLOAT)))
        total = Apply(operators["+"], (scaled, lower))
        mean = Apply(operators["/"], (total, Place(2)))
        return Decomposition((*half_sums(type_), count), mean)


def spark_ratio(call: SparkCall, summed: SparkColumn, counted: SparkColumn) -> SparkColumn:
    return summed / call.F.nullif(counted, call.number(0)).cast("double")


class AverageOfPositives(Average):
    name = "posavg"
    counts_true = False
    argument = Apply(
        if_,
        (Apply(operators[">="], (FIRST, Constant(0, Type.INT))), FIRST, Constant(None, Type.NULL)),
    )
    doc = "the mean of the values that are not negative"

    def reduce(self, state: State, *args: Value) -> State:
        return super().reduce(state, *args) if compare(args[0], 0) >= 0 else state

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        return None


AGGREGATES: Final = (Average(), AverageOfPositives())
SYNONYMS: Final = {"average": "avg"}
