"""The local engine: reading tasks and merging tasks run in this process, one after the other.

In: the passes of the executor (terascope.execute.low_level). Out: their rows, which stay in memory,
and Arrow batches of the low-level streams for the high level.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.execute.merging_task import LeftoverJoin, Merging
from terascope.execute.reading_task import NativeRead, low_rows, native_bundles
from terascope.execute.reports import Outgoing, TaskReports
from terascope.execute.results.parts import Part
from terascope.execute.rows.steps import plain_column
from terascope.kernels.merge.payload import unpack_tuples
from terascope.physical.delivery import Target
from terascope.plan.rel import Field


@dataclass(frozen=True)
class LocalPass:
    """The output rows of the tasks of one pass."""

    outgoing: Sequence[Outgoing]

    @cached_property
    def reports(self) -> TaskReports:
        return TaskReports(self.outgoing)


@dataclass(frozen=True)
class LocalEngine:
    """Tasks of this process. `tasks`: how many a source is read in; answers do not depend on it."""

    tasks: int = 1
    processes: int = 1
    """The number of processes that compile kernels at once."""

    def read(self, reading: NativeRead, leftovers: Collection[int]) -> LocalPass:
        del leftovers  # all rows are in this process
        bundles = native_bundles(reading, self.tasks)
        return LocalPass([row for bundle in bundles for row in low_rows(reading, bundle)])

    def merge(
        self,
        passes: Sequence[LocalPass],
        merging: Merging,
        leftovers: Collection[int],
        size: int,
        destinations: int,
    ) -> LocalPass:
        del leftovers, size
        homes: list[list[tuple[int, bytes]]] = [[] for _ in range(destinations)]
        for row in all_rows(passes):
            if row.kind == "groups" and row.payload is not None:
                homes[row.destination].append((row.stream, row.payload))
        return LocalPass([row for home in homes for row in merging.merged(home)])

    def holding(self, rows: Sequence[Outgoing]) -> LocalPass:
        return LocalPass(rows)

    def join_leftovers(self, passes: Sequence[LocalPass], joining: LeftoverJoin) -> list[Part]:
        numbers = {side.rest for join in joining.joins for side in join.sides}
        found = (row for row in all_rows(passes) if row.kind == "rows" and row.stream in numbers)
        return list(joining.parts((r.stream, r.payload) for r in found if r.payload is not None))

    def rows(self, passes: Sequence[LocalPass], number: int, target: Target) -> pa.RecordBatch:
        packed = (r for r in all_rows(passes) if r.kind == "rows" and r.stream == number)
        batches = (b for r in packed if r.payload is not None for b in unpack_tuples(r.payload))
        return batch_of(batches, target.fields)


def all_rows(passes: Iterable[LocalPass]) -> Iterator[Outgoing]:
    """The rows of several passes, those of each once: a pass stands for every stream it has."""
    for one in {id(one): one for one in passes}.values():
        yield from one.outgoing


def batch_of(batches: Iterable[pa.RecordBatch], fields: Sequence[Field]) -> pa.RecordBatch:
    """Batches with the columns of `fields` as one, without dictionaries."""
    schema = pa.schema([(f.name, arrow_type(f.type)) for f in fields])
    found = [
        pa.RecordBatch.from_arrays(
            [plain_column(c, f.type) for c, f in zip(batch.columns, fields, strict=True)],
            schema=schema,
        )
        for batch in batches
    ]
    empty = pa.RecordBatch.from_arrays([pa.array([], t) for t in schema.types], schema=schema)
    return pa.concat_batches([*found, empty])
