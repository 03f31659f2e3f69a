"""An engine of streams without Spark: the reference computes the high level.

In: the segments of closed rows, and the trees that let go what is due. Out: the parts of a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.execute.results.parts import Part
from terascope.functions.base import Value
from terascope.physical.delivery import Sink
from terascope.physical.stream.plan import RunningStream, StreamOutput
from terascope.plan.evaluate import Parameters
from terascope.plan.horizon import Horizons
from terascope.plan.plan import Plan, Stream, reads
from terascope.plan.rel import Rel, Running, Scan
from terascope.reference.interpreter import tuples_of
from terascope.reference.rows import Evaluation, Row, Rows, sort_key
from terascope.spark.write import Writing
from terascope.streaming.context import Report, TaskWork
from terascope.streaming.stored_rows import StoredRows, StoredStream
from tests.properties.plain_running import plain_furthest, plain_step


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

    stored: StoredRows
    leaves: Mapping[str, StoredStream]
    parameters: Parameters
    horizons: Horizons
    plan: Plan

    def query(self, output: StreamOutput, trees: Mapping[str, Rel], sink: Sink) -> list[Part]:
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
        writing = Writing(output.name, str(folder), sink.format, output.fields, output.ordered)
        return [Part.of(row[0]) for some in writing(iter([batch])) for row in rows(some)]

    def last(self, rel: Rel, name: str, below: Value, trees: Mapping[str, Rel]) -> Value:
        place = rel.names.index(name)
        values = [row[place] for row in self.tuples(rel, trees)]
        return max((v for v in values if v is not None and v < below), default=None)

    def furthest_epoch(self, rel: Running, trees: Mapping[str, Rel]) -> int | None:
        return plain_furthest(rel, self.frame(rel.source, trees), self.parameters)

    def running_step(
        self,
        running: RunningStream,
        alive: StoredStream,
        low: int | None,
        until: int,
        trees: Mapping[str, Rel],
        store: Path,
    ) -> list[Report]:
        source = self.frame(running.rel.source, trees)
        return plain_step(
            running.rel, source, self.read(alive), self.parameters, low, until, running.key, store,
            self.plan,
        )  # fmt: skip

    def frame(self, rel: Rel, trees: Mapping[str, Rel]) -> Rows:
        return Rows(rel.fields, self.tuples(rel, trees))

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
        return tuples_of(rel, Evaluation.of(plan, NoTuples(self.horizons), below))

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
        self,
        stored: StoredRows,
        leaves: Mapping[str, StoredStream],
        parameters: Parameters,
        horizons: Horizons,
    ) -> PlainHighLevel:
        return PlainHighLevel(stored, leaves, parameters, horizons, self.plan)

    def write(self, queries: Sequence[list[Part]]) -> list[Part]:
        return [part for parts in queries for part in parts]
