"""Joins of closed groups, made by tasks: what Spark would take longer to plan than to do.

In: the closed rows of both sides that are due, of all joins of a micro-batch. Out: parts. Rows of
both sides meet by the value that ties their epochs together, so that those in the range that is let
go have all their partners in it. A join that is too large for the memory of a task is Spark's
(stream_high.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from terascope.analysis.moving import ALL
from terascope.functions.base import Value
from terascope.low.delivery import Sink
from terascope.low.finished_rows import FinishedRows
from terascope.low.pairs import MEMORY_SHARE, Pairing, Side
from terascope.low.parts import Part, PartWriter
from terascope.low.top import plain
from terascope.plan.expr import Expr
from terascope.spark.rests import together
from terascope.spark.stream_rows import Leaf, StoredRows
from terascope.spark.stream_task import TOLD, TOLD_ARROW
from terascope.spark.worker import working


@dataclass(frozen=True)
class DueJoin:
    """A join, and which of its rows are due."""

    pairing: Pairing
    left: Leaf
    right: Leaf
    values: tuple[Expr, Expr]
    """Over the rows of each side: what ties them together in time."""
    low: Value
    high: Value

    def fits(self, memory_bytes: int) -> bool:
        return MEMORY_SHARE * (self.left.bytes + self.right.bytes) <= memory_bytes


@dataclass(frozen=True)
class Joining:
    """Joins in the tasks, one after the other."""

    stored: StoredRows
    sink: Sink
    work: Sequence[DueJoin]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with working():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    part = self.joined(self.work[number])
                    yield pa.RecordBatch.from_arrays(
                        [pa.array(["part"]), pa.array([part.told()])], schema=TOLD_ARROW
                    )

    def joined(self, due: DueJoin) -> Part:
        pairing = due.pairing
        left = self.rows(due, due.left, pairing.left, due.values[0])
        right = self.rows(due, due.right, pairing.right, due.values[1])
        folder = self.sink.folder_of(pairing.query)
        folder.mkdir(parents=True, exist_ok=True)
        with PartWriter(folder, self.sink.format, pairing.fields) as part:
            part.write(pairing.joined(left, right))
            return Part(pairing.query, *part.close())

    def rows(self, due: DueJoin, leaf: Leaf, side: Side, value: Expr) -> pa.RecordBatch:
        """The rows of a side that are due."""
        found: list[pa.RecordBatch] = []
        for batch in self.stored.batches(leaf):
            made = side.program(batch)
            if made.num_rows:
                found.append(made.filter(within(FinishedRows(made).column(value), due)))
        return together([plain(batch) for batch in found if batch.num_rows], side)


def within(values: pa.Array, due: DueJoin) -> pa.Array:
    """Which values are in the range; those without one are due at the end."""
    keep = pa.array([True] * len(values)) if due.low is None else pc.greater_equal(values, due.low)
    if due.high is not ALL:
        keep = pc.and_(keep, pc.less(values, due.high))
    return pc.fill_null(keep, due.high is ALL)


def join_due(
    spark: SparkSession, stored: StoredRows, sink: Sink, due: Sequence[DueJoin]
) -> list[tuple[str, str]]:
    """What the tasks tell; a task for each join."""
    if not due:
        return []
    tasks = spark.range(0, len(due), 1, len(due))
    told = tasks.mapInArrow(Joining(stored, sink, due), TOLD).collect()
    return [(row[0], row[1]) for row in told]
