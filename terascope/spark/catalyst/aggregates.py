"""AggCall -> the aggregates of Spark, and the value computed from them.

In: an aggregate call whose arguments are Columns. Out: a `SparkForm`: the aggregate Columns of the
GROUP BY, and the function from their results to the value. The aggregate declares its form
(terascope.functions.spark_form). An aggregate without a form collects the arguments of a group,
sorts them and folds them with its own Python methods in an Arrow UDF. The state machine of
CLOSING_WHEN uses the same fold, over lists of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.functions.aggregates.float_sums import FLOAT_DIGIT
from terascope.functions.aggregates.spread import Moments
from terascope.functions.base import AggregateFunction, State, Value
from terascope.functions.overflow import overflow_message
from terascope.functions.spark_form import SparkForm
from terascope.functions.values import distinct_key
from terascope.plan.expr import AggCall, Call
from terascope.spark.catalyst.float_sums import (
    FloatDigits,
    finished_list,
    finished_moments,
    finished_sum,
    float_moments,
    float_sum_parts,
    integer_moments,
    integer_moments_parts,
    merged_float_sum_parts,
)
from terascope.spark.catalyst.frame import arrow_function, number
from terascope.spark.mistakes import marked_line, telling
from terascope.types import Type

ORDER = "o"


@dataclass(frozen=True)
class Arguments:
    """The arguments of an aggregate call: a `SparkCall`."""

    call: AggCall
    columns: tuple[Column, ...]
    order: tuple[Column, ...]
    parameters: tuple[Value, ...]
    """The constants of the call: those for the state, then those for the result."""
    digits: FloatDigits | None = None
    """The columns of the digits, for a sum of FLOATs."""
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
        """The columns that put tuples in stream order, NULLs last. Without any, the value itself,
        so that the answer is deterministic.
        """
        parts: list[Column] = []
        for i, column in enumerate(self.order or self.columns):
            parts += [F.isnull(column).alias(f"n{i}"), column.alias(f"v{i}")]
        return F.struct(*parts)

    @property
    def cannot_overflow(self) -> bool:
        """Whether the sum cannot overflow: digits of FLOATs have room for all tuples of a group."""
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
            parts = integer_moments_parts(self.value)
            return SparkForm(parts, finished_moments(finish, integer_moments))
        parts = (F.count(self.value), *float_sum_parts(self.digits))
        return SparkForm(parts, finished_moments(finish, float_moments))


def aggregated(a: Arguments) -> SparkForm:
    """The aggregate as Spark aggregates, or as a fold in Python where it has no such form."""
    has_form = not a.call.args or a.type is not Type.NULL
    return (a.call.function.spark(a) if has_form else None) or python_aggregate(a)


@dataclass
class GroupFold:
    """One aggregate of one group: takes tuples of arguments, returns the value. Picklable."""

    function: AggregateFunction
    arity: int
    distinct: bool
    parameters: tuple[Value, ...]
    state: State = None
    seen: set[tuple[Value, ...]] = field(default_factory=set)

    def restart(self) -> None:
        self.state = self.function.zero(*self.parameters[: self.function.state_parameters])
        self.seen = set()

    def take(self, rows: Iterable[Mapping[str, Value]]) -> None:
        """Reduce collected arguments, which are in stream order."""
        for row in rows:
            values = [row[argument(i)] for i in range(self.arity)]
            if self.function.skips_null and None in values:
                continue
            if self.distinct:
                key = tuple(distinct_key(v) for v in values)
                if key in self.seen:
                    continue
                self.seen.add(key)
            self.state = self.function.reduce(self.state, *values)

    def value(self) -> Value:
        return self.function.finish(self.state, *self.parameters[self.function.state_parameters :])

    def end_epoch(self) -> None:
        """End an epoch: running aggregates keep their state, the others begin anew."""
        if self.function.running:
            self.state = self.function.next_epoch(self.state)
        else:
            self.restart()


def argument(place: int) -> str:
    return f"a{place}"


def fold_of(a: Arguments) -> GroupFold:
    return GroupFold(a.call.function, len(a.columns), a.call.distinct, a.parameters)


def empty_value(a: Arguments) -> Value:
    """The value of the aggregate over no tuple."""
    fold = fold_of(a)
    fold.restart()
    return fold.value()


def collected(a: Arguments) -> Column:
    """The arguments of all tuples of a group, each with its place in the stream."""
    row = F.struct(
        a.place.alias(ORDER) if a.columns or a.order else F.lit(0).alias(ORDER),
        *(c.alias(argument(i)) for i, c in enumerate(a.columns)),
    )
    if a.call.function.skips_null:
        for column in a.columns:
            row = F.when(column.isNotNull(), row)
    return F.collect_list(row)


def in_order(a: Arguments, rows: Column) -> Column:
    """The collected arguments, sorted, without their places."""
    arranged = F.sort_array(rows)
    if not a.columns:
        return arranged
    names = [argument(i) for i in range(len(a.columns))]
    return F.transform(arranged, lambda row: F.struct(*(row[n].alias(n) for n in names)))


def python_aggregate(a: Arguments) -> SparkForm:
    fold, result_type = fold_of(a), arrow_type(a.call.type)
    where = f"aggregate {a.call.function.name}"

    def on_groups(groups: pa.Array) -> pa.Array:
        values: list[Value] = []
        with telling(where):
            for rows in groups.to_pylist():
                fold.restart()
                fold.take(rows)
                values.append(fold.value())
            return pa.array(values, result_type)

    folded = arrow_function(on_groups, a.call.type)

    def finish(parts: Sequence[Column]) -> Column:
        return folded(in_order(a, parts[0]))

    return SparkForm((collected(a),), finish)
