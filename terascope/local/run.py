"""Job -> rows, in this process: the local engine of a batch run.

In: a `Job` whose sources all host their low level, and a sink in a local folder. Out: a
`JobResult`: parts of the queries that tasks finish, tables of the others. Reading tasks and merging
tasks (terascope.execute.low_level) run one after the other, and their rows stay in memory. No JVM
is started.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import pyarrow as pa

from terascope.diagnostic import SourceError
from terascope.execute.low_level import LowResult, Progress, run_low_level
from terascope.execute.merge import LeftoverJoin, Merging
from terascope.execute.reading_task import NativeRead, low_rows, native_bundles
from terascope.execute.reports import Outgoing, TaskReports, scan_horizon
from terascope.execute.results.job_result import JobResult
from terascope.execute.results.parts import Part, write_part
from terascope.execute.results.result_files import sorted_places
from terascope.execute.rows.steps import batch_of
from terascope.functions.overflow import overflow_of
from terascope.kernels.merge.payload import unpack_tuples
from terascope.local.choice import not_local
from terascope.local.relations import ArrowRelations
from terascope.physical.delivery import Sink, Target
from terascope.physical.job import Job, Output
from terascope.physical.operators import Measure
from terascope.physical.rules.finish_in_tasks import needed
from terascope.plan.horizon import Horizons
from terascope.plan.plan import reads
from terascope.plan.rel import Rel


@dataclass(frozen=True)
class LocalPass:
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
        numbers = {side.leftovers for join in joining.joins for side in join.sides}
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
