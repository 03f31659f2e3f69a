"""Spark as the engine of a stream: it distributes tasks, and Catalyst computes the high level.

In: the work of tasks; segments of stored rows, and the relations of the queries. Out: the reports
of the tasks, and the parts of the queries' rows. A query is computed over all rows that are
retained, and a filter in its relation keeps the rows in the released range
(terascope.streaming.release): the rows that a window or a join needs of earlier slices are there,
and rows that are not complete yet are filtered out.

The groups of a running aggregate (CLOSING_WHEN) live from one micro-batch to the next. The tasks
that compute its epochs write segments: the rows of these epochs, and the groups that are alive
after them, each with the states of its running aggregates. A living group is a row of the slice
store, however many there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import islice, starmap
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.files import is_ours
from terascope.functions.base import Value
from terascope.functions.states import decode_state, decode_values, encode_state, encode_values
from terascope.kernels.merge.payload import pack_tuples
from terascope.physical.stream.plan import RunningStream, StreamOutput
from terascope.plan.horizon import Horizons
from terascope.plan.plan import reads
from terascope.plan.rel import Field, Rel
from terascope.spark.catalyst.aggregates import GroupFold
from terascope.spark.catalyst.frame import Frame, changing, place, schema_of
from terascope.spark.catalyst.relations import Context, frame_of, sort_column
from terascope.spark.catalyst.running import BATCH_ROWS, EpochGroups, Machine, batch_of, rows_of
from terascope.spark.engine import task_frame
from terascope.spark.mistakes import telling, translating
from terascope.spark.stream.source import REPORT
from terascope.spark.write import Writing, read_reports, report_batch, written_parts
from terascope.streaming.context import Report, RunContext, TaskWork
from terascope.streaming.state.segments import Segment, SegmentWriter, Stored
from terascope.streaming.state.state import StreamState
from terascope.streaming.stored_rows import (
    ALIVE,
    StoredRows,
    StoredStream,
    state_stream,
    stored_leaves,
)

FEW_ROWS = 1 << 20
"""The rows of closed slices up to which one task computes and sorts the result."""


@dataclass(frozen=True)
class SparkStreamEngine:
    spark: SparkSession
    tasks: int
    """The number of tasks that run at once in a micro-batch."""

    def run_tasks(self, work: Sequence[TaskWork]) -> list[Report]:
        tasks = [partial(reported, one) for one in work]
        return read_reports(task_frame(self.spark, tasks, REPORT))

    def high_level(
        self, context: RunContext, state: StreamState, segments: Sequence[Segment]
    ) -> CatalystHighLevel:
        leaves = stored_leaves(context.plan, segments)
        return CatalystHighLevel(self.spark, self.tasks, context, state, leaves)

    def write(self, queries: Sequence[DataFrame]) -> list[Report]:
        """One job for all queries: Spark plans and runs them together."""
        with translating():
            return read_reports(reduce(DataFrame.union, queries))


def reported(work: TaskWork) -> Iterator[pa.RecordBatch]:
    return starmap(report_batch, work())


@dataclass(frozen=True)
class CatalystHighLevel:
    """Computes queries of one micro-batch; streams that several queries read are computed once."""

    spark: SparkSession
    tasks: int
    context: RunContext
    state: StreamState
    leaves: Mapping[str, StoredStream]
    _frames: dict[tuple[str, tuple[int, ...]], Frame] = field(default_factory=dict)
    _alive: list[Mapping[str, Rel]] = field(default_factory=list)
    """Relations, which are identified by address: none may be freed meanwhile."""

    def query(self, output: StreamOutput, trees: Mapping[str, Rel]) -> DataFrame:
        """The parts of a query, once they are collected; `trees` have the rows to release."""
        self._alive.append(trees)
        frame, sink = self._stream(output.name, trees), self.context.sink
        df = frame.df
        ordered = output.ordered
        few = sum(leaf.rows for leaf in self.leaves.values()) <= FEW_ROWS
        if few or ordered:
            order = [sort_column(frame.column(name), down) for name, down in output.output.order]
            # Many rows are computed by many tasks, and sorted by one, which may spill.
            df = df.coalesce(1) if few else df.repartition(1)
            df = df.sortWithinPartitions(*order) if order else df
        chosen = df.select(*(frame.column(f.name) for f in output.fields))
        folder = sink.folder_of(output.name)
        writing = Writing(output.name, folder, sink.format, output.fields, ordered)
        return written_parts(chosen, writing)

    def last(self, rel: Rel, name: str, below: Value = None) -> Value:
        frame = self._frame(rel, self.context.plan.trees.streams)
        df, column = frame.df, frame.column(name)
        if below is not None:
            df = df.filter(column < (changing(below) if isinstance(below, int) else F.lit(below)))
        with translating():
            return df.agg(F.max(column)).collect()[0][0]

    def running_step(
        self, running: RunningStream, alive: StoredStream, low: int | None, until: int
    ) -> list[Report]:
        def is_due(epoch: Column) -> Column:
            due = epoch < changing(until)
            return due if low is None else due & (epoch >= changing(low))

        plan = self.context.plan
        source, before = self._frame(running.rel.source, plan.trees.streams), self._read(alive)
        epochs = EpochGroups(running.rel, source, plan.job.parameters, is_due)
        columns = zip(before.columns.values(), epochs.names, strict=False)
        groups = [column.alias(name) for column, name in columns]
        sleeping = before.df.select(*groups, before.column(ALIVE).alias("alive"))
        together = epochs.df.unionByName(sleeping, allowMissingColumns=True)
        living = epochs.machine(
            LivingGroups,
            until=until,
            state_fields=alive.fields,
            key=running.key,
            store=str(self.context.folder.slices),
        )
        return read_reports(epochs.in_order(together).mapInArrow(living.run, REPORT))

    @cached_property
    def _horizons(self) -> Horizons:
        return self.context.horizons(self.state)

    def _frame(self, rel: Rel, trees: Mapping[str, Rel]) -> Frame:
        streams = {read.stream: self._stream(read.stream, trees) for read in reads(rel)}
        parameters = self.context.plan.job.parameters
        return frame_of(rel, Context(self.spark, {}, streams, parameters, self._horizons))

    def _stream(self, name: str, trees: Mapping[str, Rel]) -> Frame:
        known = name, self._made_of(name, trees)
        if known not in self._frames:
            leaf = self.leaves.get(name)
            made = self._frame(trees[name], trees) if leaf is None else self._read(leaf)
            self._frames[known] = made
        return self._frames[known]

    def _made_of(self, name: str, trees: Mapping[str, Rel]) -> tuple[int, ...]:
        """The relations that a stream reads: one below it may have other rows for each query."""
        if name in self.leaves:
            return ()
        below = (self._made_of(read.stream, trees) for read in reads(trees[name]))
        return (id(trees[name]), *(number for some in below for number in some))

    def _read(self, leaf: StoredStream) -> Frame:
        """Rows of the store."""
        schema, stored = schema_of(leaf.fields), self.context.stored_rows(self.state)
        if not leaf.segments:
            return Frame(self.spark.createDataFrame([], schema), leaf.fields)
        shared = shares(leaf.segments, self.tasks)
        own = [replace(leaf, segments=segments) for segments in shared]
        tasks = [partial(segment_columns, stored, one) for one in own]
        return Frame(task_frame(self.spark, tasks, schema), leaf.fields)


def segment_columns(stored: StoredRows, leaf: StoredStream) -> Iterator[pa.RecordBatch]:
    """Stored rows as columns of Spark."""
    for rows in stored.batches(leaf):
        yield rows.rename_columns([place(i) for i in range(len(leaf.fields))])


def shares(segments: Sequence[Segment], tasks: int) -> tuple[tuple[Segment, ...], ...]:
    """Segments divided among tasks, with about equally many bytes for each."""
    made: list[list[Segment]] = [[] for _ in range(min(tasks, len(segments)))]
    sizes = [0] * len(made)
    for segment in sorted(segments, key=lambda s: s.length, reverse=True):
        least = sizes.index(min(sizes))
        made[least].append(segment)
        sizes[least] += segment.length
    return tuple(tuple(some) for some in made)


# ---- running aggregates --------------------------------------------------------------------------


@dataclass(kw_only=True)
class LivingGroups(Machine):
    """The state machine with groups that were alive before, and that stay alive."""

    state_fields: tuple[Field, ...]
    """The columns of living groups."""
    key: str
    store: str
    sleeping: list[tuple[Value, ...]] = field(default_factory=list)
    """Groups that stay alive, with their states."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows and the living groups to the store, and report the segments."""
        epochs = Stored(self.key, self.fields[0].name, self.key)
        alive = Stored(state_stream(self.key), None, "alive")
        with telling("CLOSING_WHEN"), SegmentWriter(Path(self.store)) as writer:
            lives = self.lives(rows_of(batches))
            while rows := list(islice(lives, BATCH_ROWS)):
                writer.append(epochs, "rows", 0, packed(rows, self.fields))
                if len(self.sleeping) >= BATCH_ROWS:
                    self.put_to_sleep(writer, alive)
            self.put_to_sleep(writer, alive)
            writer.close()
            yield from starmap(report_batch, writer.reports())

    def put_to_sleep(self, writer: SegmentWriter, alive: Stored) -> None:
        if self.sleeping:
            writer.append(alive, "rows", 0, packed(self.sleeping, self.state_fields))
            self.sleeping.clear()

    def heed(self, state: Value) -> int | None:
        """Read the last value of a row, the state of a group that was alive before its epochs."""
        if state is None:
            return None
        epoch, folds = json.loads(state)
        for fold, (held, seen) in zip(self.folds, folds, strict=True):
            fold.state = decode_state(fold.function, held, self.is_trusted)
            fold.seen = set(decode_values(seen))
        self.alive = True
        return int(epoch)

    def end(self, group: tuple[Value, ...], epoch: int) -> Iterator[tuple[Value, ...]]:
        """The remaining epochs of a group, which may stay alive."""
        yield from self.silence(group, epoch, self.until)
        if self.alive:
            folds = [
                [encode_state(fold.function, fold.state), encode_values(fold.seen)]
                for fold in self.folds
            ]
            state = json.dumps([self.until, folds], separators=(",", ":")).encode()
            self.sleeping.append((*group, state))
        self.alive = False

    @property
    def folds(self) -> list[GroupFold]:
        return [m.fold for m in self.members if m.fold is not None]

    @cached_property
    def is_trusted(self) -> bool:
        return is_ours(Path(self.store))


def packed(rows: Sequence[tuple[Value, ...]], fields: Sequence[Field]) -> bytes:
    return pack_tuples(batch_of(rows, fields, [f.name for f in fields]))
