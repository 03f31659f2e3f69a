"""Queries that only filter, project and merge closed rows, in a task.

In: the closed rows of every stream they come from. Out: the rows of the query that are due, in its
order.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.low.assemble import sorted_places
from terascope.low.finished_rows import FinishedRows
from terascope.low.top import plain
from terascope.plan.rel import Field
from terascope.spark.stream_due import DueRange
from terascope.spark.stream_rows import Leaf, StoredRows
from terascope.stream.strands import Strand, Strands


@dataclass(frozen=True)
class DueStrands:
    strands: Strands
    leaves: tuple[Leaf, ...]
    """Of each strand what the store has."""
    range: DueRange | None
    """None: everything is due."""

    @property
    def query(self) -> str:
        return self.strands.query

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.strands.fields

    @property
    def bytes(self) -> int:
        return sum(leaf.bytes for leaf in self.leaves)

    def rows(self, stored: StoredRows) -> pa.RecordBatch:
        made = [
            self.due(strand, batch)
            for strand, leaf in zip(self.strands.strands, self.leaves, strict=True)
            for batch in stored.batches(leaf)
        ]
        names = [f.name for f in self.fields]
        names += [name for name, _ in self.strands.order if name not in names]
        tables = [pa.Table.from_batches([plain(rows.select(names))]) for rows in made if rows]
        if not tables:
            return pa.RecordBatch.from_pylist([], self.schema)
        whole = pa.concat_tables(tables)
        if self.strands.order:
            whole = whole.take(sorted_places(whole, self.strands.order))
        (rows,) = whole.select(self.schema.names).cast(self.schema).combine_chunks().to_batches()
        return rows

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(f.name, arrow_type(f.type)) for f in self.fields])

    def due(self, strand: Strand, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        rows = strand.below(batch)
        if self.range is not None and rows.num_rows:
            assert self.strands.value is not None
            values = FinishedRows(rows).column(self.strands.value)
            rows = rows.filter(self.range.has(values))
        rows = strand.above(rows) if rows.num_rows else rows
        return rows if rows.num_rows else None
