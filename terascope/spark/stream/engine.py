"""Spark as the engine of a stream: it distributes tasks, and Catalyst computes the high level.

In: the work of tasks; segments of stored rows, and the relations of the queries. Out: the reports
of the tasks, and the parts of the queries' rows. A query is computed over all rows that are
retained, and a filter in its relation keeps the rows in the released range
(terascope.streaming.release): the rows that a window or a join needs of earlier slices are there,
and rows that are not complete yet are filtered out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import starmap
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.execute.results.parts import Part
from terascope.functions.base import Value
from terascope.physical.delivery import Sink
from terascope.physical.stream.plan import RunningStream, StreamOutput
from terascope.plan.evaluate import Parameters
from terascope.plan.horizon import Horizons
from terascope.plan.plan import reads
from terascope.plan.rel import Rel, Running
from terascope.spark.catalyst.frame import Frame, place, schema_of
from terascope.spark.catalyst.operands import changing
from terascope.spark.catalyst.relations import Context, frame_of, sort_column
from terascope.spark.mistakes import translating
from terascope.spark.passing import read_reports, report_batch, task_frame
from terascope.spark.stream.running import furthest_epoch, running_step
from terascope.spark.stream.source import REPORT
from terascope.spark.write import written_parts
from terascope.streaming.context import Report, TaskWork
from terascope.streaming.state.segments import Segment
from terascope.streaming.stored_rows import StoredRows, StoredStream

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
        self,
        stored: StoredRows,
        leaves: Mapping[str, StoredStream],
        parameters: Parameters,
        horizons: Horizons,
    ) -> CatalystHighLevel:
        return CatalystHighLevel(self.spark, stored, leaves, parameters, horizons, self.tasks)

    def write(self, queries: Sequence[DataFrame]) -> list[Part]:
        """One job for all queries: Spark plans and runs them together."""
        with translating():
            return [Part.of(row[0]) for row in reduce(DataFrame.union, queries).collect()]


def reported(work: TaskWork) -> Iterator[pa.RecordBatch]:
    return starmap(report_batch, work())


@dataclass(frozen=True)
class CatalystHighLevel:
    """Computes queries of one micro-batch; streams that several queries read are computed once."""

    spark: SparkSession
    stored: StoredRows
    leaves: Mapping[str, StoredStream]
    parameters: Parameters
    horizons: Horizons
    tasks: int
    _frames: dict[tuple[str, tuple[int, ...]], Frame] = field(default_factory=dict)
    _alive: list[Mapping[str, Rel]] = field(default_factory=list)
    """Relations, which are identified by address: none may be freed meanwhile."""

    def query(self, output: StreamOutput, trees: Mapping[str, Rel], sink: Sink) -> DataFrame:
        """The parts of a query, once they are collected; `trees` have the rows to release."""
        self._alive.append(trees)
        frame = self._stream(output.name, trees)
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
        return written_parts(chosen, output.name, folder, sink.format, output.fields, ordered)

    def last(self, rel: Rel, name: str, below: Value, trees: Mapping[str, Rel]) -> Value:
        """The largest value of a column that is below another value."""
        frame = self.frame(rel, trees)
        column = frame.column(name)
        bound = changing(below) if isinstance(below, int) else F.lit(below)
        with translating():
            found = frame.df.filter(column < bound).agg(F.max(column)).collect()
        return found[0][0]

    def frame(self, rel: Rel, trees: Mapping[str, Rel]) -> Frame:
        streams: dict[str, Frame] = {}
        for read in reads(rel):
            streams[read.stream] = self._stream(read.stream, trees)
        context = Context(self.spark, {}, streams, self.parameters, self.horizons)
        return frame_of(rel, context)

    def furthest_epoch(self, rel: Running, trees: Mapping[str, Rel]) -> int | None:
        return furthest_epoch(rel, self.frame(rel.source, trees), self.parameters)

    def running_step(
        self,
        running: RunningStream,
        alive: StoredStream,
        low: int | None,
        until: int,
        trees: Mapping[str, Rel],
        store: Path,
    ) -> list[Report]:
        """Compute the epochs of a running aggregate from `low` up to, and without, `until`."""
        source = self.frame(running.rel.source, trees)
        return running_step(running, source, self._read(alive), self.parameters, low, until, store)

    def _stream(self, name: str, trees: Mapping[str, Rel]) -> Frame:
        known = name, self._made_of(name, trees)
        if known not in self._frames:
            leaf = self.leaves.get(name)
            made = self.frame(trees[name], trees) if leaf is None else self._read(leaf)
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
        schema = schema_of(leaf.fields)
        if not leaf.segments:
            return Frame(self.spark.createDataFrame([], schema), leaf.fields)
        shared = shares(leaf.segments, self.tasks)
        own = [replace(leaf, segments=segments) for segments in shared]
        tasks = [partial(segment_columns, self.stored, one) for one in own]
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
