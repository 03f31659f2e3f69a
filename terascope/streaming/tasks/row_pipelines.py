"""Row pipelines over stored rows, in a task.

In: the stored rows of every stream that a query is made of. Out: the rows of the query that are
released now, in its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from terascope.execute.rows.steps import run_steps
from terascope.kernels.columns.finished_rows import FinishedRows
from terascope.physical.delivery import Sink
from terascope.physical.stream.row_pipelines import PipelineInput, RowPipelines
from terascope.streaming.engine import Report
from terascope.streaming.stored_rows import StoredRows, StoredStream
from terascope.streaming.tasks.work import DueRange, in_order, report_part


@dataclass(frozen=True)
class DuePipelines:
    pipelines: RowPipelines
    leaves: tuple[StoredStream, ...]
    """The stored rows of each input."""
    range: DueRange | None
    """None: all rows are released."""

    @property
    def bytes(self) -> int:
        return sum(leaf.bytes for leaf in self.leaves)

    def run(self, stored: StoredRows, sink: Sink) -> Iterator[Report]:
        made = [
            self.due(one, batch)
            for one, leaf in zip(self.pipelines.inputs, self.leaves, strict=True)
            for batch in stored.batches(leaf)
        ]
        query = self.pipelines
        rows = in_order([rows for rows in made if rows], query.fields, query.order)
        yield report_part(query.query, query.fields, rows, sink)

    def due(self, one: PipelineInput, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        rows = run_steps(one.below.steps, batch)
        if self.range is not None and rows.num_rows:
            assert self.pipelines.value is not None
            values = FinishedRows(rows).column(self.pipelines.value)
            rows = rows.filter(self.range.has(values))
        rows = run_steps(one.above.steps, rows) if rows.num_rows else rows
        return rows if rows.num_rows else None
