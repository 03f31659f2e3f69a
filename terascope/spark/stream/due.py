"""Queries that tasks compute from closed rows: what Spark would take longer to plan than to do.

In: of all such queries of a micro-batch the closed rows they read, and the range that is let go.
Out: parts; a task for each query, or for those that share what they are made of, all in one job. A
query whose rows are too many for the memory of a task is Spark's (stream_high.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from terascope.analysis.moving import ALL
from terascope.connectors.base import arrow_type
from terascope.execute.results.assemble import sorted_places
from terascope.execute.results.parts import write_part
from terascope.execute.rows.pairs import MEMORY_SHARE
from terascope.execute.rows.top import plain
from terascope.functions.base import Value
from terascope.physical.delivery import Sink
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.rel import Field
from terascope.spark.stream.rows import StoredRows
from terascope.spark.stream.task import TOLD, told_row
from terascope.spark.worker import working


@dataclass(frozen=True)
class DueRange:
    """Values from `low`, which is in it, up to `high`, which is not. None as `low`: from the
    beginning; ALL as `high`: to the end, with rows that have no value. One that falls with time has
    its larger values first.
    """

    low: Value
    high: Value
    descending: bool = False

    def has(self, values: pa.Array) -> pa.Array:
        """Which values are in it."""
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


Told: TypeAlias = tuple[str, str]
"""What a task did: `part` or `segment`, and which."""


class Due(Protocol):
    """Queries whose rows a task computes, or what they will be computed from."""

    @property
    def bytes(self) -> int:
        """What it reads of the store."""
        ...

    def tell(self, stored: StoredRows, sink: Sink) -> Iterator[Told]:
        """Does it."""
        ...


def fits(due: Due, memory_bytes: int) -> bool:
    return MEMORY_SHARE * due.bytes <= memory_bytes


@dataclass(frozen=True)
class Computing:
    """Queries in the tasks."""

    stored: StoredRows
    sink: Sink
    work: Sequence[Due]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with working():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for told in self.work[number].tell(self.stored, self.sink):
                        yield told_row(*told)


def told_part(
    query: str,
    fields: tuple[Field, ...],
    rows: pa.RecordBatch,
    sink: Sink,
    ordered: KeptOrder = (),
) -> Told:
    """Rows of a query that are due, with the columns that are delivered, as a part."""
    return "part", write_part(sink, query, fields, rows, ordered).told()


def compute_due(
    spark: SparkSession, stored: StoredRows, sink: Sink, due: Sequence[Due]
) -> list[Told]:
    """What the tasks tell."""
    if not due:
        return []
    tasks = spark.range(0, len(due), 1, len(due))
    told = tasks.mapInArrow(Computing(stored, sink, due), TOLD).collect()
    return [(row[0], row[1]) for row in told]


def in_order(
    batches: Sequence[pa.RecordBatch], fields: Sequence[Field], order: Sequence[tuple[str, bool]]
) -> pa.RecordBatch:
    """Rows of a query as they are delivered; `order` may be by columns that are not."""
    schema = pa.schema([(f.name, arrow_type(f.type)) for f in fields])
    names = [f.name for f in fields]
    names += [name for name, _ in order if name not in names]
    tables = [
        pa.Table.from_batches([plain(rows.select(names))]) for rows in batches if rows.num_rows
    ]
    if not tables:
        return pa.RecordBatch.from_pylist([], schema)
    whole = pa.concat_tables(tables)
    if order:
        whole = whole.take(sorted_places(whole, order))
    (rows,) = whole.select(schema.names).cast(schema).combine_chunks().to_batches()
    return rows
