"""What the tasks that compute queries from stored rows have in common.

A piece of work reads stored rows, keeps those in the range that is released now, and writes a part.
All pieces of a micro-batch run in one job, each in a task of its own. Spark computes a query whose
rows are too many for the memory of a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.analysis.moving import ALL
from terascope.connectors.base import arrow_type
from terascope.execute.results.assemble import sorted_rows
from terascope.execute.results.parts import write_part
from terascope.execute.rows.task_joins import MEMORY_SHARE
from terascope.execute.rows.top import plain
from terascope.functions.base import Value
from terascope.physical.delivery import Sink
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.rel import Field
from terascope.streaming.engine import Report
from terascope.streaming.stored_rows import StoredRows


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
        """Which values are in the range."""
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
    """Queries whose rows a task computes from the store, or spans that windows will be made of."""

    @property
    def bytes(self) -> int:
        """The stored bytes that the work reads."""
        ...

    def run(self, stored: StoredRows, sink: Sink) -> Iterator[Report]: ...


def fits(work: DueWork, memory_bytes: int) -> bool:
    """Whether a task has the memory for the rows that the work reads."""
    return MEMORY_SHARE * work.bytes <= memory_bytes


@dataclass(frozen=True)
class StoredWork:
    """Work on stored rows, as a task gets it."""

    work: DueWork
    stored: StoredRows
    sink: Sink

    def __call__(self) -> Iterator[Report]:
        return self.work.run(self.stored, self.sink)


def report_part(
    query: str,
    fields: tuple[Field, ...],
    rows: pa.RecordBatch,
    sink: Sink,
    ordered: KeptOrder = (),
) -> Report:
    """Write rows of a query as a part, and report it."""
    return "part", write_part(sink, query, fields, rows, ordered).told()


def in_order(
    batches: Sequence[pa.RecordBatch], fields: Sequence[Field], order: Sequence[tuple[str, bool]]
) -> pa.RecordBatch:
    """The delivered columns of rows, sorted; `order` may name columns that are not delivered."""
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
