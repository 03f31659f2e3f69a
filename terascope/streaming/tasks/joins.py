"""Joins of stored groups, in a task.

In: the stored rows of both sides. Out: the rows of the join that are released now. The value that
bounds the join in time is the same on both sides, so that all partners of a row in the released
range are in that range, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from terascope.execute.rows.steps import run_steps
from terascope.execute.rows.task_joins import joined
from terascope.execute.rows.top import plain
from terascope.kernels.columns.finished_rows import FinishedRows
from terascope.physical.delivery import Sink
from terascope.physical.row_pipeline import KeptOrder
from terascope.physical.task_join import Side, TaskJoin
from terascope.plan.expr import Expr
from terascope.streaming.engine import Report
from terascope.streaming.stored_rows import StoredRows, StoredStream
from terascope.streaming.tasks.work import DueRange, in_order, report_part


@dataclass(frozen=True)
class DueJoin:
    """A join, and the range of its rows that is released."""

    pairing: TaskJoin
    left: StoredStream
    right: StoredStream
    values: tuple[Expr, Expr]
    """Over the rows of each side: the value that bounds the join in time."""
    range: DueRange
    order: Sequence[tuple[str, bool]] = ()
    """Of the rows of the query; columns that are not delivered are left out."""
    ordered: KeptOrder = ()

    @property
    def bytes(self) -> int:
        return self.left.bytes + self.right.bytes

    def run(self, stored: StoredRows, sink: Sink) -> Iterator[Report]:
        pairing = self.pairing
        left = self.side(stored, self.left, pairing.left, self.values[0])
        right = self.side(stored, self.right, pairing.right, self.values[1])
        names = {f.name for f in pairing.fields}
        order = [(name, down) for name, down in self.order if name in names]
        rows = in_order([joined(pairing, left, right)], pairing.fields, order)
        yield report_part(pairing.query, pairing.fields, rows, sink, self.ordered)

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
