"""Job -> DataFrames: a query set computed by Spark, in batch.

In: a `Job` and a session. Out: a `JobResult`: for every visible stream a DataFrame of its visible
columns in the order rows are delivered, and what reading the sources saw. Each source is read
once, into Spark's storage, and that pass brings the counts with it; each stream that several
others use is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.connectors.base import ReadReport
from terascope.physical.job import Job, Output, SourceRead
from terascope.plan.horizon import Horizons
from terascope.plan.rel import Field, Rel, Scan
from terascope.spark.frame import Frame
from terascope.spark.mistakes import translating
from terascope.spark.relations import Context, frame_of, sort_column
from terascope.spark.source import META, Reports, add_report, reports_from_json, source_frame

Progress: TypeAlias = Callable[[str, int, int], None]
"""What is being done, how many of it are, how many there are."""

KEPT = StorageLevel.MEMORY_AND_DISK


@dataclass
class JobResult:
    """The answers of a query set. Spark computes a DataFrame when its rows are asked for; `close`
    gives back what was kept for that.
    """

    dataframes: dict[str, DataFrame] = field(default_factory=dict)
    fields: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    """The columns of each output, with their GSQL types."""
    reports: dict[str, ReadReport] = field(default_factory=dict)
    """What reading saw, by the name of the read."""
    interfaces: Reports = field(default_factory=dict)
    """The same by interface."""
    kept: list[DataFrame] = field(default_factory=list)

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


def run_job(job: Job, spark: SparkSession, progress: Progress | None = None) -> JobResult:
    """Read the sources and set up every stream.

    Raises:
        SourceError: a source cannot be read.
        ValueMistake: a value no answer exists for, such as an integer overflow; also raised, by
            `terascope.spark.mistakes.translating`, when rows are asked for later.
    """
    tell = progress or (lambda phase, done, total: None)
    result = JobResult()
    try:
        with translating():
            sources = read_sources(job, spark, result, tell)
            compute_streams(job, spark, sources, result, tell)
    except BaseException:
        result.close()
        raise
    return result


def read_sources(
    job: Job, spark: SparkSession, result: JobResult, tell: Progress
) -> dict[str, tuple[SourceRead, DataFrame]]:
    """Every source, by interface: read, kept, counted."""
    tasks = int(spark.conf.get("spark.sql.shuffle.partitions", "4") or 4)
    sources: dict[str, tuple[SourceRead, DataFrame]] = {}
    for done, read in enumerate(job.reads):
        tell("reading", done, len(job.reads))
        df = result.keep(source_frame(spark, read, tasks))
        meta = F.col(f"`{META}`")
        told = df.filter(meta.isNotNull()).select(meta).collect()
        reports = reports_from_json(row[0] for row in told)
        result.reports[read.name] = summed(reports.values())
        for interface, report in reports.items():
            add_report(result.interfaces, interface, report)
        tuples = df.filter(meta.isNull()).drop(META)
        sources |= {i.name: (read, tuples) for i in read.interfaces}
    tell("reading", len(job.reads), len(job.reads))
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
    result: JobResult,
    tell: Progress,
) -> None:
    trees: dict[str, Rel] = {}
    streams: dict[str, Frame] = {}
    horizons = Horizons(lambda scan: scan_horizon(scan, result.interfaces), trees, job.parameters)
    context = Context(spark, sources, streams, job.parameters, horizons)
    for done, stage in enumerate(job.streams):
        tell("planning", done, len(job.streams))
        frame = frame_of(stage.rel, context)
        if stage.keep:
            result.keep(frame.df)
        streams[stage.name], trees[stage.name] = frame, stage.rel
    tell("planning", len(job.streams), len(job.streams))
    for output in job.outputs:
        frame = streams[output.stream]
        result.dataframes[output.stream] = delivered(output, frame)
        types = {f.name: f for f in frame.fields}
        result.fields[output.stream] = tuple(types[name] for name in output.columns)


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
