"""GROUP BY in Spark, with grouping sets and empty windows.

In: an Aggregate and the Frame below it. Out: a Frame of its groups. Keys and arguments are computed
first, each different expression once, so that the GROUP BY itself sees plain columns.

An aggregation that sums FLOATs becomes two where all its aggregates split: one whose groups have a
row for each range of their values (terascope.functions.exact_floats), and its merge. Tuples are
then added to integers only, which Spark does in generated code; in one step, each group would have
to hold a list for values of other ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from terascope.functions.aggregates.float_sums import FLOAT_DIGIT
from terascope.functions.base import AggregateFunction
from terascope.functions.spark_form import SparkForm
from terascope.physical.split.split_aggregation import CallSplitter, SplitCall, merged_again
from terascope.plan.build import term_expr
from terascope.plan.evaluate import Parameters, constant_value
from terascope.plan.expr import AggCall, Call, Col, Expr
from terascope.plan.rel import WEND, WSTART, Aggregate, Named, NamedAgg, Read, Sliding, WindowSpec
from terascope.plan.show import written_agg
from terascope.spark.catalyst.aggregates import (
    Arguments,
    aggregated,
    empty_value,
)
from terascope.spark.catalyst.expressions import Translator
from terascope.spark.catalyst.float_sums import (
    Columns,
    FloatDigits,
    add_digits,
    digit_name,
    digits_of,
    range_name,
)
from terascope.spark.catalyst.frame import Frame, literal, null, place, project
from terascope.spark.catalyst.windows import ENDS, STARTS, windows_between
from terascope.types import Type


class Prepared:
    """The input of a GROUP BY: its keys as k0, k1, ..., its arguments as x0, x1, ..."""

    def __init__(
        self,
        source: Frame,
        keys: Sequence[Named],
        aggs: Sequence[NamedAgg],
        parameters: Parameters,
    ) -> None:
        self.parameters = parameters
        self._translator = Translator(source.columns, parameters)
        self._names: dict[Expr, str] = {}
        self.ranges: dict[str, Column] = {}
        """The ranges of FLOATs whose digits are summed; they are keys of the groups."""
        self._selected: list[Column] = []
        self.keys = [F.col(f"k{i}") for i in range(len(keys))]
        for i, (_, key) in enumerate(keys):
            self._selected.append(self._translator.column(key).alias(f"k{i}"))
        self._types = {f.name: f.type for f in source.fields}
        self._digits: dict[tuple[str, str], tuple[FloatDigits, Columns]] = {}
        self._in_digits: dict[str, None] = {}
        self.arguments = [self._arguments(name, call) for name, call in aggs]
        # With neither keys nor arguments there still are tuples to count.
        self.df = source.df.select(*self._selected or [F.lit(0).alias("x")])
        for name in self._in_digits:
            self.df = add_digits(self.df, name)
        for _, make in self._digits.values():
            self.df = make(self.df)

    def _arguments(self, column: str, call: AggCall) -> Arguments:
        names = [self._value(arg, call.function) for arg in call.args]
        return Arguments(
            call,
            tuple(map(F.col, names)),
            tuple(self.argument(Col(name, self._types[name])) for name in call.order),
            tuple(constant_value(p, self.parameters) for p in call.parameters),
            self._digits_of(call, names),
            written_agg(call, column),
        )

    def argument(self, expr: Expr) -> Column:
        return F.col(self._argument(expr))

    def _value(self, expr: Expr, function: AggregateFunction) -> str:
        """The name of the value that an aggregate takes from an argument."""
        if function.splits_groups:
            found = range_name(self._taken_apart(expr))
            self.ranges.setdefault(found, F.col(found))
            return found
        term = function.argument
        return self._argument(expr if term is None else term_expr(term, (expr,)))

    def _argument(self, expr: Expr) -> str:
        if isinstance(expr, Call) and expr.function is FLOAT_DIGIT:
            value, place = expr.args
            return digit_name(self._taken_apart(value), constant_value(place, self.parameters))
        if expr not in self._names:
            name = self._names[expr] = f"x{len(self._names)}"
            self._selected.append(self._translator.column(expr).alias(name))
        return self._names[expr]

    def _taken_apart(self, value: Expr) -> str:
        """The name of a FLOAT whose range and digits are columns, too."""
        name = self._argument(value)
        self._in_digits.setdefault(name)
        return name

    def _digits_of(self, call: AggCall, names: Sequence[str]) -> FloatDigits | None:
        added = call.function.adds_floats
        if added is None or call.distinct or call.args[0].type is not Type.FLOAT:
            return None
        key = names[0], added
        if key not in self._digits:
            self._digits[key] = digits_of(*key)
        return self._digits[key][0]


def aggregate_frame(rel: Aggregate, source: Frame, parameters: Parameters) -> Frame:
    steps = in_two_steps(rel)
    if steps is None:
        return in_one_step(rel, source, parameters)
    subs, merge, values = steps
    merged = in_one_step(merge, in_one_step(subs, source, parameters), parameters)
    translator = Translator(merged.columns, parameters)
    return project(merged.df, [translator.column(expr) for expr in values], rel.fields)


def in_one_step(rel: Aggregate, source: Frame, parameters: Parameters) -> Frame:
    prepared = Prepared(source, rel.keys, rel.aggs, parameters)
    parts = [aggregated(a) for a in prepared.arguments]
    sets = [[name for name, _ in rel.keys]] if rel.sets is None else [list(s) for s in rel.sets]
    frames = [grouped(rel, prepared, parts, key_set) for key_set in sets]
    df = reduce(DataFrame.union, (f.df for f in frames))
    frame = Frame(df, rel.fields)
    if rel.emit_empty is not None:
        frame = with_empty(rel, frame, rel.emit_empty, prepared.arguments)
    return frame


def grouped(
    rel: Aggregate, prepared: Prepared, parts: Sequence[SparkForm], key_set: Iterable[str]
) -> Frame:
    """The groups of one grouping set; keys that are not in it are NULL."""
    names = set(key_set)
    used = [k for k, (name, _) in zip(prepared.keys, rel.keys, strict=True) if name in names]
    df = group_by(prepared.df, [*used, *prepared.ranges.values()], parts)
    keys = [
        column if name in names else null(key.type)
        for column, (name, key) in zip(prepared.keys, rel.keys, strict=True)
    ]
    return project(df, [*keys, *finished(parts)], rel.fields)


def group_by(df: DataFrame, keys: Sequence[Column], parts: Sequence[SparkForm]) -> DataFrame:
    """One row per group: the keys, and part j of aggregate i as p{i}_{j}."""
    columns = [
        part.alias(f"p{i}_{j}") for i, agg in enumerate(parts) for j, part in enumerate(agg.parts)
    ]
    if keys:
        return df.groupBy(*keys).agg(*columns) if columns else df.select(*keys).distinct()
    # Without keys Spark gives a row of no tuple, GSQL does not.
    counted = df.agg(*columns, F.count(F.lit(1)).alias("tuples"))
    return counted.filter(F.col("tuples") > 0)


def finished(parts: Sequence[SparkForm]) -> list[Column]:
    return [
        agg.finish([F.col(f"p{i}_{j}") for j in range(len(agg.parts))])
        for i, agg in enumerate(parts)
    ]


def with_empty(
    rel: Aggregate, frame: Frame, spec: WindowSpec | str, arguments: Sequence[Arguments]
) -> Frame:
    """Also a row for each window, or epoch, between the first and the last that has no tuple."""
    if isinstance(spec, str):
        # An epoch n is the window [n, n+1) of windows that stand next to each other.
        spec, names = Sliding(1, 1), [STARTS]
    else:
        sources = [e.name if isinstance(e, Col) else name for name, e in rel.keys]
        names = [{WSTART: STARTS, WEND: ENDS}[name] for name in sources]
    present = frame.df.select(F.col(place(names.index(STARTS))).alias(STARTS))
    missing = windows_between(present, spec).join(present, STARTS, "left_anti")
    values = [literal(empty_value(a), a.call.type) for a in arguments]
    empty = project(missing, [*map(F.col, names), *values], rel.fields)
    return Frame(frame.df.union(empty.df), rel.fields)


def in_two_steps(rel: Aggregate) -> tuple[Aggregate, Aggregate, list[Expr]] | None:
    """An aggregation, one over its rows, and the columns of `rel` from those of the second."""
    calls = [call for _, call in rel.aggs]
    if rel.emit_empty is not None or any(call.order for call in calls):
        return None
    if not any(map(is_float_sum, calls)):
        return None
    how = CallSplitter(finer=True)
    splits = [made for call in calls if isinstance(made := how.split(call), SplitCall)]
    if len(splits) < len(calls) or not all(split.subs for split in splits):
        return None
    subs = named("sub", [c for split in splits for sub in split.subs for c in sub.calls])
    names = {call: name for name, call in subs}
    below = replace(rel, aggs=tuple(subs), sets=None)
    merges = [
        merged_again(split, [Col(names[c], c.type) for sub in split.subs for c in sub.calls])
        for split in splits
    ]
    whole = {
        some[0]: name for (name, _), some in zip(rel.aggs, merges, strict=True) if len(some) == 1
    }
    merged = named("merged", [call for some in merges for call in some], whole)
    columns = {call: Col(name, call.type) for name, call in merged}
    keys = tuple((name, Col(name, expr.type)) for name, expr in rel.keys)
    values = [
        split.value([columns[call] for call in some], False)
        for split, some in zip(splits, merges, strict=True)
    ]
    above = replace(rel, source=Read("", below.fields), keys=keys, aggs=tuple(merged))
    return below, above, [*(expr for _, expr in keys), *values]


def named(
    prefix: str, calls: Sequence[AggCall], known: Mapping[AggCall, str] | None = None
) -> list[NamedAgg]:
    """Each different call once, with a name; `known`: names of calls given before."""
    names = known or {}
    return [(names.get(call, f"#{prefix}{i}"), call) for i, call in enumerate(dict.fromkeys(calls))]


def is_float_sum(call: AggCall) -> bool:
    summed = call.function.adds_floats == "values" and not call.distinct
    return summed and call.args[0].type is Type.FLOAT
