"""The engine of Spark: reading tasks and merging tasks as jobs, the exchange as a shuffle.

In: the passes of the executor (terascope.execute.low_level). Out: their reports, and Frames of the
low-level streams for the high level.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from terascope.execute.delivery import Outgoing
from terascope.execute.leftovers import LeftoverJoin
from terascope.execute.merging_task import Merging
from terascope.execute.reading_task import NativeRead, low_rows, native_bundles
from terascope.execute.results.parts import Part
from terascope.execute.rows.steps import plain_column
from terascope.execute.task_reports import ReportFilter
from terascope.kernels.merge.payload import unpack_tuples
from terascope.physical.delivery import Target
from terascope.plan.rel import Field
from terascope.spark.catalyst.frame import Frame, place, schema_of
from terascope.spark.mistakes import in_worker
from terascope.spark.passing import (
    OUTGOING,
    DriverPass,
    FramePass,
    Kept,
    PlainPass,
    SparkPass,
    all_rows,
    each_once,
    frame_pass,
    packed_pairs,
    plain_pass,
    to_arrow,
)
from terascope.spark.session import parallelism
from terascope.spark.source import source_frame
from terascope.spark.write import TOLD, told_batch

EXCHANGE_BYTES: Final = 256 << 20
"""The most bytes of partial groups for PySpark's own exchange, which holds many rows at a time; the
exchange of DataFrames holds one."""


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
        if is_remote() or high - sent.leftovers:
            return self._keep(
                frame_pass(self.spark, source_frame(self.spark, reading, self.tasks), sent)
            )
        made = tuple(native_bundles(reading, self.tasks))
        numbers = self.spark.sparkContext.parallelize(range(len(made)), max(1, len(made)))

        def low_tasks(numbers: Iterable[int]) -> Iterator[Outgoing]:
            for number in numbers:
                yield from low_rows(reading, made[number])

        return self._keep(plain_pass(self.spark, numbers, low_tasks, sent))

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
        plain = [one.kept for one in having if isinstance(one, PlainPass)]
        if len(plain) == len(having) and size <= EXCHANGE_BYTES:
            rows = self.spark.sparkContext.union(plain).filter(lambda row: row[2] == "groups")
            packed = rows.map(lambda row: (row[1], (row[0], row[3])))
            met = packed.partitionBy(destinations, int)

            def merge_task(rows: Iterable[tuple[int, tuple[int, bytes]]]) -> Iterator[Outgoing]:
                return merging.merged(packed for _, packed in rows)

            return self._keep(plain_pass(self.spark, met, merge_task, sent))
        groups = all_rows(having).filter(F.col("kind") == "groups")
        exchanged = groups.repartitionById(destinations, F.col("destination"))
        merged = exchanged.mapInArrow(in_worker(partial(merged_batches, merging)), OUTGOING)
        return self._keep(frame_pass(self.spark, merged, sent))

    def _keep(self, one: FramePass | PlainPass) -> SparkPass:
        self.kept.append(one.kept)
        return one

    def holding(self, rows: Sequence[Outgoing]) -> SparkPass:
        return DriverPass(self.spark, rows)

    def join_leftovers(self, passes: Sequence[SparkPass], joining: LeftoverJoin) -> list[Part]:
        numbers = [side.rest for join in joining.joins for side in join.sides]
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
