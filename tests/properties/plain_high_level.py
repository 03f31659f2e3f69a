"""The high level of a stream by the reference, with the arguments of Spark's.

In: the segments of closed rows, and the trees that let go what is due. Out: the parts of a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from unittest.mock import patch

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.functions.base import Value
from terascope.physical.delivery import Sink
from terascope.plan.horizon import Horizons
from terascope.plan.plan import Plan, Stream, reads
from terascope.plan.rel import Rel, Scan
from terascope.reference.context import Evaluation
from terascope.reference.interpreter import tuples_of
from terascope.reference.rows import Row, Rows, sort_key
from terascope.spark.parts import Writing
from terascope.spark.stream import closed_rows as stream_closed_rows
from terascope.spark.stream.rows import Leaf, StoredRows
from terascope.streaming.plan import StreamOutput
from tests.properties.plain_running import plain_running


@dataclass(frozen=True)
class NoTuples:
    """The high level reads no source."""

    horizons: Horizons

    def rows(self, scan: Scan) -> list[Row]:
        raise AssertionError(f"{scan} is read twice")

    def horizon(self, scan: Scan) -> Mapping[str, int]:
        return self.horizons.scan(scan)


@dataclass(frozen=True)
class PlainParts:
    """What tasks tell of the parts they wrote."""

    rows: list[Row]

    def union(self, other: PlainParts) -> PlainParts:
        return PlainParts([*self.rows, *other.rows])

    def collect(self) -> list[Row]:
        return self.rows


@dataclass
class PlainHighLevel:
    """Queries of closed slices by the reference, with the arguments of Spark's."""

    spark: object
    stored: StoredRows
    leaves: Mapping[str, Leaf]
    parameters: object
    horizons: Horizons
    tasks: int
    plan: Plan

    def told(self, output: StreamOutput, trees: Mapping[str, Rel], sink: Sink) -> PlainParts:
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
        return PlainParts([row for some in writing(iter([batch])) for row in rows(some)])

    def last(self, rel: Rel, name: str, below: Value, trees: Mapping[str, Rel]) -> Value:
        place = rel.names.index(name)
        values = [row[place] for row in self.tuples(rel, trees)]
        return max((v for v in values if v is not None and v < below), default=None)

    def frame(self, rel: Rel, trees: Mapping[str, Rel]) -> Rows:
        return Rows(rel.fields, self.tuples(rel, trees))

    def read(self, leaf: Leaf) -> Rows:
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
        return tuples_of(rel, Evaluation(plan, NoTuples(self.horizons), below))

    def kept(self, name: str, rel: Rel) -> list[Row]:
        found: list[Row] = []
        for batch in self.stored.batches(self.leaves[name]):
            columns = [batch.column(f.name).to_pylist() for f in rel.fields]
            found += zip(*columns, strict=True)
        return found


def rows(batch: pa.RecordBatch) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


@contextmanager
def reference_above(plan: Plan) -> Iterator[None]:
    """The high level of pipelines is computed by the reference."""
    high_level = patch.object(stream_closed_rows, "HighLevel", partial(PlainHighLevel, plan=plan))
    with high_level, plain_running(plan):
        yield
