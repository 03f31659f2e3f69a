"""CLOSING_WHEN over a stream without Spark: groups live on from one batch to the next.

In: the rows of the epochs that close, and the groups that were alive before them. Out: the segments
that the tasks of `terascope.spark.stream.engine` write. The life of groups and what is kept of
them are theirs; only the aggregation of each epoch, which Spark does for them, is done here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa

from terascope.functions.base import Value
from terascope.plan.evaluate import Parameters, compile_expr, constant_value
from terascope.plan.expr import AggCall
from terascope.plan.plan import Plan
from terascope.plan.rel import Running, Scan
from terascope.reference.aggregate import accumulators, aggregate_values
from terascope.reference.rows import Evaluation, Row, Rows, same_row, sort_key
from terascope.spark.catalyst.aggregates import GroupFold, argument
from terascope.spark.catalyst.running import RunningMember
from terascope.spark.stream.engine import LivingGroups
from terascope.streaming.stored_rows import state_fields


@dataclass(frozen=True)
class NoSources:
    def rows(self, scan: Scan) -> list[Row]:
        raise AssertionError(f"{scan} is no part of a closed epoch")

    def horizon(self, scan: Scan) -> Mapping[str, int]:
        return {}


@dataclass(frozen=True)
class PlainColumn:
    """A column of a batch, as far as living groups look at it."""

    values: tuple[Value, ...]

    def to_pylist(self) -> list[Value]:
        return list(self.values)


@dataclass(frozen=True)
class PlainBatch:
    rows: list[Row]

    @property
    def columns(self) -> list[PlainColumn]:
        return [PlainColumn(values) for values in zip(*self.rows, strict=True)]


def plain_step(
    rel: Running,
    source: Rows,
    alive: Rows,
    parameters: Parameters,
    low: int | None,
    until: int,
    key: str,
    store: Path,
    plan: Plan,
) -> list[tuple[str, str]]:
    """The epochs from `low` up to, and without, `until`; what a task tells of them."""
    context = Evaluation.of(plan, NoSources(), {})
    names = rel.source.names
    keys = [context.compile(expr, names) for _, expr in rel.keys]
    groups: dict[Row, list[Row]] = {}
    for row in source.tuples:
        epoch, *group = (of(row) for of in keys)
        if epoch is not None and epoch < until and (low is None or epoch >= low):
            groups.setdefault((*same_row(group), epoch), []).append(row)
    aggs = accumulators(rel.aggs, names, context)
    made: list[Row] = []
    for group_key, rows in sorted(groups.items(), key=lambda one: one[0][-1]):
        values = aggregate_values(aggs, rows)
        seen = [
            collected(call, rows, names, context) if call.function.running else value
            for (_, call), value in zip(rel.aggs, values, strict=True)
        ]
        made.append((*group_key, *seen, None))
    for *group, state in alive.tuples:
        made.append((*group, None, *(None for _ in rel.aggs), state))
    keyed = len(rel.keys) - 1
    made.sort(key=lambda row: row[-1] is None)  # the state of a group stands before its epochs
    made.sort(key=lambda row: [sort_key(v) for v in row[:keyed]])
    if not made:
        return []
    living = LivingGroups(
        rel.fields,
        len(rel.keys) - 1,
        [member(call, parameters) for _, call in rel.aggs],
        compile_expr(rel.closing, rel.names, parameters),
        until,
        state_fields=state_fields(rel),
        key=key,
        store=str(store),
    )
    batches = cast(Iterator[pa.RecordBatch], iter([PlainBatch(made)]))
    return [
        cast(tuple[str, str], row)
        for told in living.run(batches)
        for row in zip(*(column.to_pylist() for column in told.columns), strict=True)
    ]


def collected(
    call: AggCall, rows: list[Row], names: tuple[str, ...], context: Evaluation
) -> list[dict[str, Value]]:
    """The arguments of a running aggregate, in stream order."""
    args = [context.compile(arg, names) for arg in call.args]
    order = [names.index(name) for name in call.order]
    ordered = sorted(rows, key=lambda row: [sort_key(row[i]) for i in order])
    found = [{argument(i): of(row) for i, of in enumerate(args)} for row in ordered]
    return [one for one in found if not (call.function.skips_null and None in one.values())]


def member(call: AggCall, parameters: Parameters) -> RunningMember:
    given = tuple(constant_value(p, parameters) for p in call.parameters)
    fold = GroupFold(call.function, len(call.args), call.distinct, given)
    fold.restart()
    return RunningMember(fold, None) if call.function.running else RunningMember(None, fold.value())
