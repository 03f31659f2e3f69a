"""The one way in which Spark reads Terascope's sources: any SourceRead of a Job as a DataFrame.

In: a `SourceRead`, which travels with the function of its tasks. Out, when its low level is native:
the output rows of its tasks (outgoing.py). Otherwise its columns c0, c1, ... and a last column
`#meta`. Tuples have a NULL there; the last row of every partition has nothing but `#meta`, the JSON
of what reading it saw (bytes, tuples, malformed ones, how far time moved), so that the counts come
with the one pass over the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from terascope.connectors.base import ReadReport, Split, arrow_type
from terascope.connectors.registry import read_split
from terascope.execute.reading_task import Bundle, NativeRead, low_rows, native_bundles
from terascope.execute.reports import Reports, add_report, note_clocks, reports_to_json
from terascope.execute.rows.steps import admitted
from terascope.physical.bundles import bundles
from terascope.physical.job import SourceRead
from terascope.spark.catalyst.frame import place, spark_type
from terascope.spark.passing import OUTGOING, task_frame, to_arrow

META = "#meta"


def source_frame(spark: SparkSession, reading: SourceRead | NativeRead, tasks: int) -> DataFrame:
    """The tuples of a read with `#meta` rows, or its low level's output; not computed yet."""
    if isinstance(reading, NativeRead):
        native = [partial(low_batches, reading, one) for one in native_bundles(reading, tasks)]
        return task_frame(spark, native, OUTGOING)
    plain = [partial(read_bundle, reading, splits) for splits in bundles(reading.splits, tasks)]
    return task_frame(spark, plain, read_schema(reading))


def read_schema(read: SourceRead) -> T.StructType:
    fields = [T.StructField(place(i), spark_type(c.type)) for i, c in enumerate(read.columns)]
    return T.StructType([*fields, T.StructField(META, T.StringType())])


# ---- in the worker -------------------------------------------------------------------------------


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
    told = pa.array([reports_to_json(reports)], pa.string())
    nothing = [pa.nulls(1, arrow_type(c.type)) for c in read.columns]
    yield pa.RecordBatch.from_arrays([*nothing, told], schema=schema)


def low_batches(reading: NativeRead, bundle: Bundle) -> Iterator[pa.RecordBatch]:
    return map(to_arrow, low_rows(reading, bundle))
