"""The one way in which Spark reads Terascope's sources: any SourceRead of a Job as a DataFrame.

In: a `SourceRead`, which travels with the function of its tasks. Out, when its low level is native:
the output rows of its tasks (outgoing.py). Otherwise its columns c0, c1, ... and a last column
`#meta`. Tuples have a NULL there; the last row of every partition has only `#meta`, the JSON report
of reading it (bytes, tuples, malformed ones, the last values of its clocks), so that the counts
come with the one pass over the data.

The tasks are planned here, and are a function over their numbers. A data source of Spark would do,
but Spark starts two Python processes for each read of one, to get its columns and its partitions:
that takes longer than most reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from terascope.connectors.base import Column, ReadReport, Split, arrow_type
from terascope.connectors.registry import read_split
from terascope.execute.reading_task import Bundle, NativeRead, low_rows, native_bundles
from terascope.execute.reports import Reports, add_report, note_clocks, reports_to_json
from terascope.execute.rows.steps import admitted
from terascope.physical.bundles import bundles
from terascope.physical.job import SourceRead
from terascope.spark.catalyst.frame import place, spark_type
from terascope.spark.mistakes import working
from terascope.spark.passing import OUTGOING, to_arrow

META = "#meta"


def source_frame(spark: SparkSession, reading: SourceRead | NativeRead, tasks: int) -> DataFrame:
    """The tuples of a read with `#meta` rows, or its low level's output; not computed yet."""
    if isinstance(reading, NativeRead):
        made, schema = native_bundles(reading, tasks), OUTGOING
    else:
        made = [Bundle(splits) for splits in bundles(reading.splits, tasks)]
        schema = read_schema(reading)
    numbers = spark.range(0, len(made), 1, max(1, len(made)))
    return numbers.mapInArrow(Reading(reading, tuple(made), uuid4().hex), schema)


def read_schema(read: SourceRead) -> T.StructType:
    fields = [T.StructField(place(i), spark_type(c.type)) for i, c in enumerate(read.columns)]
    return T.StructType([*fields, T.StructField(META, T.StringType())])


# ---- in the worker -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """Reads the splits of a task, by its number."""

    reading: SourceRead | NativeRead
    bundles: tuple[Bundle, ...]
    once: str
    """A number that makes it unique: Spark would reuse the kept rows of an equal one, though the
    files have changed since."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                bundle = self.bundles[number]
                if isinstance(self.reading, NativeRead):
                    with working():
                        yield from map(to_arrow, low_rows(self.reading, bundle))
                else:
                    yield from read_bundle(self.reading, bundle.splits)


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
                    batch = admitted(batch, read.predicate)
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
