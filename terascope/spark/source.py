"""The one Spark data source of Terascope: any SourceRead of a Job as a DataFrame.

In: a `SourceRead`, which travels as an option. Out, when its low level is native: what the tasks
have to say (low_task.py). Otherwise its columns c0, c1, ... and a last column `#meta`. Tuples have
a NULL there; the last row of every partition has nothing but `#meta`, the JSON of what reading it
saw (bytes, tuples, malformed ones, how far time moved), so that the counts come with the one pass
over the data.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, cast

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from terascope.connectors.base import Column, ReadReport, Split, arrow_type
from terascope.connectors.registry import read_split
from terascope.low.arrow_filter import keep
from terascope.low.reports import Reports, add_report, note_clocks, reports_to_json
from terascope.physical.bundles import bundles
from terascope.physical.job import SourceRead
from terascope.spark.frame import place, spark_type
from terascope.spark.low_task import (
    OUTGOING,
    Bundle,
    NativeRead,
    native_bundles,
    run_low_task,
)
from terascope.spark.worker import working

FORMAT = "terascope"
META = "#meta"
PICKLER: Any = cloudpickle
"""Has no type hints of its own; unlike pickle it takes the functions in a predicate by value."""


def source_frame(spark: SparkSession, reading: SourceRead | NativeRead, tasks: int) -> DataFrame:
    """The tuples of a read with its `#meta` rows, or what its low level gives; not computed yet."""
    name = register(spark, TerascopeSource)
    packed = base64.b64encode(zlib.compress(PICKLER.dumps(reading), 1)).decode("ascii")
    return spark.read.format(name).option("read", packed).option("tasks", str(tasks)).load()


def register(spark: SparkSession, source: type[NamedSource]) -> str:
    """Make a data source known to the session, and return the name it has there.

    Spark looks for a name that is taken in the active session, and for the source in its own. Where
    these are two sessions and the other one has the source, ours needs another name.
    """
    wanted = source.format_name
    for name in chain([wanted], (f"{wanted}{n}" for n in count(2))):
        own = type(source.__name__, (source,), {"format_name": name})
        try:
            spark.dataSource.register(own)
        except AnalysisException as problem:
            if problem.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
        else:
            return name
    raise AssertionError("names do not end")


class NamedSource(DataSource):
    """A data source that is called by one of its own attributes."""

    format_name = ""

    @classmethod
    def name(cls) -> str:
        return cls.format_name


class TerascopeSource(NamedSource):
    """Spark's view of a SourceRead."""

    format_name = FORMAT

    def schema(self) -> T.StructType:
        reading = unpack(self.options)
        return OUTGOING if isinstance(reading, NativeRead) else read_schema(reading)

    def reader(self, schema: T.StructType) -> DataSourceReader:
        reading, tasks = unpack(self.options), int(self.options.get("tasks", "1"))
        if isinstance(reading, NativeRead):
            return NativeReader(reading, tasks)
        return SplitReader(reading, tasks)


def unpack(options: Mapping[str, str]) -> SourceRead | NativeRead:
    packed = zlib.decompress(base64.b64decode(options["read"]))
    return cast("SourceRead | NativeRead", PICKLER.loads(packed))


def read_schema(read: SourceRead) -> T.StructType:
    fields = [T.StructField(place(i), spark_type(c.type)) for i, c in enumerate(read.columns)]
    return T.StructType([*fields, T.StructField(META, T.StringType())])


class SplitReader(DataSourceReader):
    """Tuples as they are."""

    def __init__(self, read: SourceRead, tasks: int) -> None:
        self.source = read
        self.tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        return [Bundle(splits) for splits in bundles(self.source.splits, self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Bundle)
        return read_bundle(self.source, partition.splits)


class NativeReader(DataSourceReader):
    """The low level next to the source."""

    def __init__(self, reading: NativeRead, tasks: int) -> None:
        self.reading = reading
        self.tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        return native_bundles(self.reading, self.tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Bundle)
        with working():
            yield from run_low_task(self.reading, partition)


# ---- in the worker -------------------------------------------------------------------------------


def read_bundle(read: SourceRead, splits: Iterable[Split]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema(
        [(place(i), arrow_type(c.type)) for i, c in enumerate(read.columns)] + [(META, pa.string())]
    )
    reports: Reports = {}
    with working():
        for split in splits:
            report = ReadReport()
            for batch in read_split(split, read.columns, report):
                note_clocks(batch, read.clocks, report)
                if read.predicate is not None:
                    batch = keep(batch, read.predicate)
                if batch.num_rows:
                    yield with_meta(batch, schema)
            add_report(reports, split.interface, report)
    yield meta_row(reports, read.columns, schema)


def with_meta(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    empty = pa.nulls(batch.num_rows, pa.string())
    return pa.RecordBatch.from_arrays([*batch.columns, empty], schema=schema)


def meta_row(reports: Reports, columns: Sequence[Column], schema: pa.Schema) -> pa.RecordBatch:
    told = pa.array([reports_to_json(reports)], pa.string())
    nothing = [pa.nulls(1, arrow_type(c.type)) for c in columns]
    return pa.RecordBatch.from_arrays([*nothing, told], schema=schema)
