"""One pass of tasks over a source: what they say, and the rows they leave for others.

In: a read whose low level is native. Out: a `Pass`: the lines that its tasks told, with the small
payloads, and all packed groups and tuples, which Spark keeps until somebody asks for them.

Most sets leave hardly anything: their tasks write the answers themselves. To plan a DataFrame, to
generate code for it and to keep its rows takes Spark's JVM longer than the tasks of a short run
take, so the pass is a plain job over numbers of tasks, and what tasks say travels with the news
that they are done (an accumulator). Where DataFrames read the rows anyway, or where Spark is a
server that knows nothing else, the pass is a DataFrame, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias
from uuid import uuid4
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import RDD, Accumulator, AccumulatorParam, SparkContext, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from terascope.spark.low_task import (
    OUTGOING,
    OUTGOING_ARROW,
    Bundle,
    NativeRead,
    low_rows,
    native_bundles,
)
from terascope.spark.session import planned_once
from terascope.spark.source import source_frame
from terascope.spark.told import Little, Told, ToldRow, told_rows
from terascope.spark.worker import working

KEPT = StorageLevel.MEMORY_AND_DISK

Said: TypeAlias = dict[str, dict[int, list[ToldRow]]]
"""By pass and by task: a task that was run again says the same once more, and counts once."""


class Kept(Protocol):
    """Rows that Spark keeps, until they are given back."""

    def unpersist(self) -> object: ...


class Pass(Protocol):
    """What tasks gave."""

    @property
    def told(self) -> Told: ...

    @property
    def frame(self) -> DataFrame:
        """All rows of its tasks that have a payload, as columns of `OUTGOING`."""
        ...


@dataclass(frozen=True)
class FramePass:
    """A pass whose rows are a DataFrame."""

    frame: DataFrame
    told: Told

    @property
    def kept(self) -> Kept:
        return self.frame


@dataclass(frozen=True)
class PlainPass:
    """A pass whose rows become a DataFrame when somebody asks for them."""

    spark: SparkSession
    kept: RDD[Any]
    told: Told

    @cached_property
    def frame(self) -> DataFrame:
        return self.spark.createDataFrame(self.kept, OUTGOING, verifySchema=False)


@dataclass(frozen=True)
class HerePass:
    """Rows that were made by the driver."""

    spark: SparkSession
    batches: Sequence[pa.RecordBatch]

    @property
    def told(self) -> Told:
        return Told.of(self.batches)

    @cached_property
    def frame(self) -> DataFrame:
        table = pa.Table.from_batches(self.batches, OUTGOING_ARROW)
        return self.spark.createDataFrame(table, OUTGOING)


def run_pass(
    spark: SparkSession, reading: NativeRead, rests: Collection[int], tasks: int
) -> FramePass | PlainPass:
    """Read the source. `rests`: the streams of tuples that no task could join."""
    little = Little.of(rests, tasks)
    high = {number for number, target in reading.targets.items() if target.high}
    if is_remote() or high - little.rests:
        return frame_pass(spark, source_frame(spark, reading, tasks), little)
    made = tuple(native_bundles(reading, tasks))
    context = spark.sparkContext
    said = accumulator(context)
    telling = Telling(reading, made, little, said, uuid4().hex)
    rows = context.parallelize(range(len(made)), max(1, len(made))).mapPartitions(telling)
    rows.persist(KEPT)
    try:
        # Counted by the JVM: to look at rows in Python would take a second worker for each task.
        rows._jrdd.count()
    finally:
        by_task = said.value.pop(telling.once, {})
    told = Told([row for number in sorted(by_task) for row in by_task[number]])
    return PlainPass(spark, rows, told)


def frame_pass(spark: SparkSession, df: DataFrame, little: Little) -> FramePass:
    """Compute and keep the rows of a DataFrame of `OUTGOING`."""
    with planned_once(spark):
        df = df.persist(KEPT)
        return FramePass(df, told_rows(df, little))


_accumulators: WeakKeyDictionary[SparkContext, Accumulator[Said]] = WeakKeyDictionary()


def accumulator(context: SparkContext) -> Accumulator[Said]:
    """The one of this Spark: PySpark remembers each that was ever made."""
    if context not in _accumulators:
        _accumulators[context] = context.accumulator({}, Gathering())
    return _accumulators[context]


# ---- in the workers ------------------------------------------------------------------------------


class Gathering(AccumulatorParam[Said]):
    """Puts together what tasks say."""

    def zero(self, value: Said) -> Said:
        return {}

    def addInPlace(self, value1: Said, value2: Said) -> Said:
        for once, by_task in value2.items():
            value1.setdefault(once, {}).update(by_task)
        return value1


@dataclass(frozen=True)
class Telling:
    """Runs the tasks whose numbers it is given; rows with a payload are for others."""

    reading: NativeRead
    bundles: tuple[Bundle, ...]
    little: Little
    said: Accumulator[Said]
    once: str

    def __call__(self, numbers: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        for number in numbers:
            told: list[ToldRow] = []
            with working():
                for row in low_rows(self.reading, self.bundles[number]):
                    if self.little.wants(row):
                        told.append(self.little.told(row))
                    if row.payload is not None:
                        yield row.stream, row.destination, row.kind, row.payload, row.told
            self.said.add({self.once: {number: told}})
