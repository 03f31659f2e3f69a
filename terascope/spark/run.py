"""Job -> DataFrames: a query set computed by Spark, in batch.

In: a `Job` and a session. Out: a `JobResult`: for every visible stream a DataFrame of its visible
columns in the order rows are delivered, and what reading the sources saw. Each source is read
once, into Spark's storage, and that pass brings the counts with it; each stream that several
others use is computed once.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.connectors.base import ReadReport
from terascope.connectors.dataframe import DataFrameInterface
from terascope.execute.prepare import prepare
from terascope.execute.reports import Reports, add_report, reports_from_json
from terascope.execute.results.parts import Part
from terascope.kernels.codegen.preload import tell_used
from terascope.physical.delivery import Sink
from terascope.physical.job import Job, Output, SourceRead
from terascope.physical.rules.finish_in_tasks import needed
from terascope.plan.horizon import Horizons
from terascope.plan.plan import reads
from terascope.plan.rel import Field, Scan
from terascope.spark.catalyst.frame import Frame
from terascope.spark.catalyst.relations import Context, frame_of, sort_column
from terascope.spark.dataframes import dataframe_reports, dataframe_tuples
from terascope.spark.mistakes import translating
from terascope.spark.native import NativeStreams, native_streams
from terascope.spark.parts import more_parts
from terascope.spark.passing import KEPT, Kept, tasks_of
from terascope.spark.session import parallelism
from terascope.spark.source import META, source_frame

Progress: TypeAlias = Callable[[str, int, int], None]
"""What is being done, how many of it are, how many there are."""


@dataclass
class JobResult:
    """The answers of a query set. Spark computes a DataFrame when its rows are asked for; `close`
    gives back what was kept for that.
    """

    spark: SparkSession
    dataframes: dict[str, DataFrame] = field(default_factory=dict)
    unsorted: dict[str, DataFrame] = field(default_factory=dict)
    """The same rows in any order, which is cheaper."""
    fields: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    """The columns of each output, with their GSQL types."""
    reports: dict[str, ReadReport] = field(default_factory=dict)
    """What reading saw, by the name of the read."""
    interfaces: Reports = field(default_factory=dict)
    """The same by interface."""
    kept: list[Kept] = field(default_factory=list)
    parts: dict[str, list[Part]] = field(default_factory=dict)
    """The outputs that the tasks wrote themselves: they have no DataFrame."""
    part_fields: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    """The columns of those outputs: the delivered ones, then those that rows are sorted by."""
    orders: dict[str, tuple[tuple[str, bool], ...]] = field(default_factory=dict)
    counters: list[dict[str, Any]] = field(default_factory=list)
    """What the low level did in each task: tuples, evaluations, evictions."""

    def keep(self, df: DataFrame) -> DataFrame:
        self.kept.append(df.persist(KEPT))
        return df

    def close(self) -> None:
        while self.kept:
            self.kept.pop().unpersist()

    def __enter__(self) -> JobResult:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run_job(
    job: Job, spark: SparkSession, progress: Progress | None = None, sink: Sink | None = None
) -> JobResult:
    """Read the sources and set up every stream.

    With a sink the tasks of a native low level write there what they can finish themselves.

    Raises:
        SourceError: a source cannot be read.
        ValueMistake: a value no answer exists for, such as an integer overflow; also raised, by
            `terascope.spark.mistakes.translating`, when rows are asked for later.
    """
    tell = progress or (lambda phase, done, total: None)
    result = JobResult(spark)
    try:
        with translating():
            low = NativeStreams()
            if any(read.low is not None for read in job.reads):
                low = run_low_level(job, spark, result, tell, sink)
            sources = read_sources(job, spark, result, tell)
            context = compute_streams(job, spark, sources, low.frames, result, tell)
            write_rests(low, context, result, sink)
    except BaseException:
        result.close()
        raise
    spare_collector()
    return result


@cache
def spare_collector() -> None:
    """After the first job: what was imported and compiled stays for as long as this process does,
    and to walk over all of it takes the collector of garbage a tenth of a second, again and again.
    """
    gc.collect()
    gc.freeze()


def run_low_level(
    job: Job, spark: SparkSession, result: JobResult, tell: Progress, sink: Sink | None
) -> NativeStreams:
    """The low level in the tasks that read; its streams are for the high level above it."""
    planned = job.deliveries
    prepare_kernels(planned.reads, tell, parallelism(spark.sparkContext.master or ""))
    tell("reading", 0, 1)
    low = native_streams(job, planned, spark, sink)
    result.kept += low.kept
    result.counters = low.counters
    for name, reports in low.reports.items():
        result.reports[name] = summed(reports.values())
        for interface, report in reports.items():
            add_report(result.interfaces, interface, report)
    for query, fields in low.direct.items():
        result.parts[query] = [part for part in low.parts if part.query == query]
        result.part_fields[query] = fields
    tell("reading", 1, 1)
    return low


def write_rests(low: NativeStreams, context: Context, result: JobResult, sink: Sink | None) -> None:
    """What tasks could not join of the queries they write."""
    for query, rel in low.rest.items():
        assert sink is not None
        frame = frame_of(rel, context)
        fields = result.part_fields[query]
        columns = frame.df.select(*(frame.column(f.name) for f in fields))
        folder = sink.folder_of(query)
        result.parts[query] += more_parts(columns, query, folder, sink.format, fields)


def prepare_kernels(reads: Sequence[SourceRead], tell: Progress, processes: int) -> None:
    """Compile the generated kernels before the tasks ask for them, once for all of them, and in so
    many processes as tasks may run at once.
    """
    plans = [read.low for read in reads if read.low is not None]
    for done, plan in enumerate(plans):
        prepare(plan, lambda made, total: tell("compiling kernels", made, total), processes)
        tell("compiling kernels", done + 1, len(plans))
    tell_used()


def read_sources(
    job: Job, spark: SparkSession, result: JobResult, tell: Progress
) -> dict[str, tuple[SourceRead, DataFrame]]:
    """Every source whose tuples go up, by interface: read, kept, counted."""
    tasks = tasks_of(spark)
    sources: dict[str, tuple[SourceRead, DataFrame]] = {}
    meta = F.col(f"`{META}`")
    wanted = [read for read in job.reads if read.low is None]
    for done, read in enumerate(wanted):
        tell("reading", done, len(wanted))
        if isinstance(bound := read.interfaces[0], DataFrameInterface):
            df = result.keep(dataframe_tuples(spark, bound, read))
            reports = dataframe_reports(df, bound, read)
        else:
            df = result.keep(source_frame(spark, read, tasks))
            told = df.filter(meta.isNotNull()).select(meta).collect()
            reports = reports_from_json(row[0] for row in told)
        result.reports[read.name] = summed(reports.values())
        for interface, report in reports.items():
            add_report(result.interfaces, interface, report)
        tuples = df.filter(meta.isNull()).drop(META)
        sources |= {i.name: (read, tuples) for i in read.interfaces}
    if wanted:
        tell("reading", len(wanted), len(wanted))
    return sources


def summed(reports: Iterable[ReadReport]) -> ReadReport:
    total: Reports = {}
    for report in reports:
        add_report(total, "", report)
    return total.get("", ReadReport())


def compute_streams(
    job: Job,
    spark: SparkSession,
    sources: Mapping[str, tuple[SourceRead, DataFrame]],
    low: Mapping[str, Frame],
    result: JobResult,
    tell: Progress,
) -> Context:
    streams: dict[str, Frame] = dict(low)
    horizons = Horizons(
        lambda scan: scan_horizon(scan, result.interfaces), job.trees, job.parameters
    )
    context = Context(spark, sources, streams, job.parameters, horizons)
    wanted = needed(job, result.parts)
    stages = [stage for stage in job.streams if stage.name in wanted]
    uses = Counter(read.stream for stage in stages for read in reads(stage.rel))
    uses.update(o.stream for o in job.outputs if o.stream not in result.parts)
    for done, stage in enumerate(stages):
        tell("planning", done, len(stages))
        frame = frame_of(stage.rel, context)
        if stage.name in low:  # the tasks gave the tuples of their sources, Spark has the others'
            frame = Frame(low[stage.name].df.union(frame.df), frame.fields)
        if stage.keep and uses[stage.name] > 1:
            result.keep(frame.df)
        streams[stage.name] = frame
    tell("planning", len(stages), len(stages))
    for output in job.outputs:
        if output.stream in result.parts:
            shown = result.part_fields[output.stream][: len(output.columns)]
            result.fields[output.stream] = shown
            result.orders[output.stream] = output.order
            continue
        frame = streams[output.stream]
        result.dataframes[output.stream] = delivered(output, frame)
        visible = [frame.column(name).alias(name) for name in output.columns]
        result.unsorted[output.stream] = frame.df.select(*visible)
        types = {f.name: f for f in frame.fields}
        result.fields[output.stream] = tuple(types[name] for name in output.columns)
    return context


def scan_horizon(scan: Scan, reports: Reports) -> dict[str, int]:
    """How far the columns of a scan moved, over all tuples of its interfaces."""
    furthest: dict[str, int] = {}
    for interface in scan.interfaces:
        seen = reports[interface].horizon if interface in reports else {}
        for column in scan.columns:
            if column.read_from in seen:
                latest = seen[column.read_from]
                furthest[column.name] = max(furthest.get(column.name, latest), latest)
    return furthest


def delivered(output: Output, frame: Frame) -> DataFrame:
    """The visible columns under their own names, rows in order."""
    order = [sort_column(frame.column(name), down) for name, down in output.order]
    df = frame.df.orderBy(*order) if order else frame.df
    return df.select(*(frame.column(name).alias(name) for name in output.columns))
