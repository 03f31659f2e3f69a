"""An engine of streams without Spark: the reference computes the high level.

In: the segments of closed rows, and the trees that let go what is due. Out: the parts of a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.functions.base import Value
from terascope.physical.stream.plan import RunningStream, StreamOutput
from terascope.plan.horizon import Horizons
from terascope.plan.plan import Plan, Stream, reads
from terascope.plan.rel import Rel, Scan
from terascope.reference.interpreter import tuples_of
from terascope.reference.rows import Evaluation, Row, Rows, sort_key
from terascope.spark.write import Writing
from terascope.streaming.context import Report, RunContext, TaskWork
from terascope.streaming.state.segments import Segment
from terascope.streaming.state.state import StreamState
from terascope.streaming.stored_rows import StoredRows, StoredStream, stored_leaves
from tests.properties.plain_running import plain_step


@dataclass(frozen=True)
class NoTuples:
    """The high level reads no source."""

    horizons: Horizons

    def rows(self, scan: Scan) -> list[Row]:
        raise AssertionError(f"{scan} is read twice")

    def horizon(self, scan: Scan) -> Mapping[str, int]:
        return self.horizons.scan(scan)


@dataclass
class PlainHighLevel:
    """Queries of closed slices by the reference, with the arguments of Spark's."""

    context: RunContext
    state: StreamState
    leaves: Mapping[str, StoredStream]
    plan: Plan

    @property
    def stored(self) -> StoredRows:
        return self.context.stored_rows(self.state)

    @property
    def trees(self) -> Mapping[str, Rel]:
        return self.context.plan.trees.streams

    def query(self, output: StreamOutput, trees: Mapping[str, Rel]) -> list[Report]:
        sink = self.context.sink
        names = trees[output.name].names
        found = list(self.stream(output.name, trees).tuples)
        for name, descending in reversed(output.output.order):
            place = names.index(name)
            found.sort(key=lambda row, place=place: sort_key(row[place]), reverse=descending)  # type: ignore[misc]
        places = [names.index(f.name) for f in output.fields]
        columns = [
            pa.array([row[i] for row in found], arrow_type(f.type))
            for i, f in zip(places, output.fields, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))])
        folder = sink.folder_of(output.name)
        writing = Writing(output.name, folder, sink.format, output.fields, output.ordered)
        told = [row for some in writing(iter([batch])) for row in rows(some)]
        return [(str(kind), str(text)) for kind, text in told]

    def last(self, rel: Rel, name: str, below: Value = None) -> Value:
        place = rel.names.index(name)
        values = [row[place] for row in self.tuples(rel, self.trees)]
        known = (v for v in values if v is not None and (below is None or v < below))
        return max(known, default=None)

    def running_step(
        self, running: RunningStream, alive: StoredStream, low: int | None, until: int
    ) -> list[Report]:
        rel, context = running.rel, self.context
        source = Rows(rel.source.fields, self.tuples(rel.source, self.trees))
        return plain_step(
            rel, source, self.read(alive), context.plan.job.parameters, low, until, running.key,
            context.folder.slices, self.plan,
        )  # fmt: skip

    def read(self, leaf: StoredStream) -> Rows:
        return Rows(
            leaf.fields, [row for batch in self.stored.batches(leaf) for row in rows(batch)]
        )

    def stream(self, name: str, trees: Mapping[str, Rel]) -> Rows:
        rel = trees[name]
        if name in self.leaves:
            return Rows(rel.fields, self.kept(name, rel))
        return Rows(rel.fields, self.tuples(rel, trees))

    def tuples(self, rel: Rel, trees: Mapping[str, Rel]) -> list[Row]:
        below = {read.stream: self.stream(read.stream, trees) for read in reads(rel)}
        streams = tuple(Stream(n, r, False) for n, r in trees.items())
        plan = Plan(streams, self.plan.parameters)
        nothing = NoTuples(self.context.horizons(self.state))
        return tuples_of(rel, Evaluation.of(plan, nothing, below))

    def kept(self, name: str, rel: Rel) -> list[Row]:
        found: list[Row] = []
        for batch in self.stored.batches(self.leaves[name]):
            columns = [batch.column(f.name).to_pylist() for f in rel.fields]
            found += zip(*columns, strict=True)
        return found


def rows(batch: pa.RecordBatch) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


@dataclass(frozen=True)
class PlainEngine:
    """Runs tasks one after the other, and computes the high level by the reference."""

    plan: Plan

    def run_tasks(self, work: Sequence[TaskWork]) -> list[Report]:
        return [report for one in work for report in one()]

    def high_level(
        self, context: RunContext, state: StreamState, segments: Sequence[Segment]
    ) -> PlainHighLevel:
        leaves = stored_leaves(context.plan, segments)
        return PlainHighLevel(context, state, leaves, self.plan)

    def write(self, queries: Sequence[list[Report]]) -> list[Report]:
        return [report for reports in queries for report in reports]
