"""Queries that tasks compute from stored rows: row pipelines, joins, and parts merged in order.

A piece of work reads stored rows, keeps those in the range that is released now, and writes a part.
All pieces of a micro-batch run in one job, each in a task of its own. Spark computes a query whose
rows are too many for the memory of a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.analysis.moving import ALL
from terascope.connectors.base import arrow_type
from terascope.execute.relation_task import no_horizon
from terascope.execute.relations import ArrowRelations
from terascope.execute.results.parts import Part, write_part
from terascope.execute.results.result_files import sorted_rows
from terascope.execute.rows.collect import plain
from terascope.execute.rows.steps import batch_of, run_steps
from terascope.execute.rows.task_joins import joined
from terascope.functions.base import Value
from terascope.functions.overflow import overflow_of
from terascope.kernels.columns.batch import FinishedRows
from terascope.physical.delivery import Side, Sink, TaskJoin
from terascope.physical.row_pipeline import KeptOrder, RowPipeline
from terascope.physical.stream.plan import RowPipelines
from terascope.plan.evaluate import Parameters
from terascope.plan.expr import Expr
from terascope.plan.horizon import Horizons
from terascope.plan.rel import Field, Rel
from terascope.streaming.context import Report
from terascope.streaming.state.manifest import RowFormat
from terascope.streaming.state.row_files import reordered
from terascope.streaming.stored_rows import StoredRows, StoredStream


@dataclass(frozen=True)
class DueRange:
    """Values from `low`, inclusive, up to `high`, exclusive. None as `low`: from the beginning; ALL
    as `high`: to the end, with rows that have no value. A value that falls with time has its larger
    values first.
    """

    low: Value
    high: Value
    descending: bool = False

    def has(self, values: pa.Array) -> pa.Array:
        """The mask of values in the range."""
        if self.high is None or self.low is ALL:
            return pa.array(np.zeros(len(values), np.bool_))
        reached, beyond = pc.greater_equal, pc.less
        if self.descending:
            reached, beyond = pc.less_equal, pc.greater
        keep = pa.array(np.ones(len(values), np.bool_))
        if self.low is not None:
            keep = reached(values, self.low)
        if self.high is not ALL:
            keep = pc.and_(keep, beyond(values, self.high))
        return pc.fill_null(keep, self.high is ALL)


class DueWork(Protocol):
    """Queries that a task computes from the store, or spans of slices for later windows."""

    def run(self, stored: StoredRows, sink: Sink) -> Iterator[Report]: ...


def in_order(
    batches: Sequence[pa.RecordBatch], fields: Sequence[Field], order: Sequence[tuple[str, bool]]
) -> pa.RecordBatch:
    """The emitted columns of rows, sorted; `order` may name columns that are not emitted."""
    schema = pa.schema([(f.name, arrow_type(f.type)) for f in fields])
    names = [f.name for f in fields]
    names += [name for name, _ in order if name not in names]
    tables = [
        pa.Table.from_batches([plain(rows.select(names))]) for rows in batches if rows.num_rows
    ]
    if not tables:
        return pa.RecordBatch.from_pylist([], schema)
    (rows,) = sorted_rows(pa.concat_tables(tables), schema, order).combine_chunks().to_batches()
    return rows


@dataclass(frozen=True)
class DueMerge:
    """Parts of a query whose rows are merged in order."""

    fields: tuple[Field, ...]
    ordered: KeptOrder
    parts: tuple[Part, ...]

    def run(self, stored: StoredRows, sink: Sink) -> Iterator[Report]:
        del stored
        format = cast(RowFormat, sink.format)
        yield "part", reordered(self.parts, format, self.fields, self.ordered).to_json()


@dataclass(frozen=True)
class DueJoin:
    """A join, and the range of its rows that is released."""

    join: TaskJoin
    left: StoredStream
    right: StoredStream
    values: tuple[Expr, Expr]
    """Over the rows of each side: the value that bounds the join in time."""
    range: DueRange
    order: Sequence[tuple[str, bool]] = ()
    """The order of the rows of the query, without columns that are not emitted."""
    ordered: KeptOrder = ()

    @property
    def bytes(self) -> int:
        return self.left.bytes + self.right.bytes

    def run(self, stored: StoredRows, sink: Sink) -> Iterator[Report]:
        join = self.join
        left = self.side(stored, self.left, join.left, self.values[0])
        right = self.side(stored, self.right, join.right, self.values[1])
        names = {f.name for f in join.fields}
        order = [(name, down) for name, down in self.order if name in names]
        rows = in_order([joined(join, left, right)], join.fields, order)
        part = write_part(sink, join.query, join.fields, rows, self.ordered)
        yield "part", part.to_json()

    def side(
        self, stored: StoredRows, leaf: StoredStream, side: Side, value: Expr
    ) -> pa.RecordBatch:
        """The rows of a side in the released range."""
        found: list[pa.RecordBatch] = []
        for batch in stored.batches(leaf):
            made = run_steps(side.program.steps, batch)
            if made.num_rows:
                found.append(made.filter(self.range.has(FinishedRows(made).column(value))))
        full = [plain(batch) for batch in found if batch.num_rows]
        return pa.concat_batches(full) if full else in_order((), side.fields, ())


@dataclass(frozen=True)
class DuePipelines:
    pipelines: RowPipelines
    leaves: tuple[StoredStream, ...]
    """The stored rows of each input."""
    range: DueRange | None
    """The released range; None: all rows are released."""
    ordered: KeptOrder = ()
    """The columns in whose order parts of other partitions have rows, too."""

    @property
    def bytes(self) -> int:
        return sum(leaf.bytes for leaf in self.leaves)

    def run(self, stored: StoredRows, sink: Sink) -> Iterator[Report]:
        made = [
            self.due(below, batch)
            for below, leaf in zip(self.pipelines.inputs, self.leaves, strict=True)
            for batch in stored.batches(leaf)
        ]
        query = self.pipelines
        rows = in_order([rows for rows in made if rows], query.fields, query.order)
        part = write_part(sink, query.query, query.fields, rows, self.ordered)
        yield "part", part.to_json()

    def due(self, below: RowPipeline, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        rows = run_steps(below.steps, batch)
        if self.range is not None and rows.num_rows:
            assert self.pipelines.value is not None
            values = FinishedRows(rows).column(self.pipelines.value)
            rows = rows.filter(self.range.has(values))
        rows = run_steps(self.pipelines.above.steps, rows) if rows.num_rows else rows
        return rows if rows.num_rows else None


@dataclass(frozen=True)
class DueRelations:
    """A query that a partition computes by itself from its stored rows, operator by operator."""

    query: str
    fields: tuple[Field, ...]
    order: Sequence[tuple[str, bool]]
    ordered: KeptOrder
    trees: Mapping[str, Rel]
    """The streams above the store, each behind those it reads; the query is the last."""
    leaves: Mapping[str, StoredStream]
    parameters: Parameters

    @property
    def bytes(self) -> int:
        return sum(leaf.bytes for leaf in self.leaves.values())

    def run(self, stored: StoredRows, sink: Sink) -> Iterator[Report]:
        streams = {
            name: batch_of(stored.batches(leaf), leaf.fields) for name, leaf in self.leaves.items()
        }
        horizons = Horizons(no_horizon, {}, self.parameters)
        relations = ArrowRelations(streams, self.parameters, horizons, sink.compiled)
        with overflow_of(self.query):
            for name, rel in self.trees.items():
                streams[name] = relations.rows(rel)
        rows = in_order([streams[self.query]], self.fields, self.order)
        part = write_part(sink, self.query, self.fields, rows, self.ordered)
        yield "part", part.to_json()
