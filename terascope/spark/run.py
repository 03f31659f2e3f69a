"""Job -> DataFrames: a query set computed by Spark, in batch.

In: a `Job` and a session. Out: a `SparkResult`: for every visible stream a DataFrame of its visible
columns in the order of its rows, and the reports of reading the sources. Each source is read once,
into Spark's storage, and that pass also gives the counts; each stream with several readers is
computed once.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import ClassVar, Final, cast

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from terascope.connectors.dataframe import DataFrameInterface
from terascope.execute.low_level import EngineName, LowResult, Progress, run_low_level
from terascope.execute.reports import reports_from_json, scan_horizon
from terascope.execute.results.job_result import IN_MEMORY, JobResult
from terascope.execute.results.parts import drop_other_parts
from terascope.execute.results.result_files import Format
from terascope.physical.delivery import PartFormat, Sink
from terascope.physical.job import Job, SourceRead
from terascope.physical.operators import Measure, Measures
from terascope.physical.rules.finish_in_tasks import needed
from terascope.plan.horizon import Horizons
from terascope.plan.plan import reads
from terascope.plan.rel import Rel
from terascope.spark.catalyst.frame import Frame, by_place, project, schema_of
from terascope.spark.catalyst.relations import Context, frame_of, ordered_rows
from terascope.spark.dataframes import check_partitions, dataframe_reports, dataframe_tuples
from terascope.spark.engine import (
    KEPT,
    META,
    Kept,
    SparkBatchEngine,
    source_frame,
    tasks_of,
)
from terascope.spark.mistakes import translating
from terascope.spark.write import Writing, more_parts, write_output

PARTITIONED: Final = {
    # An adaptive plan of rows that are kept does not say what they are partitioned by.
    "spark.sql.adaptive.enabled": "false",
    # A join is made in the partitions if some of its keys determine them.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
"""Settings of Spark under which operators use the partitions of a DataFrame as they are."""


@dataclass
class SparkResult(JobResult):
    """The answers of a query set. Spark computes a DataFrame when its rows are read; `close`
    releases the rows that Spark keeps for that.
    """

    engine: ClassVar[EngineName] = "spark"

    spark: SparkSession = field(kw_only=True)
    dataframes: dict[str, DataFrame] = field(default_factory=dict)
    """The outputs that no task wrote."""
    unsorted: dict[str, DataFrame] = field(default_factory=dict)
    """The same rows in any order, which is cheaper."""
    kept: list[Kept] = field(default_factory=list)
    relations: Mapping[str, Rel] = field(default_factory=dict)
    """The relations that Spark computes, each behind those it reads."""
    frames: dict[str, Frame] = field(default_factory=dict)
    """Their rows, and those of the low-level streams they read."""
    settings: dict[str, str | None] = field(default_factory=dict)
    """The settings of Spark that were changed, with their values before."""

    def keep_partitionings(self) -> None:
        """Let Spark plan for what DataFrames are partitioned by, also in rows that it keeps, until
        the result is closed.
        """
        for name, value in PARTITIONED.items():
            if name not in self.settings:
                self.settings[name] = self.spark.conf.get(name)
                self.spark.conf.set(name, value)

    def measured(self) -> Measures:
        """The figures of every operator. Each relation is computed alone for its figures, once:
        inside a query Catalyst merges it with the relations around it.
        """
        if self.relations and not self.closed:
            with translating():
                counts = {name: counted(frame.df) for name, frame in self.frames.items()}
            for name, rel in self.relations.items():
                given, seconds = counts[name]
                taken = sum(counts[read.stream][0] for read in reads(rel))
                self.measures[f"relation {name}"] = Measure(taken, given, seconds=seconds)
            for name in self.dataframes:
                self.note_rows(name, counts[name][0])
            self.relations = {}
        return super().measured()

    def keep(self, df: DataFrame) -> DataFrame:
        self.kept.append(df.persist(KEPT))
        return df

    def write(self, output: str, path: Path, format: Format, in_parts: bool) -> int:
        have, fields = self.parts.get(output), self.fields[output]
        if have is None:
            if in_parts:
                writing = Writing("", path.absolute(), cast("PartFormat", format), fields)
                parts = more_parts(self.unsorted[output], writing)
                drop_other_parts(path, [part.path for part in parts])
                return sum(part.rows for part in parts)
            return write_output(self.dataframes[output], path, format, fields)
        if in_parts or sum(part.rows for part in have) <= IN_MEMORY:
            return super().write(output, path, format, in_parts)
        with translating():
            df = self.frame(output)
        return write_output(df, path, format, fields)

    def frame(self, output: str) -> DataFrame:
        """The rows of an output, in order."""
        if output in self.dataframes:
            return self.dataframes[output]
        files = [str(part.path) for part in self.parts[output] if part.rows]
        fields = tuple(self.part_fields[output])
        schema = schema_of(fields)
        df = self.spark.read.parquet(*files) if files else self.spark.createDataFrame([], schema)
        typed = (F.col(f.name).cast(f.dataType) for f in schema)
        frame = project(by_place(df), typed, fields)
        return ordered_rows(frame, self.orders[output], frame.names[: len(self.fields[output])])

    def close(self) -> None:
        super().close()
        while self.kept:
            self.kept.pop().unpersist()
        while self.settings:
            name, value = self.settings.popitem()
            self.spark.conf.set(name, value or "")


def counted(df: DataFrame) -> tuple[int, float]:
    """The number of rows of a DataFrame and the seconds to compute them, all columns included."""
    start, rows = perf_counter(), Observation()
    observed = df.observe(rows, F.count(F.lit(1)).alias("rows"))
    observed.write.format("noop").mode("overwrite").save()
    return int(rows.get["rows"]), perf_counter() - start


def run_job(
    job: Job, spark: SparkSession, progress: Progress | None = None, sink: Sink | None = None
) -> SparkResult:
    """Read the sources and set up every stream.

    With a sink the tasks of a native low level write the queries that they can finish.

    Raises:
        SourceError: a source cannot be read.
        ValueMistake: a value no answer exists for, such as an integer overflow; also raised, by
            `terascope.spark.mistakes.translating`, when rows are asked for later.
    """
    tell = progress or (lambda phase, done, total: None)
    result = SparkResult(spark=spark)
    try:
        with translating():
            engine = SparkBatchEngine(spark, result.kept)
            low: LowResult[Frame] = run_low_level(job, engine, sink, tell)
            result.take_low_level(low, job)
            sources = read_sources(job, result, tell)
            context = compute_streams(job, sources, low.rows, result, tell)
            write_leftovers(low, context, result, sink)
    except BaseException:
        result.close()
        raise
    spare_collector()
    return result


@cache
def spare_collector() -> None:
    """After the first job, hide imported and compiled objects from the garbage collector: they stay
    as long as this process, and walking over them takes a tenth of a second, again and again.
    """
    gc.collect()
    gc.freeze()


def write_leftovers(
    low: LowResult[Frame], context: Context, result: SparkResult, sink: Sink | None
) -> None:
    """Join the leftover rows of queries that tasks write."""
    for query, rel in low.leftover.items():
        assert sink is not None
        frame = frame_of(rel, context)
        fields = result.part_fields[query]
        columns = frame.df.select(*(frame.column(f.name) for f in fields))
        writing = Writing(query, sink.folder_of(query), sink.format, fields)
        result.parts[query] += more_parts(columns, writing)


def read_sources(
    job: Job, result: SparkResult, tell: Progress
) -> dict[str, tuple[SourceRead, DataFrame]]:
    """Every source whose tuples go to the high level, by interface: read, kept, counted."""
    spark, tasks = result.spark, tasks_of(result.spark)
    sources: dict[str, tuple[SourceRead, DataFrame]] = {}
    meta = F.col(f"`{META}`")
    wanted = [read for read in job.reads if read.low is None]
    for done, read in enumerate(wanted):
        tell("reading", done, len(wanted))
        if isinstance(bound := read.interfaces[0], DataFrameInterface):
            if read.partitioned_by is not None:
                result.keep_partitionings()
            df = result.keep(dataframe_tuples(spark, bound, read))
            reports = dataframe_reports(df, bound, read)
            check_partitions(df.filter(meta.isNull()), bound, read)
        else:
            df = result.keep(source_frame(spark, read, tasks))
            told = df.filter(meta.isNotNull()).select(meta).collect()
            reports = reports_from_json(row[0] for row in told)
        result.take_reports(read.name, reports)
        tuples = df.filter(meta.isNull()).drop(META)
        sources |= {i.name: (read, tuples) for i in read.interfaces}
    if wanted:
        tell("reading", len(wanted), len(wanted))
    return sources


def compute_streams(
    job: Job,
    sources: Mapping[str, tuple[SourceRead, DataFrame]],
    low: Mapping[str, Frame],
    result: SparkResult,
    tell: Progress,
) -> Context:
    streams: dict[str, Frame] = dict(low)
    horizons = Horizons(
        lambda scan: scan_horizon(scan, result.interfaces), job.trees, job.parameters
    )
    context = Context(result.spark, sources, streams, job.parameters, horizons)
    wanted = needed(job, result.parts)
    uses = Counter(read.stream for rel in wanted.values() for read in reads(rel))
    uses.update(o.stream for o in job.outputs if o.stream not in result.parts)
    for done, (name, rel) in enumerate(wanted.items()):
        tell("planning", done, len(wanted))
        frame = frame_of(rel, context)
        if name in low:  # the tasks gave the tuples of their sources, Spark has the others'
            frame = Frame(low[name].df.union(frame.df), frame.fields)
        if name in job.kept and uses[name] > 1:
            result.keep(frame.df)
        streams[name] = frame
    tell("planning", len(wanted), len(wanted))
    result.relations, result.frames = wanted, streams
    for output in job.outputs:
        if output.stream in result.parts:
            shown = result.part_fields[output.stream][: len(output.columns)]
            result.fields[output.stream] = shown
            result.orders[output.stream] = output.order
            continue
        frame = streams[output.stream]
        result.dataframes[output.stream] = ordered_rows(frame, output.order, output.columns)
        result.unsorted[output.stream] = ordered_rows(frame, (), output.columns)
        types = {f.name: f for f in frame.fields}
        result.fields[output.stream] = tuple(types[name] for name in output.columns)
    return context
