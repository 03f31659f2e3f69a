"""Passes of tasks, over a source or over partial groups: what they say, and the rows they leave.

In: a read whose low level is native, or passes whose groups have to be merged. Out: a `Pass`: the
lines that its tasks told, with the small payloads, and all packed groups and tuples, which Spark
keeps until somebody asks for them.

Most sets leave hardly anything: their tasks write the answers themselves. To plan a DataFrame, to
generate code for it and to keep its rows takes Spark's JVM longer than the tasks of a short run
take, so the pass is a plain job over numbers of tasks, and what tasks say travels with the news
that they are done (an accumulator). Where DataFrames read the rows anyway, or where Spark is a
server that knows nothing else, the pass is a DataFrame, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import RDD, Accumulator, AccumulatorParam, SparkContext, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from terascope.execute.delivery import Kind, Outgoing
from terascope.spark.low_task import (
    OUTGOING,
    OUTGOING_ARROW,
    Bundle,
    NativeRead,
    low_rows,
    native_bundles,
    to_arrow,
)
from terascope.spark.merging import Merging
from terascope.spark.session import planned_once
from terascope.spark.source import source_frame
from terascope.spark.told import Little, Told, ToldRow, told_rows
from terascope.spark.worker import working

KEPT = StorageLevel.MEMORY_AND_DISK

EXCHANGE_BYTES: Final = 256 << 20
"""What partial groups may have to meet by the exchange of PySpark."""

T = TypeVar("T")
Work: TypeAlias = Callable[[Iterable[T]], Iterator[Outgoing]]
Row: TypeAlias = tuple[int, int, Kind, bytes, str | None]
"""An `Outgoing` with a payload."""
Said: TypeAlias = dict[str, dict[int, list[ToldRow]]]
"""By pass and by task: a task that was run again says the same once more, and counts once."""


class Kept(Protocol):
    """Rows that Spark keeps, until they are given back."""

    def unpersist(self) -> object: ...


class Pass(Protocol):
    """What the tasks of one job gave."""

    @property
    def spark(self) -> SparkSession: ...

    @property
    def told(self) -> Told: ...

    @property
    def frame(self) -> DataFrame:
        """All rows of its tasks that have a payload, as columns of `OUTGOING`."""
        ...


@dataclass(frozen=True)
class FramePass:
    """A pass whose rows are a DataFrame."""

    spark: SparkSession
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
    rows: Sequence[Outgoing]

    @property
    def told(self) -> Told:
        return Told.of(self.rows)

    @cached_property
    def frame(self) -> DataFrame:
        table = pa.Table.from_batches(map(to_arrow, self.rows), OUTGOING_ARROW)
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
    numbers = spark.sparkContext.parallelize(range(len(made)), max(1, len(made)))
    return plain_pass(spark, numbers, LowTasks(reading, made), little)


def merge_pass(
    passes: Iterable[Pass], merging: Merging, little: Little, size: int, destinations: int
) -> FramePass | PlainPass:
    """Merge the partial groups of some passes, all partials of a group in one task. `size`: bytes
    of all partials. PySpark's own exchange holds many rows at a time, that of DataFrames one.
    """
    having = each_once(passes)
    spark = having[0].spark
    plain = [one.kept for one in having if isinstance(one, PlainPass)]
    if len(plain) == len(having) and size <= EXCHANGE_BYTES:
        rows = spark.sparkContext.union(plain).filter(is_groups).map(by_destination)
        return plain_pass(spark, rows.partitionBy(destinations, int), MergeTask(merging), little)
    groups = all_rows(having).filter(F.col("kind") == "groups")
    exchanged = groups.repartitionById(destinations, F.col("destination"))
    return frame_pass(spark, exchanged.mapInArrow(merging, OUTGOING), little)


def tasks_of(spark: SparkSession) -> int:
    """How many tasks a pass has, if its source is large enough."""
    return int(spark.conf.get("spark.sql.shuffle.partitions", "4") or 4)


def all_rows(passes: Iterable[Pass]) -> DataFrame:
    """The rows of several passes, those of each once."""
    return reduce(DataFrame.union, [one.frame for one in each_once(passes)])


def each_once(passes: Iterable[Pass]) -> list[Pass]:
    """The passes without repetitions: a pass stands for every stream that it has rows of."""
    return list({id(one): one for one in passes}.values())


def plain_pass(spark: SparkSession, items: RDD[T], work: Work[T], little: Little) -> PlainPass:
    """Work on the items of each partition, and keep the rows with a payload."""
    said = accumulator(spark.sparkContext)
    telling = Telling(work, little, said, uuid4().hex)
    rows = items.mapPartitionsWithIndex(telling).persist(KEPT)
    try:
        # Counted by the JVM: to look at rows in Python would take a second worker for each task.
        rows._jrdd.count()
    except BaseException:
        rows.unpersist()
        raise
    finally:
        by_task = said.value.pop(telling.once, {})
    told = Told([row for number in sorted(by_task) for row in by_task[number]])
    return PlainPass(spark, rows, told)


def frame_pass(spark: SparkSession, df: DataFrame, little: Little) -> FramePass:
    """Compute and keep the rows of a DataFrame of `OUTGOING`."""
    with planned_once(spark):
        df = df.persist(KEPT)
        return FramePass(spark, df, told_rows(df, little))


_accumulators: WeakKeyDictionary[SparkContext, Accumulator[Said]] = WeakKeyDictionary()


def accumulator(context: SparkContext) -> Accumulator[Said]:
    """The one of this Spark: PySpark remembers each that was ever made."""
    if context not in _accumulators:
        _accumulators[context] = context.accumulator({}, SaidByTasks())
    return _accumulators[context]


# ---- in the workers ------------------------------------------------------------------------------


class SaidByTasks(AccumulatorParam[Said]):
    """Puts together what tasks say."""

    def zero(self, value: Said) -> Said:
        return {}

    def addInPlace(self, value1: Said, value2: Said) -> Said:
        for once, by_task in value2.items():
            value1.setdefault(once, {}).update(by_task)
        return value1


@dataclass(frozen=True)
class Telling(Generic[T]):
    """Works on the items of a partition; rows with a payload are for others."""

    work: Work[T]
    little: Little
    said: Accumulator[Said]
    once: str

    def __call__(self, number: int, items: Iterable[T]) -> Iterator[Row]:
        told: list[ToldRow] = []
        with working():
            for row in self.work(items):
                if self.little.wants(row):
                    told.append(self.little.told(row))
                if row.payload is not None:
                    yield row.stream, row.destination, row.kind, row.payload, row.told
        self.said.add({self.once: {number: told}})


@dataclass(frozen=True)
class LowTasks:
    """The low level of the tasks that have the given numbers."""

    reading: NativeRead
    bundles: tuple[Bundle, ...]

    def __call__(self, numbers: Iterable[int]) -> Iterator[Outgoing]:
        for number in numbers:
            yield from low_rows(self.reading, self.bundles[number])


@dataclass(frozen=True)
class MergeTask:
    """Merges the groups that reached one destination."""

    merging: Merging

    def __call__(self, rows: Iterable[tuple[int, tuple[int, bytes]]]) -> Iterator[Outgoing]:
        return self.merging.merged(packed for _, packed in rows)


def is_groups(row: Row) -> bool:
    return row[2] == "groups"


def by_destination(row: Row) -> tuple[int, tuple[int, bytes]]:
    return row[1], (row[0], row[3])
