"""Passes of tasks as jobs of Spark: the reports of the tasks, and the rows that Spark keeps.

In: the work of tasks, over a source or over partial groups. Out: a `SparkPass`: the reports of the
tasks with the small payloads, and all packed groups and tuples, which Spark keeps until a later
pass or the high level reads them.

Most sets leave hardly any rows: their tasks write the answers themselves. Planning a DataFrame,
generating its code and keeping its rows takes Spark's JVM longer than the tasks of a short run, so
a pass is a plain job over the numbers of tasks, and reports travel with the message that a task is
done (an accumulator). Where DataFrames read the rows anyway, or where Spark is a server without
other jobs, the pass is a DataFrame, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import RDD, Accumulator, AccumulatorParam, SparkContext, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from terascope.execute.reports import Kind, Outgoing, ReportFilter, TaskReports
from terascope.spark.mistakes import in_worker, working
from terascope.spark.session import planned_once

KEPT = StorageLevel.MEMORY_AND_DISK

Item = TypeVar("Item")
Work: TypeAlias = Callable[[Iterable[Item]], Iterator[Outgoing]]
Row: TypeAlias = tuple[int, int, Kind, bytes, str | None]
"""An `Outgoing` with a payload."""
ReportsByTask: TypeAlias = dict[str, dict[int, list[Outgoing]]]
"""By pass and by task: a repeated task reports again, and counts once."""

_accumulators: WeakKeyDictionary[SparkContext, Accumulator[ReportsByTask]] = WeakKeyDictionary()
OUTGOING = T.StructType(
    [
        T.StructField("stream", T.IntegerType()),
        T.StructField("destination", T.IntegerType()),
        T.StructField("kind", T.StringType()),
        T.StructField("payload", T.BinaryType()),
        T.StructField("report", T.StringType()),
    ]
)
OUTGOING_ARROW = pa.schema(
    [
        ("stream", pa.int32()),
        ("destination", pa.int32()),
        ("kind", pa.string()),
        ("payload", pa.binary()),
        ("report", pa.string()),
    ]
)
REPORT: Final = T.StructType(
    [T.StructField("kind", T.StringType()), T.StructField("text", T.StringType())]
)
REPORT_ARROW: Final = pa.schema([("kind", pa.string()), ("text", pa.string())])


class Kept(Protocol):
    """Rows that Spark keeps until they are released."""

    def unpersist(self) -> object: ...


class SparkPass(Protocol):
    """The output of the tasks of one pass."""

    @property
    def reports(self) -> TaskReports: ...

    @property
    def frame(self) -> DataFrame:
        """All rows of its tasks with a payload, as columns of `OUTGOING`."""
        ...


@dataclass(frozen=True)
class FramePass:
    """A pass whose rows are a DataFrame."""

    frame: DataFrame
    reports: TaskReports

    @property
    def kept(self) -> Kept:
        return self.frame


@dataclass(frozen=True)
class PlainPass:
    """A pass whose rows become a DataFrame only when the high level reads them."""

    spark: SparkSession
    kept: RDD[Any]
    reports: TaskReports

    @cached_property
    def frame(self) -> DataFrame:
        return self.spark.createDataFrame(self.kept, OUTGOING, verifySchema=False)


@dataclass(frozen=True)
class DriverPass:
    """Rows that the driver has made."""

    spark: SparkSession
    rows: Sequence[Outgoing]

    @property
    def reports(self) -> TaskReports:
        return TaskReports(self.rows)

    @cached_property
    def frame(self) -> DataFrame:
        table = pa.Table.from_batches(map(to_arrow, self.rows), OUTGOING_ARROW)
        return self.spark.createDataFrame(table, OUTGOING)


def all_rows(passes: Iterable[SparkPass]) -> DataFrame:
    """The rows of several passes, each pass once."""
    return reduce(DataFrame.union, [one.frame for one in each_once(passes)])


def each_once(passes: Iterable[SparkPass]) -> list[SparkPass]:
    """The passes without repetitions: a pass is listed for every stream of its rows."""
    return list({id(one): one for one in passes}.values())


def task_frame(
    spark: SparkSession,
    tasks: Sequence[Callable[[], Iterator[pa.RecordBatch]]],
    schema: T.StructType,
) -> DataFrame:
    """The rows that tasks give, not computed yet: each piece of work is a task of its own.

    A data source of Spark would do, but Spark starts two Python processes for each read of one, to
    ask for its columns and its partitions: that takes longer than most reads.
    """

    def run(batches: Iterator[pa.RecordBatch], once: str = uuid4().hex) -> Iterator[pa.RecordBatch]:
        """`once` makes it unlike any other: Spark would take what it keeps of an equal one for its
        rows, though the files have changed since.
        """
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from tasks[number]()

    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    return numbers.mapInArrow(in_worker(run), schema)


def plain_pass(
    spark: SparkSession, items: RDD[Item], work: Work[Item], sent: ReportFilter
) -> PlainPass:
    """Run the work on each partition, and keep the rows with a payload."""
    said = accumulator(spark.sparkContext)
    reporting = Reporting(work, sent, said, uuid4().hex)
    rows = items.mapPartitionsWithIndex(reporting).persist(KEPT)
    try:
        # Counted by the JVM: to look at rows in Python would take a second worker for each task.
        rows._jrdd.count()
    except BaseException:
        rows.unpersist()
        raise
    finally:
        by_task = said.value.pop(reporting.once, {})
    reports = TaskReports([row for number in sorted(by_task) for row in by_task[number]])
    return PlainPass(spark, rows, reports)


def frame_pass(spark: SparkSession, df: DataFrame, sent: ReportFilter) -> FramePass:
    """Compute and keep the rows of a DataFrame of `OUTGOING`."""
    with planned_once(spark):
        df = df.persist(KEPT)
        return FramePass(df, collected_reports(df, sent))


def accumulator(context: SparkContext) -> Accumulator[ReportsByTask]:
    """The accumulator of this Spark: PySpark remembers each one that was ever made."""
    if context not in _accumulators:
        _accumulators[context] = context.accumulator({}, GatherReports())
    return _accumulators[context]


# ---- in the workers ------------------------------------------------------------------------------


class GatherReports(AccumulatorParam[ReportsByTask]):
    """Combines the reports of tasks."""

    def zero(self, value: ReportsByTask) -> ReportsByTask:
        return {}

    def addInPlace(self, value1: ReportsByTask, value2: ReportsByTask) -> ReportsByTask:
        for once, by_task in value2.items():
            value1.setdefault(once, {}).update(by_task)
        return value1


@dataclass(frozen=True)
class Reporting(Generic[Item]):
    """Works on the items of a partition. Rows with a payload stay in Spark, reports are sent."""

    work: Work[Item]
    sent: ReportFilter
    said: Accumulator[ReportsByTask]
    once: str

    def __call__(self, number: int, items: Iterable[Item]) -> Iterator[Row]:
        reports: list[Outgoing] = []
        with working():
            for row in self.work(items):
                if self.sent.selects(row):
                    reports.append(self.sent.report(row))
                if row.payload is not None:
                    yield row.stream, row.destination, row.kind, row.payload, row.report
        self.said.add({self.once: {number: reports}})


def to_arrow(row: Outgoing) -> pa.RecordBatch:
    values = (row.stream, row.destination, row.kind, row.payload, row.report)
    arrays = [pa.array([v], f.type) for v, f in zip(values, OUTGOING_ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=OUTGOING_ARROW)


def packed_pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """The stream and the payload of each row, as Spark passes them to a task."""
    for batch in batches:
        for stream, payload in zip(batch["stream"], batch["payload"], strict=True):
            yield stream.as_py(), payload.as_py()


def collected_reports(df: DataFrame, sent: ReportFilter) -> TaskReports:
    """The rows of a DataFrame of `OUTGOING` that are sent to the driver."""
    kind, stream, payload = F.col("kind"), F.col("stream"), F.col("payload")
    wanted = F.col("report").isNotNull() | (kind == "groups")
    most = F.lit(sent.groups_bytes)
    if sent.leftovers:
        wanted |= (kind == "rows") & stream.isin(*sent.leftovers)
        most = F.when(kind == "rows", sent.rows_bytes).otherwise(most)
    size = F.coalesce(F.length(payload), F.lit(0))
    payloads = F.when(size <= most, payload)
    rows = df.filter(wanted).select(stream, kind, "report", payloads, size).collect()
    return TaskReports(
        [
            Outgoing(s, 0, k, None, t, n) if p is None else Outgoing(s, 0, k, bytes(p), t)
            for s, k, t, p, n in rows
        ]
    )


def report_batch(kind: str, text: str) -> pa.RecordBatch:
    """One report as a batch of rows."""
    columns = [pa.array([kind], pa.string()), pa.array([text], pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=REPORT_ARROW)
