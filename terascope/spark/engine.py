"""The engine of Spark: reading tasks and merging tasks as jobs, the exchange as a shuffle.

In: the passes that the executor (terascope.execute.low_level) asks for. Out: their reports, and
Frames of the low-level streams for the high level. A read whose low level is not native is a
DataFrame of its columns c0, c1, ... and a last column `#meta`. Tuples have a NULL there; the last
row of every partition has nothing but `#meta`, the JSON of what reading it saw (bytes, tuples,
malformed ones, how far time moved), so that the counts come with the one pass over the data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from terascope.connectors.base import ReadReport, Split, arrow_type
from terascope.connectors.registry import read_split
from terascope.execute.merge import LeftoverJoin, Merging
from terascope.execute.reading_task import Bundle, NativeRead, low_rows, native_bundles
from terascope.execute.reports import (
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
from terascope.plan.rel import Field
from terascope.spark.catalyst.frame import Frame, place, schema_of
from terascope.spark.mistakes import in_worker
from terascope.spark.passing import (
    OUTGOING,
    OUTGOING_ARROW,
    Kept,
    SparkPass,
    all_rows,
    each_once,
    frame_pass,
    packed_pairs,
    plain_pass,
    task_frame,
    to_arrow,
)
from terascope.spark.session import parallelism
from terascope.spark.write import TOLD, told_batch

EXCHANGE_BYTES: Final = 256 << 20
"""The most bytes of partial groups for PySpark's own exchange, which holds many rows at a time; the
exchange of DataFrames holds one."""

META = "#meta"


@dataclass
class SparkBatchEngine:
    """Jobs of one session of Spark. `kept`: the rows that Spark keeps for later passes."""

    spark: SparkSession
    kept: list[Kept] = field(default_factory=list)

    @property
    def tasks(self) -> int:
        return tasks_of(self.spark)

    @property
    def processes(self) -> int:
        return parallelism(self.spark.sparkContext.master or "")

    def read(self, reading: NativeRead, leftovers: Collection[int]) -> SparkPass:
        sent = ReportFilter.of(leftovers, self.tasks)
        high = {number for number, target in reading.targets.items() if target.high}
        made = tuple(native_bundles(reading, self.tasks))
        if is_remote() or high - sent.leftovers:
            tasks = [partial(low_batches, reading, bundle) for bundle in made]
            rows = task_frame(self.spark, tasks, OUTGOING)
            return frame_pass(self.spark, rows, sent, self.kept)
        numbers = self.spark.sparkContext.parallelize(range(len(made)), max(1, len(made)))

        def low_tasks(numbers: Iterable[int]) -> Iterator[Outgoing]:
            for number in numbers:
                yield from low_rows(reading, made[number])

        return plain_pass(self.spark, numbers, low_tasks, sent, self.kept)

    def merge(
        self,
        passes: Sequence[SparkPass],
        merging: Merging,
        leftovers: Collection[int],
        size: int,
        destinations: int,
    ) -> SparkPass:
        sent = ReportFilter.of(leftovers, self.tasks)
        having = each_once(passes)
        plain = [one.plain for one in having if one.plain is not None]
        if len(plain) == len(having) and size <= EXCHANGE_BYTES:
            rows = self.spark.sparkContext.union(plain).filter(lambda row: row[2] == "groups")
            packed = rows.map(lambda row: (row[1], (row[0], row[3])))
            met = packed.partitionBy(destinations, int)

            def merge_task(rows: Iterable[tuple[int, tuple[int, bytes]]]) -> Iterator[Outgoing]:
                return merging.merged(packed for _, packed in rows)

            return plain_pass(self.spark, met, merge_task, sent, self.kept)
        groups = all_rows(having).filter(F.col("kind") == "groups")
        exchanged = groups.repartitionById(destinations, F.col("destination"))
        merged = exchanged.mapInArrow(in_worker(partial(merged_batches, merging)), OUTGOING)
        return frame_pass(self.spark, merged, sent, self.kept)

    def holding(self, rows: Sequence[Outgoing]) -> SparkPass:
        def frame() -> DataFrame:
            table = pa.Table.from_batches(map(to_arrow, rows), OUTGOING_ARROW)
            return self.spark.createDataFrame(table, OUTGOING)

        return SparkPass(TaskReports(rows), frame)

    def join_leftovers(self, passes: Sequence[SparkPass], joining: LeftoverJoin) -> list[Part]:
        numbers = [side.leftovers for join in joining.joins for side in join.sides]
        rows = all_rows(passes)
        packed = rows.filter((F.col("kind") == "rows") & F.col("stream").isin(numbers))
        together = packed.select("stream", "payload").coalesce(1)

        def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return map(told_batch, joining.parts(packed_pairs(batches)))

        return [Part.of(row[0]) for row in together.mapInArrow(in_worker(join), TOLD).collect()]

    def rows(self, passes: Sequence[SparkPass], number: int, target: Target) -> Frame:
        rows = all_rows(passes)
        packed = rows.filter((F.col("stream") == number) & (F.col("kind") == "rows"))
        unpacking, schema = partial(unpacked, target.fields), schema_of(target.fields)
        columns = packed.select("payload").mapInArrow(in_worker(unpacking), schema)
        return Frame(columns, target.fields)


def tasks_of(spark: SparkSession) -> int:
    """The number of tasks of a pass, if its source is large enough."""
    return int(spark.conf.get("spark.sql.shuffle.partitions", "4") or 4)


# ---- in the workers ------------------------------------------------------------------------------


def merged_batches(merging: Merging, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge the groups that reached one destination by the exchange of DataFrames."""
    return map(to_arrow, merging.merged(packed_pairs(batches)))


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


def source_frame(spark: SparkSession, read: SourceRead, tasks: int) -> DataFrame:
    """The tuples of a read, with `#meta` rows; not computed yet."""
    plain = [partial(read_bundle, read, splits) for splits in bundles(read.splits, tasks)]
    return task_frame(spark, plain, schema_of(read.columns).add(META, "string"))


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


def low_batches(reading: NativeRead, bundle: Bundle) -> Iterator[pa.RecordBatch]:
    return map(to_arrow, low_rows(reading, bundle))
