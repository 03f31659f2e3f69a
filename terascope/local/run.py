"""Job -> rows, in this process: the local engine of a batch run.

In: a `Job` whose sources all host their low level, and a sink in a local folder. Out: a
`JobResult`: parts of the queries that tasks finish, tables of the others. Reading tasks and merging
tasks (terascope.execute.low_level) run one after the other; what they send each other is on disk
where it is much. No JVM is started.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Final

import pyarrow as pa

from terascope.diagnostic import SourceError
from terascope.execute.low_level import LowResult, Progress, run_low_level
from terascope.execute.merge import LeftoverJoin, Merging
from terascope.execute.partition_task import PartitionWork, later_rows, partition_rows
from terascope.execute.reading_task import NativeRead, low_rows, native_bundles
from terascope.execute.relation_task import FinalTask
from terascope.execute.relations import ArrowRelations
from terascope.execute.reports import (
    DRIVER_BYTES,
    ExchangeTask,
    Kind,
    Outgoing,
    TaskReports,
    scan_horizon,
)
from terascope.execute.results.job_result import JobResult
from terascope.execute.results.parts import Part, write_part
from terascope.execute.results.result_files import sorted_places
from terascope.execute.rows.steps import batch_of
from terascope.execute.spill import temporary_file
from terascope.functions.overflow import overflow_of
from terascope.kernels.merge.payload import unpack_tuples
from terascope.local.choice import not_local
from terascope.physical.delivery import Sink, Target
from terascope.physical.job import Job, Output
from terascope.physical.operators import Measure
from terascope.physical.rules.finish_in_tasks import needed
from terascope.plan.horizon import Horizons
from terascope.plan.plan import reads
from terascope.plan.rel import Rel

PARTITION_TASKS: Final = 16
"""Partitions are read one by one up to this number; tables of one partition are smaller."""


class LocalPass:
    """The output of the tasks of one pass. Payloads that the driver would not merge or join itself
    are on disk.
    """

    def __init__(self, rows: Iterable[Outgoing]) -> None:
        self._rows: list[Outgoing] = []
        """Without the payloads that are on disk."""
        self._file = temporary_file()
        self._offsets: list[int] = []
        """The places of payloads that are on disk; those of other rows do not matter."""
        held = 0
        for row in rows:
            self._offsets.append(self._file.size)
            if row.payload is not None and held + row.size > DRIVER_BYTES:
                self._file.append(row.payload)
                row = replace(row, payload=None, dropped_bytes=row.size)
            held += len(row.payload or b"")
            self._rows.append(row)

    @cached_property
    def reports(self) -> TaskReports:
        return TaskReports(self._rows)

    def payloads(
        self, kind: Kind, streams: Collection[int] | None = None, destination: int | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Streams and payloads of rows of a kind: of some streams, for one destination, or all."""
        for row, offset in zip(self._rows, self._offsets, strict=True):
            wanted = streams is None or row.stream in streams
            if row.kind != kind or not wanted or destination not in (None, row.destination):
                continue
            if row.payload is not None:
                yield row.stream, row.payload
            elif row.dropped_bytes:
                yield row.stream, self._file.read(offset, row.dropped_bytes).tobytes()


@dataclass(frozen=True)
class LocalEngine:
    """Tasks of this process. `tasks`: how many a source is read in; answers do not depend on it."""

    tasks: int = 1
    processes: int = 1
    """The number of processes that compile kernels at once."""
    finishes: bool = False
    """Whether relations that read little are written as parts; if not, all are computed as tables
    of this process (`compute_streams`)."""

    @property
    def partition_tasks(self) -> int:
        return max(PARTITION_TASKS, self.tasks)

    def read(self, reading: NativeRead, leftovers: Collection[int]) -> LocalPass:
        del leftovers  # all rows are in this process
        bundles = native_bundles(reading, self.tasks)
        return LocalPass(row for bundle in bundles for row in low_rows(reading, bundle))

    def read_partitions(
        self,
        work: PartitionWork,
        leftovers: Collection[int],
        hosts: Sequence[Sequence[str]],
    ) -> LocalPass:
        del leftovers, hosts  # this process has them all
        return LocalPass(row for one in work.bundles() for row in partition_rows(work, one))

    def finish_partitions(
        self, work: PartitionWork, before: LocalPass, horizons: Horizons
    ) -> LocalPass:
        wanted = {number for number, target in work.targets.items() if target.later}
        return LocalPass(
            row
            for number in range(work.count)
            for row in later_rows(work, horizons, number, before.payloads("rows", wanted, number))
        )

    def combine_on_hosts(
        self, one: LocalPass, merging: Merging, hosts: int, destinations: int
    ) -> LocalPass:
        del hosts  # there is one
        return LocalPass(merging.combined(one.payloads("groups"), destinations))

    def exchange(
        self,
        passes: Sequence[LocalPass],
        task: ExchangeTask,
        leftovers: Collection[int],
        size: int,
        destinations: int,
    ) -> LocalPass:
        del leftovers, size
        homes = (all_payloads(passes, task.kind, None, home) for home in range(destinations))
        return LocalPass(row for home in homes for row in task.run(home))

    def holding(self, rows: Sequence[Outgoing]) -> LocalPass:
        return LocalPass(rows)

    def join_leftovers(self, passes: Sequence[LocalPass], joining: LeftoverJoin) -> list[Part]:
        numbers = {side.leftovers for join in joining.joins for side in join.sides}
        return list(joining.parts(all_payloads(passes, "rows", numbers)))

    def finish(self, passes: Sequence[LocalPass], final: FinalTask) -> TaskReports:
        packed = all_payloads(passes, "rows", final.targets)
        return TaskReports(list(final.outgoing(packed)))

    def rows(self, passes: Sequence[LocalPass], number: int, target: Target) -> pa.RecordBatch:
        packed = all_payloads(passes, "rows", {number})
        return batch_of((b for _, one in packed for b in unpack_tuples(one)), target.fields)


def all_payloads(
    passes: Iterable[LocalPass],
    kind: Kind,
    streams: Collection[int] | None = None,
    destination: int | None = None,
) -> Iterator[tuple[int, bytes]]:
    """The payloads of several passes, those of each once: a pass stands for every stream it has."""
    for one in {id(one): one for one in passes}.values():
        yield from one.payloads(kind, streams, destination)


def run_locally(
    job: Job,
    sink: Sink | None = None,
    progress: Progress | None = None,
    engine: LocalEngine | None = None,
) -> JobResult:
    """Read the sources and compute every output. With a sink, tasks write the queries that they can
    finish.

    Raises:
        SourceError: a source cannot be read, or its tuples are in Spark.
        ValueMistake: a value no answer exists for, such as an integer overflow.
    """
    tell = progress or (lambda phase, done, total: None)
    if (why := not_local(job)) is not None:
        raise SourceError(f"engine local cannot run this set: {why}; take --engine spark")
    low = run_low_level(job, engine or LocalEngine(processes=os.cpu_count() or 1), sink, tell)
    result = JobResult()
    result.take_low_level(low, job)
    high = compute_streams(job, low, result, tell)
    for query, rel in low.leftover.items():
        assert sink is not None
        fields = result.part_fields[query]
        rows = high.rows(rel).select([f.name for f in fields])
        result.parts[query].append(write_part(sink, query, fields, rows))
    for output in job.outputs:
        take_output(output, job.streams[output.stream], high, result)
    return result


def compute_streams(
    job: Job, low: LowResult[pa.RecordBatch], result: JobResult, tell: Progress
) -> ArrowRelations:
    """Every stream that an output above the low level is computed from."""
    streams = dict(low.rows)
    horizons = Horizons(
        lambda scan: scan_horizon(scan, result.interfaces), job.trees, job.parameters
    )
    compiled = any(read.low is not None and read.low.compiled for read in job.reads)
    high = ArrowRelations(streams, job.parameters, horizons, compiled)
    wanted = needed(job, result.parts)
    for done, (name, rel) in enumerate(wanted.items()):
        tell("computing", done, len(wanted))
        start = perf_counter()
        with overflow_of(name):
            made = streams[name] = high.rows(rel)
        taken = sum(streams[read.stream].num_rows for read in reads(rel))
        measure = Measure(taken, made.num_rows, seconds=perf_counter() - start)
        result.measures[f"relation {name}"] = measure
    tell("computing", len(wanted), len(wanted))
    return high


def take_output(output: Output, rel: Rel, high: ArrowRelations, result: JobResult) -> None:
    """The visible columns of an output, rows in order."""
    name = output.stream
    if name in result.parts:
        result.fields[name] = result.part_fields[name][: len(output.columns)]
        result.orders[name] = output.order
        return
    rows = pa.Table.from_batches([high.streams[name]])
    if output.order:
        rows = rows.take(sorted_places(rows, output.order))
    result.fields[name] = output.part_fields(rel, sorted_later=False)
    result.tables[name] = rows.select(list(output.columns))
    result.note_rows(name, rows.num_rows)
