"""Joins of closed groups that tasks make.

In: the closed rows of both sides. Out: the rows of the join that are due. Rows of both sides meet
by the value that ties their epochs together, so that those in the range that is let go have all
their partners in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from terascope.execute.rows.pairs import joined
from terascope.execute.rows.steps import run_steps
from terascope.execute.rows.top import plain
from terascope.kernels.columns.finished_rows import FinishedRows
from terascope.physical.delivery import Sink
from terascope.physical.row_pipeline import KeptOrder
from terascope.physical.task_join import Pairing, Side
from terascope.plan.expr import Expr
from terascope.spark.rests import together
from terascope.spark.stream.due import DueRange, Told, in_order, told_part
from terascope.spark.stream.rows import Leaf, StoredRows


@dataclass(frozen=True)
class DueJoin:
    """A join, and which of its rows are due."""

    pairing: Pairing
    left: Leaf
    right: Leaf
    values: tuple[Expr, Expr]
    """Over the rows of each side: what ties them together in time."""
    range: DueRange
    order: Sequence[tuple[str, bool]] = ()
    """Of the rows of the query; by columns that are delivered only."""
    ordered: KeptOrder = ()

    @property
    def bytes(self) -> int:
        return self.left.bytes + self.right.bytes

    def tell(self, stored: StoredRows, sink: Sink) -> Iterator[Told]:
        pairing = self.pairing
        left = self.side(stored, self.left, pairing.left, self.values[0])
        right = self.side(stored, self.right, pairing.right, self.values[1])
        names = {f.name for f in pairing.fields}
        order = [(name, down) for name, down in self.order if name in names]
        rows = in_order([joined(pairing, left, right)], pairing.fields, order)
        yield told_part(pairing.query, pairing.fields, rows, sink, self.ordered)

    def side(self, stored: StoredRows, leaf: Leaf, side: Side, value: Expr) -> pa.RecordBatch:
        """The rows of a side that are due."""
        found: list[pa.RecordBatch] = []
        for batch in stored.batches(leaf):
            made = run_steps(side.program.steps, batch)
            if made.num_rows:
                found.append(made.filter(self.range.has(FinishedRows(made).column(value))))
        return together([plain(batch) for batch in found if batch.num_rows], side)
