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
from typing import Any, Final, TypeAlias, TypeVar
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
Kept: TypeAlias = RDD[Any] | DataFrame
"""Rows that Spark keeps until they are released."""
ReportsByTask: TypeAlias = dict[str, dict[int, list[Outgoing]]]
"""By pass and by task: a repeated task reports again, and counts once."""

_accumulators: WeakKeyDictionary[SparkContext, Accumulator[ReportsByTask]] = WeakKeyDictionary()
OUTGOING: Final = "stream int, destination int, kind string, payload binary, report string"
OUTGOING_ARROW: Final = pa.schema(
    [
        ("stream", pa.int32()),
        ("destination", pa.int32()),
        ("kind", pa.string()),
        ("payload", pa.binary()),
        ("report", pa.string()),
    ]
)


@dataclass(frozen=True)
class SparkPass:
    """The output of the tasks of one pass."""

    reports: TaskReports
    as_frame: Callable[[], DataFrame]
    plain: RDD[Any] | None = None
    """The rows with a payload, where the pass was a plain job."""

    @cached_property
    def frame(self) -> DataFrame:
        """All rows with a payload, as columns of `OUTGOING`."""
        return self.as_frame()


def all_rows(passes: Iterable[SparkPass]) -> DataFrame:
    """The rows of several passes, each pass once."""
    return reduce(DataFrame.union, [one.frame for one in each_once(passes)])


def each_once(passes: Iterable[SparkPass]) -> list[SparkPass]:
    """The passes without repetitions: a pass is listed for every stream of its rows."""
    return list({id(one): one for one in passes}.values())


def task_frame(
    spark: SparkSession,
    tasks: Sequence[Callable[[], Iterator[pa.RecordBatch]]],
    schema: T.StructType | str,
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
    spark: SparkSession,
    items: RDD[Item],
    work: Callable[[Iterable[Item]], Iterator[Outgoing]],
    sent: ReportFilter,
    kept: list[Kept],
) -> SparkPass:
    """Run the work on each partition. Rows with a payload stay in Spark, reports are sent."""
    said, once = accumulator(spark.sparkContext), uuid4().hex

    def run(number: int, items: Iterable[Item]) -> Iterator[tuple[int, int, Kind, bytes, Any]]:
        reports: list[Outgoing] = []
        with working():
            for row in work(items):
                if sent.selects(row):
                    reports.append(sent.report(row))
                if row.payload is not None:
                    yield row.stream, row.destination, row.kind, row.payload, row.report
        said.add({once: {number: reports}})

    rows = items.mapPartitionsWithIndex(run).persist(KEPT)
    kept.append(rows)
    try:
        # Counted by the JVM: to look at rows in Python would take a second worker for each task.
        rows._jrdd.count()
    finally:
        by_task = said.value.pop(once, {})
    reports = TaskReports([row for number in sorted(by_task) for row in by_task[number]])
    return SparkPass(
        reports, lambda: spark.createDataFrame(rows, OUTGOING, verifySchema=False), rows
    )


def frame_pass(
    spark: SparkSession, df: DataFrame, sent: ReportFilter, kept: list[Kept]
) -> SparkPass:
    """Compute and keep the rows of a DataFrame of `OUTGOING`."""
    with planned_once(spark):
        df = df.persist(KEPT)
        kept.append(df)
        return SparkPass(collected_reports(df, sent), lambda: df)


def accumulator(context: SparkContext) -> Accumulator[ReportsByTask]:
    """The accumulator of this Spark: PySpark remembers each one that was ever made."""
    if context not in _accumulators:
        _accumulators[context] = context.accumulator({}, GatherReports())
    return _accumulators[context]


class GatherReports(AccumulatorParam[ReportsByTask]):
    """Combines the reports of tasks."""

    def zero(self, value: ReportsByTask) -> ReportsByTask:
        return {}

    def addInPlace(self, value1: ReportsByTask, value2: ReportsByTask) -> ReportsByTask:
        for once, by_task in value2.items():
            value1.setdefault(once, {}).update(by_task)
        return value1


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


def read_reports(df: DataFrame) -> list[tuple[str, str]]:
    """The rows of a DataFrame of reports."""
    return [(kind, text) for kind, text in df.collect()]


# ---- in the workers ------------------------------------------------------------------------------


def to_arrow(row: Outgoing) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([vars(row)], OUTGOING_ARROW)


def packed_pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """The stream and the payload of each row, as Spark passes them to a task."""
    for batch in batches:
        for stream, payload in zip(batch["stream"], batch["payload"], strict=True):
            yield stream.as_py(), payload.as_py()


def report_batch(kind: str, text: str) -> pa.RecordBatch:
    """One report as a batch of rows."""
    return pa.RecordBatch.from_pydict({"kind": [kind], "text": [text]})
