"""Aggregates that only Python knows, inside Spark.

In: an aggregate call. Out: an `SparkForm` that collects the arguments of a group, puts them in
order and folds them with the aggregate's own methods in an Arrow UDF. The same fold, over lists of
arguments, serves the state machine of CLOSING_WHEN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.functions.base import AggregateFunction, State, Value
from terascope.functions.spark_form import SparkForm
from terascope.functions.values import distinct_key
from terascope.spark.catalyst.aggregates import Arguments
from terascope.spark.catalyst.arrow_functions import arrow_function
from terascope.spark.mistakes import telling

ORDER = "o"


@dataclass
class GroupFold:
    """One aggregate of one group: takes tuples of arguments, gives the value. Picklable."""

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
        """Running aggregates go on, the others begin anew."""
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
    """What was collected, sorted; the places have then done their work."""
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
