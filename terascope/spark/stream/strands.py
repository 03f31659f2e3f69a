"""Queries that only filter, project and merge closed rows, in a task.

In: the closed rows of every stream they come from. Out: the rows of the query that are due, in its
order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from terascope.execute.rows.steps import run_steps
from terascope.kernels.columns.finished_rows import FinishedRows
from terascope.physical.delivery import Sink
from terascope.spark.stream.due import DueRange, Told, in_order, told_part
from terascope.spark.stream.rows import Leaf, StoredRows
from terascope.streaming.strands import Strand, Strands


@dataclass(frozen=True)
class DueStrands:
    strands: Strands
    leaves: tuple[Leaf, ...]
    """Of each strand what the store has."""
    range: DueRange | None
    """None: everything is due."""

    @property
    def bytes(self) -> int:
        return sum(leaf.bytes for leaf in self.leaves)

    def tell(self, stored: StoredRows, sink: Sink) -> Iterator[Told]:
        made = [
            self.due(strand, batch)
            for strand, leaf in zip(self.strands.strands, self.leaves, strict=True)
            for batch in stored.batches(leaf)
        ]
        strands = self.strands
        rows = in_order([rows for rows in made if rows], strands.fields, strands.order)
        yield told_part(strands.query, strands.fields, rows, sink)

    def due(self, strand: Strand, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        rows = run_steps(strand.below.steps, batch)
        if self.range is not None and rows.num_rows:
            assert self.strands.value is not None
            values = FinishedRows(rows).column(self.strands.value)
            rows = rows.filter(self.range.has(values))
        rows = run_steps(strand.above.steps, rows) if rows.num_rows else rows
        return rows if rows.num_rows else None
