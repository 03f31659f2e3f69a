"""The engine of Spark: reading tasks and merging tasks as jobs, the exchange as a shuffle.

In: the passes that the executor (terascope.execute.low_level) asks for. Out: for each a
`SparkPass`: the reports of its tasks with the small payloads, and all packed groups and tuples,
which Spark keeps until a later pass or the high level reads them, as Frames of low-level streams.

Most sets leave hardly any rows: their tasks write the answers themselves. Planning a DataFrame,
generating its code and keeping its rows takes Spark's JVM longer than the tasks of a short run, so
a pass is a plain job over the numbers of tasks, and reports travel with the message that a task is
done (an accumulator). Where DataFrames read the rows anyway, or where Spark is a server without
other jobs, the pass is a DataFrame, too.

A read whose low level is not native is a DataFrame of its columns c0, c1, ... and a last column
`#meta`. Tuples have a NULL there; the last row of every partition has nothing but `#meta`, the JSON
of what reading it saw (bytes, tuples, malformed ones, how far time moved), so that the counts come
with the one pass over the data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import chain
from typing import Any, ClassVar, Final, TypeAlias, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import RDD, Accumulator, AccumulatorParam, SparkContext, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.utils import is_remote

from terascope.connectors.base import ReadReport, Split, arrow_type
from terascope.connectors.registry import read_split
from terascope.execute.merge import LeftoverJoin, Merging
from terascope.execute.partition_task import PartitionWork, later_rows, partition_rows
from terascope.execute.reading_task import Bundle, NativeRead, low_rows, native_bundles
from terascope.execute.relation_task import FinalTask
from terascope.execute.reports import (
    ExchangeTask,
    Kind,
    Outgoing,
    ReportFilter,
    Reports,
    TaskReports,
    add_report,
    note_clocks,
    reports_to_json,
)
from terascope.execute.results.parts import Part
from terascope.execute.rows.steps import admitted, plain_column
from terascope.kernels.merge.payload import unpack_tuples
from terascope.physical.delivery import Target
from terascope.physical.job import SourceRead
from terascope.physical.splits import bundles
from terascope.plan.horizon import Horizons
from terascope.plan.rel import Field
from terascope.spark.catalyst.frame import Frame, place, schema_of
from terascope.spark.located import located_numbers
from terascope.spark.mistakes import in_worker, working
from terascope.spark.session import master_of, parallelism, planned_once
from terascope.spark.stream.source import REPORT
from terascope.spark.write import part_report, reported_parts

EXCHANGE_BYTES: Final = 256 << 20
"""The most bytes of partial groups for PySpark's own exchange, which holds many rows at a time; the
exchange of DataFrames holds one."""
PARTITIONS_EACH: Final = 4
"""The tasks that read partitions for each that runs at once."""
KEPT: Final = StorageLevel.MEMORY_AND_DISK
META: Final = "#meta"

Item = TypeVar("Item")
Kept: TypeAlias = RDD[Any] | DataFrame
"""Rows that Spark keeps until they are released."""
ReportsByTask: TypeAlias = dict[str, dict[int, list[Outgoing]]]
"""The reports of each pass, by task: a repeated task reports again, and counts once."""

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
    held: Sequence[Outgoing] | None = None
    """All rows, where the driver has made them."""

    @cached_property
    def frame(self) -> DataFrame:
        """All rows with a payload, as columns of `OUTGOING`."""
        return self.as_frame()


@dataclass
class SparkBatchEngine:
    """Jobs of one session of Spark. `kept`: the rows that Spark keeps for later passes."""

    finishes: ClassVar[bool] = True

    spark: SparkSession
    kept: list[Kept]

    @property
    def tasks(self) -> int:
        return tasks_of(self.spark)

    @property
    def processes(self) -> int:
        return parallelism(master_of(self.spark))

    @property
    def partition_tasks(self) -> int:
        return max(self.tasks, PARTITIONS_EACH * self.processes)

    def read(self, reading: NativeRead, leftovers: Collection[int]) -> SparkPass:
        sent = ReportFilter.of(leftovers, self.tasks, reading.targets)
        high = {number for number, target in reading.targets.items() if target.high}
        made = tuple(native_bundles(reading, self.tasks))
        if is_remote() or high - sent.leftovers:
            tasks = [partial(low_batches, reading, bundle) for bundle in made]
            return self._frame_pass(task_frame(self.spark, tasks, OUTGOING), sent)
        numbers = self.spark.sparkContext.parallelize(range(len(made)), max(1, len(made)))

        def low_tasks(numbers: Iterable[int]) -> Iterator[Outgoing]:
            for number in numbers:
                yield from low_rows(reading, made[number])

        return self._plain_pass(numbers, low_tasks, sent)

    def read_partitions(
        self,
        work: PartitionWork,
        leftovers: Collection[int],
        hosts: Sequence[Sequence[str]],
    ) -> SparkPass:
        sent = ReportFilter.of(leftovers, work.count, work.targets)
        made = tuple(work.bundles())
        if is_remote():
            tasks = [partial(partition_batches, work, bundles) for bundles in made]
            return self._frame_pass(task_frame(self.spark, tasks, OUTGOING), sent)
        numbers = located_numbers(self.spark, hosts)

        def tasks_of_partitions(numbers: Iterable[int]) -> Iterator[Outgoing]:
            for number in numbers:
                yield from partition_rows(work, made[number])

        return self._plain_pass(numbers, tasks_of_partitions, sent)

    def finish_partitions(
        self, work: PartitionWork, before: SparkPass, horizons: Horizons
    ) -> SparkPass:
        sent = ReportFilter.of((), work.count, work.targets)
        wanted = {number for number, target in work.targets.items() if target.later}
        if before.plain is None:
            rows = before.frame.filter((F.col("kind") == "rows") & F.col("stream").isin(*wanted))
            later = in_worker(partial(later_batches, work, horizons))
            return self._frame_pass(rows.mapInArrow(later, OUTGOING), sent)

        def finish(rows: Iterable[tuple[int, int, Kind, bytes, Any]]) -> Iterator[Outgoing]:
            chosen = [row for row in rows if row[2] == "rows" and row[0] in wanted]
            if chosen:  # all rows of a task are of its partition
                packed = ((stream, payload) for stream, _, _, payload, _ in chosen)
                yield from later_rows(work, horizons, chosen[0][1], packed)

        return self._plain_pass(before.plain, finish, sent)

    def combine_on_hosts(
        self, one: SparkPass, merging: Merging, hosts: int, destinations: int
    ) -> SparkPass:
        """Spark coalesces partitions that are on one host, as far as it can."""
        sent = ReportFilter.of((), hosts)
        if one.plain is None:
            return one
        groups = one.plain.filter(lambda row: row[2] == "groups").coalesce(hosts)

        def combine(rows: Iterable[tuple[int, int, Kind, bytes, Any]]) -> Iterator[Outgoing]:
            return merging.combined(((row[0], row[3]) for row in rows), destinations)

        return self._plain_pass(groups, combine, sent)

    def exchange(
        self,
        passes: Sequence[SparkPass],
        task: ExchangeTask,
        leftovers: Collection[int],
        size: int,
        destinations: int,
    ) -> SparkPass:
        sent = ReportFilter.of(leftovers, self.tasks, task.targets)
        having = each_once(passes)
        plain = [one.plain for one in having if one.plain is not None]
        if len(plain) == len(having) and size <= EXCHANGE_BYTES:
            kind = task.kind
            rows = self.spark.sparkContext.union(plain).filter(lambda row: row[2] == kind)
            packed = rows.map(lambda row: (row[1], (row[0], row[3])))
            met = packed.partitionBy(destinations, int)

            def run(rows: Iterable[tuple[int, tuple[int, bytes]]]) -> Iterator[Outgoing]:
                return task.run(packed for _, packed in rows)

            return self._plain_pass(met, run, sent)
        chosen = all_rows(having).filter(F.col("kind") == task.kind)
        exchanged = chosen.repartitionById(destinations, F.col("destination"))
        made = exchanged.mapInArrow(in_worker(partial(exchanged_batches, task)), OUTGOING)
        return self._frame_pass(made, sent)

    def _plain_pass(
        self,
        items: RDD[Item],
        work: Callable[[Iterable[Item]], Iterator[Outgoing]],
        sent: ReportFilter,
    ) -> SparkPass:
        """Run the work on each partition. Rows with a payload stay in Spark, reports are sent."""
        spark, once = self.spark, uuid4().hex
        said = accumulator(spark.sparkContext)

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
        self.kept.append(rows)
        try:
            # Counted by the JVM: to look at rows in Python would take a second worker for each
            # task.
            rows._jrdd.count()
        finally:
            by_task = said.value.pop(once, {})
        reports = TaskReports([row for number in sorted(by_task) for row in by_task[number]])
        return SparkPass(
            reports, lambda: spark.createDataFrame(rows, OUTGOING, verifySchema=False), rows
        )

    def _frame_pass(self, df: DataFrame, sent: ReportFilter) -> SparkPass:
        """Compute and keep the rows of a DataFrame of `OUTGOING`."""
        with planned_once(self.spark):
            df = df.persist(KEPT)
            self.kept.append(df)
            return SparkPass(collected_reports(df, sent), lambda: df)

    def holding(self, rows: Sequence[Outgoing]) -> SparkPass:
        def frame() -> DataFrame:
            table = pa.Table.from_batches(map(to_arrow, rows), OUTGOING_ARROW)
            return self.spark.createDataFrame(table, OUTGOING)

        return SparkPass(TaskReports(rows), frame, held=rows)

    def join_leftovers(self, passes: Sequence[SparkPass], joining: LeftoverJoin) -> list[Part]:
        numbers = [side.leftovers for join in joining.joins for side in join.sides]
        rows = all_rows(passes)
        packed = rows.filter((F.col("kind") == "rows") & F.col("stream").isin(numbers))
        together = packed.select("stream", "payload").coalesce(1)

        def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return map(part_report, joining.parts(packed_pairs(batches)))

        return reported_parts(together.mapInArrow(in_worker(join), REPORT))

    def finish(self, passes: Sequence[SparkPass], final: FinalTask) -> TaskReports:
        having, wanted = each_once(passes), set(final.targets)
        here = [
            (row.stream, row.payload)
            for one in having
            for row in one.held or ()
            if row.kind == "rows" and row.stream in wanted and row.payload is not None
        ]
        having = [one for one in having if one.held is None]
        plain = [one.plain for one in having if one.plain is not None]
        sent = ReportFilter.of((), 1)
        if not having:
            return TaskReports(list(final.outgoing(here)))
        if len(plain) < len(having):
            rows = all_rows(having)
            chosen = rows.filter((F.col("kind") == "rows") & F.col("stream").isin(*wanted))
            together = chosen.select("stream", "payload").coalesce(1)

            def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                return map(to_arrow, final.outgoing(chain(here, packed_pairs(batches))))

            return collected_reports(together.mapInArrow(in_worker(compute), OUTGOING), sent)
        union = self.spark.sparkContext.union(plain)
        only = union.filter(lambda row: row[2] == "rows" and row[0] in wanted).coalesce(1)

        def work(rows: Iterable[tuple[int, int, Kind, bytes, Any]]) -> Iterator[Outgoing]:
            return final.outgoing(chain(here, ((row[0], row[3]) for row in rows)))

        return self._plain_pass(only, work, sent).reports

    def rows(self, passes: Sequence[SparkPass], number: int, target: Target) -> Frame:
        rows = all_rows(passes)
        packed = rows.filter((F.col("stream") == number) & (F.col("kind") == "rows"))
        unpacking, schema = partial(unpacked, target.fields), schema_of(target.fields)
        columns = packed.select("payload").mapInArrow(in_worker(unpacking), schema)
        return Frame(columns, target.fields)


def tasks_of(spark: SparkSession) -> int:
    """The number of tasks of a pass, if its source is large enough."""
    return int(spark.conf.get("spark.sql.shuffle.partitions", "4") or 4)


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


def source_frame(spark: SparkSession, read: SourceRead, tasks: int) -> DataFrame:
    """The tuples of a read, with `#meta` rows; not computed yet."""
    plain = [partial(read_bundle, read, splits) for splits in bundles(read.splits, tasks)]
    return task_frame(spark, plain, schema_of(read.columns).add(META, "string"))


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
    wanted = F.col("report").isNotNull() | kind.isin("groups", "tuples")
    most = F.lit(sent.groups_bytes)
    if sent.leftovers | sent.sized:
        wanted |= (kind == "rows") & stream.isin(*sent.leftovers, *sent.sized)
        among = F.when(stream.isin(*sent.leftovers), sent.rows_bytes).otherwise(0)
        most = F.when(kind == "rows", among).otherwise(most)
    size = F.coalesce(F.length(payload), F.lit(0))
    payloads = F.when((size <= most) & (kind != "tuples"), payload)
    rows = df.filter(wanted).select(stream, kind, "report", payloads, size).collect()
    return TaskReports(
        [
            Outgoing(s, 0, k, None, t, n) if p is None else Outgoing(s, 0, k, bytes(p), t)
            for s, k, t, p, n in rows
        ]
    )


# ---- in the workers ------------------------------------------------------------------------------


def to_arrow(row: Outgoing) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([vars(row)], OUTGOING_ARROW)


def packed_pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """The stream and the payload of each row, as Spark passes them to a task."""
    for batch in batches:
        for stream, payload in zip(batch["stream"], batch["payload"], strict=True):
            yield stream.as_py(), payload.as_py()


def exchanged_batches(
    task: ExchangeTask, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run a task over the rows that reached one destination by the exchange of DataFrames."""
    return map(to_arrow, task.run(packed_pairs(batches)))


def low_batches(reading: NativeRead, bundle: Bundle) -> Iterator[pa.RecordBatch]:
    return map(to_arrow, low_rows(reading, bundle))


def partition_batches(work: PartitionWork, bundles: Sequence[Bundle]) -> Iterator[pa.RecordBatch]:
    return map(to_arrow, partition_rows(work, bundles))


def later_batches(
    work: PartitionWork, horizons: Horizons, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The second task of a partition over rows of `OUTGOING` of its first."""
    given = list(batches)
    numbers = {number for batch in given for number in batch["destination"].to_pylist()}
    for number in numbers:
        yield from map(to_arrow, later_rows(work, horizons, number, packed_pairs(given)))


def read_bundle(read: SourceRead, splits: Iterable[Split]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema(
        [(place(i), arrow_type(c.type)) for i, c in enumerate(read.columns)] + [(META, pa.string())]
    )
    reports: Reports = {}
    for split in splits:
        report = ReadReport()
        for batch in read_split(split, read.columns, report):
            note_clocks(batch, read.clocks, report)
            if read.predicate is not None:
                batch = admitted(batch, read.predicate)
            if batch.num_rows:
                empty = pa.nulls(batch.num_rows, pa.string())
                yield pa.RecordBatch.from_arrays([*batch.columns, empty], schema=schema)
        add_report(reports, split.interface, report)
    yield pa.RecordBatch.from_pylist([{META: reports_to_json(reports)}], schema)


def unpacked(
    fields: Sequence[Field], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Packed tuples as columns of Spark."""
    names = [place(i) for i in range(len(fields))]
    for batch in batches:
        for payload in batch["payload"]:
            for rows in unpack_tuples(payload.as_py()):
                pairs = zip(rows.columns, fields, strict=True)
                columns = [plain_column(column, f.type) for column, f in pairs]
                yield pa.RecordBatch.from_arrays(columns, names)
