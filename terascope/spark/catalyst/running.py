"""CLOSING_WHEN in Spark: groups that live over epochs (dissertation 3.1.2).

In: tuples with an epoch (the first key) and a group (the other keys). Out: for each group a row per
epoch from its first tuple until it closes, up to the horizon. Spark aggregates per group and epoch;
the arguments of running aggregates are collected; then each group, its epochs in order, passes
through a state machine in Python, a stream of Arrow batches in and out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame
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
    aggregated,
    collected,
    empty_value,
    fold_of,
    in_order,
)
from terascope.spark.catalyst.frame import Frame, place, schema_of
from terascope.spark.catalyst.grouping import Prepared, finished, group_by
from terascope.spark.mistakes import telling

BATCH_ROWS = 8192
MachineKind = TypeVar("MachineKind", bound="Machine")


@dataclass
class RunningMember:
    """One aggregate in the machine: a fold, or the value Spark computed for the epoch."""

    fold: GroupFold | None
    empty: Value
    """The value of an epoch without tuples, when there is no fold."""


@dataclass
class Machine:
    """The state machine of groups; it runs in Python workers."""

    fields: tuple[Field, ...]
    keys: int
    members: list[RunningMember]
    closing: Evaluator
    until: int = 0
    """The epoch before which living groups have rows for all epochs."""
    alive: bool = False
    """Whether the current group is alive."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [place(i) for i in range(len(self.fields))]
        with telling("CLOSING_WHEN"):
            lives = self.lives(rows_of(batches))
            while rows := list(islice(lives, BATCH_ROWS)):
                yield batch_of(rows, self.fields, names)

    def lives(self, rows: Iterator[tuple[Value, ...]]) -> Iterator[tuple[Value, ...]]:
        """The rows of all groups. Tuples come sorted by group, then epoch: group, epoch, one value
        per aggregate, and a last one for `heed`.
        """
        group: tuple[Value, ...] = ()
        identity: tuple[Value, ...] | None = None
        epoch = 0
        for row in rows:
            key = tuple(distinct_key(v) for v in row[: self.keys])
            if key != identity:
                yield from self.end(group, epoch)
                group, identity = row[: self.keys], key
            resumed = self.heed(row[-1])
            if resumed is not None:
                epoch = resumed
                continue
            now = row[self.keys]
            yield from self.silence(group, epoch, now)
            yield self.step(group, now, row[self.keys + 1 : -1])
            epoch = now + 1
        yield from self.end(group, epoch)

    def heed(self, last: Value) -> int | None:
        """Read the last value of a row, which is the last epoch of all groups. Returns the epoch at
        which the group resumes, if the row is its stored state.
        """
        self.until = last + 1
        return None

    def end(self, group: tuple[Value, ...], epoch: int) -> Iterator[tuple[Value, ...]]:
        """The remaining epochs of a group."""
        yield from self.silence(group, epoch, self.until)
        self.alive = False

    def silence(
        self, group: tuple[Value, ...], begin: int, end: int
    ) -> Iterator[tuple[Value, ...]]:
        """Epochs without tuples, for as long as the group is alive."""
        for epoch in range(begin, end):
            if not self.alive:
                return
            yield self.step(group, epoch, None)

    def step(
        self, group: tuple[Value, ...], epoch: int, inputs: Sequence[Value] | None
    ) -> tuple[Value, ...]:
        """One epoch of one group: its row; the group may close."""
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


def batch_of(
    rows: Sequence[tuple[Value, ...]], fields: Sequence[Field], names: Sequence[str]
) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(v, arrow_type(f.type)) for v, f in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(names))


class EpochGroups:
    """The groups of every epoch: k1, k2, ..., `epoch`, and the aggregates' values v0, ..."""

    def __init__(
        self,
        rel: Running,
        source: Frame,
        parameters: Parameters,
        chosen: Callable[[Column], Column],
    ) -> None:
        """`chosen`: the epochs that are computed."""
        prepared = Prepared(source, rel.keys, rel.aggs, parameters)
        epoch, *group = prepared.keys
        made = [member(arguments) for arguments in prepared.arguments]
        self._rel, self._parameters = rel, parameters
        self.members = [one for one, _ in made]
        parts = [part for _, part in made]
        epochs = group_by(prepared.df.filter(chosen(epoch)), prepared.keys, parts)
        values = [value.alias(f"v{i}") for i, value in enumerate(finished(parts))]
        self.df = epochs.select(*group, epoch.alias("epoch"), *values)
        self.names = [f"k{i + 1}" for i in range(len(group))]

    def machine(self, kind: type[MachineKind], **more: Any) -> MachineKind:
        """The state machine of a kind, through which the groups pass."""
        rel = self._rel
        closing = compile_expr(rel.closing, rel.names, self._parameters)
        return kind(rel.fields, len(self.names), self.members, closing, **more)

    def in_order(self, df: DataFrame) -> DataFrame:
        """Rows with the columns of `df`, the epochs of each group one after the other."""
        group = [F.col(name) for name in self.names]
        placed = df.repartition(*group) if group else df.repartition(1)
        return placed.sortWithinPartitions(*group, F.col("epoch").asc_nulls_first())


def running_frame(rel: Running, source: Frame, parameters: Parameters, horizon: Value) -> Frame:
    """The rows of a running aggregate. `horizon`: the last epoch of the sources, if known."""
    epochs = EpochGroups(rel, source, parameters, Column.isNotNull)
    furthest = epochs.df.agg(F.max("epoch").alias("furthest"))
    last = F.greatest(F.col("furthest"), F.lit(horizon).cast("bigint"))
    steps = epochs.df.crossJoin(F.broadcast(furthest)).select(
        *epochs.df.columns, last.alias("last")
    )
    machine = epochs.machine(Machine)
    ordered = epochs.in_order(steps)
    return Frame(ordered.mapInArrow(machine.run, schema_of(rel.fields)), rel.fields)


def member(arguments: Arguments) -> tuple[RunningMember, SparkForm]:
    """A member of the machine. A running aggregate needs its tuples in the machine; any other
    begins anew with each epoch, so Spark computes it.
    """
    if not arguments.call.function.running:
        return RunningMember(None, empty_value(arguments)), aggregated(arguments)
    seen = SparkForm((collected(arguments),), lambda parts: in_order(arguments, parts[0]))
    return RunningMember(fold_of(arguments), None), seen
