"""AggCall -> what Spark aggregates, and the value that follows from it.

In: an aggregate call whose arguments are Columns. Out: a `SparkForm`: the aggregate Columns of the
GROUP BY, and how its value is made of their results. The aggregate says it of itself
(terascope.functions.spark_form); one that has no such form collects its arguments and folds them
with its own Python methods (aggregate_python).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.functions.aggregates.float_sums import FLOAT_DIGIT
from terascope.functions.aggregates.spread import Moments
from terascope.functions.base import Value
from terascope.functions.overflow import overflow_message
from terascope.functions.spark_form import SparkForm
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
from terascope.types import Type


@dataclass(frozen=True)
class Arguments:
    """What an aggregate call has to work on: a `SparkCall`."""

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
    def F(self) -> Any:
        return F

    @property
    def value(self) -> Column:
        return self.columns[0]

    @property
    def type(self) -> Type:
        return self.call.args[0].type

    @property
    def distinct(self) -> bool:
        return self.call.distinct

    @property
    def place(self) -> Column:
        """What puts tuples in stream order: NULLs last. Without one, the value itself, so that the
        answer is at least always the same.
        """
        parts: list[Column] = []
        for i, column in enumerate(self.order or self.columns):
            parts += [F.isnull(column).alias(f"n{i}"), column.alias(f"v{i}")]
        return F.struct(*parts)

    @property
    def cannot_overflow(self) -> bool:
        """Digits of FLOATs have room for all tuples of a group."""
        argument = self.call.args[0]
        return isinstance(argument, Call) and argument.function == FLOAT_DIGIT

    def number(self, value: int) -> Column:
        return number(value)

    def overflow(self) -> Column:
        message = marked_line("value", overflow_message(self.written))
        return F.raise_error(F.lit(message)).cast("bigint")

    def float_sum(self) -> SparkForm:
        if self.distinct:
            return SparkForm((F.collect_set(self.value),), lambda p: finished_list(p[0]))
        assert self.digits is not None
        return SparkForm(float_sum_parts(self.digits), finished_sum)

    def merged_float_sum(self) -> SparkForm:
        return SparkForm(merged_float_sum_parts(self.columns), finished_sum)

    def moments(self, finish: Callable[[Moments], float | None]) -> SparkForm:
        if self.digits is None:
            return SparkForm(integer_moments_parts(self.value), finished_integer_moments(finish))
        parts = (F.count(self.value), *float_sum_parts(self.digits))
        return SparkForm(parts, finished_float_moments(finish))


def native_aggregate(a: Arguments) -> SparkForm | None:
    """The aggregate in Spark's own terms, or None when only Python knows how."""
    if a.call.args and a.type is Type.NULL:
        return None
    return a.call.function.spark(a)
