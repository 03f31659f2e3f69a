"""Job -> rows, in this process: the local engine of a batch run.

In: a `Job` whose sources all host their low level, and a sink in a local folder. Out: a
`JobResult`: parts of the queries that tasks finish, tables of the others. No JVM is started.
"""

from __future__ import annotations

import os
from time import perf_counter

import pyarrow as pa

from terascope.diagnostic import SourceError
from terascope.execute.low_level import LowResult, Progress, run_low_level
from terascope.execute.reports import scan_horizon
from terascope.execute.results.job_result import JobResult
from terascope.execute.results.parts import write_part
from terascope.execute.results.result_files import sorted_places
from terascope.functions.overflow import overflow_of
from terascope.local.choice import not_local
from terascope.local.engine import LocalEngine
from terascope.local.relations import ArrowRelations
from terascope.physical.delivery import Sink
from terascope.physical.job import Job, Output
from terascope.physical.operators import Measure
from terascope.physical.rules.finish_in_tasks import needed
from terascope.plan.horizon import Horizons
from terascope.plan.plan import reads
from terascope.plan.rel import Rel


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
    trees = {stage.name: stage.rel for stage in job.streams}
    for output in job.outputs:
        take_output(output, trees[output.stream], high, result)
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
    stages = [stage for stage in job.streams if stage.name in wanted]
    for done, stage in enumerate(stages):
        tell("computing", done, len(stages))
        start = perf_counter()
        with overflow_of(stage.name):
            made = streams[stage.name] = high.rows(stage.rel)
        taken = sum(streams[read.stream].num_rows for read in reads(stage.rel))
        measure = Measure(taken, made.num_rows, seconds=perf_counter() - start)
        result.measures[f"relation {stage.name}"] = measure
    tell("computing", len(stages), len(stages))
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
