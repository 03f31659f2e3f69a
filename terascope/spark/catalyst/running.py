"""CLOSING_WHEN in Spark: groups that live over epochs (dissertation 3.1.2).

In: tuples with an epoch (the first key) and a group (the other keys). Out: for each group a row per
epoch from its first tuple until it closes, up to the horizon. Spark aggregates per group and epoch;
what a running aggregate has to see is collected; then each group, its epochs in order, passes
through a state machine in Python, a stream of Arrow batches in and out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.functions.base import Value
from terascope.functions.spark_form import SparkForm
from terascope.functions.values import distinct_key
from terascope.plan.evaluate import Evaluator, Parameters, compile_expr
from terascope.plan.rel import Field, Running
from terascope.spark.catalyst.aggregates import (
    Arguments,
    GroupFold,
    collected,
    empty_value,
    fold_of,
    in_order,
)
from terascope.spark.catalyst.frame import Frame, place, schema_of
from terascope.spark.catalyst.grouping import Prepared, aggregated, finished, group_by
from terascope.spark.mistakes import telling

BATCH_ROWS = 8192


@dataclass
class RunningMember:
    """One aggregate in the machine: a fold, or the value Spark computed for the epoch."""

    fold: GroupFold | None
    empty: Value
    """What an epoch without tuples gives, when there is no fold."""


@dataclass
class Machine:
    """The life of groups; runs in Python workers."""

    fields: tuple[Field, ...]
    keys: int
    members: list[RunningMember]
    closing: Evaluator
    alive: bool = False
    """Whether the group at hand is."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows come sorted by group, then epoch: group, epoch, last epoch, one per aggregate."""
        given: list[tuple[Value, ...]] = []
        with telling("CLOSING_WHEN"):
            for row in self.lives(rows_of(batches)):
                given.append(row)
                if len(given) == BATCH_ROWS:
                    yield self.batch(given)
                    given = []
            if given:
                yield self.batch(given)

    def batch(self, rows: Sequence[tuple[Value, ...]]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True)
        arrays = [
            pa.array(values, arrow_type(f.type))
            for values, f in zip(columns, self.fields, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, [place(i) for i in range(len(arrays))])

    def lives(self, rows: Iterator[tuple[Value, ...]]) -> Iterator[tuple[Value, ...]]:
        group: tuple[Value, ...] = ()
        identity: tuple[Value, ...] | None = None
        epoch = last = 0
        for row in rows:
            key = tuple(distinct_key(v) for v in row[: self.keys])
            same = key == identity
            yield from self.silence(group, epoch, row[self.keys] if same else last + 1)
            self.alive = self.alive and same
            group, identity = row[: self.keys], key
            epoch, last = row[self.keys], row[self.keys + 1]
            yield self.step(group, epoch, row[self.keys + 2 :])
            epoch += 1
        yield from self.silence(group, epoch, last + 1)

    def silence(
        self, group: tuple[Value, ...], begin: int, end: int
    ) -> Iterator[tuple[Value, ...]]:
        """Epochs without tuples, for as long as the group lives."""
        for epoch in range(begin, end):
            if not self.alive:
                return
            yield self.step(group, epoch, None)

    def step(
        self, group: tuple[Value, ...], epoch: int, inputs: Sequence[Value] | None
    ) -> tuple[Value, ...]:
        """One epoch of one group: its row; the group may die of it."""
        values: list[Value] = []
        for i, member in enumerate(self.members):
            if member.fold is None:
                values.append(member.empty if inputs is None else inputs[i])
                continue
            if not self.alive:
                member.fold.restart()
            if inputs is not None:
                member.fold.take(inputs[i])
            values.append(member.fold.value())
            member.fold.end_epoch()
        row = (epoch, *group, *values)
        self.alive = self.closing(row) is not True
        return row


def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Value, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def running_frame(rel: Running, source: Frame, parameters: Parameters, horizon: Value) -> Frame:
    """`horizon`: the last epoch the sources reached, when it is known."""
    prepared = Prepared(source, rel.keys, rel.aggs, parameters)
    epoch, *group = prepared.keys
    members, parts = zip(*map(member, prepared.arguments), strict=True) if rel.aggs else ((), ())
    epochs = group_by(prepared.df.filter(epoch.isNotNull()), prepared.keys, parts)
    furthest = epochs.agg(F.max(epoch).alias("furthest"))
    last = F.greatest(F.col("furthest"), F.lit(horizon).cast("bigint"))
    steps = epochs.crossJoin(F.broadcast(furthest)).select(
        *group,
        epoch,
        last.alias("last"),
        *(value.alias(f"v{i}") for i, value in enumerate(finished(parts))),
    )
    together = steps.repartition(*group) if group else steps.repartition(1)
    machine = Machine(
        rel.fields,
        len(group),
        list(members),
        compile_expr(rel.closing, rel.names, parameters),
    )
    ordered = together.sortWithinPartitions(*group, epoch)
    return Frame(ordered.mapInArrow(machine.run, schema_of(rel.fields)), rel.fields)


def member(arguments: Arguments) -> tuple[RunningMember, SparkForm]:
    """A running aggregate must see its tuples in the machine; any other begins anew with each
    epoch, so Spark computes it.
    """
    if not arguments.call.function.running:
        return RunningMember(None, empty_value(arguments)), aggregated(arguments)
    seen = SparkForm((collected(arguments),), lambda parts: in_order(arguments, parts[0]))
    return RunningMember(fold_of(arguments), None), seen
