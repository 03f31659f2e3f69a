"""Results in parts: written by tasks, or put together from what tasks have written.

In: rows of a query, as a DataFrame or as parts. Out: a folder of parts, or one file with all rows
in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from terascope.execute.results.parts import Part, PartWriter, drop_other_parts
from terascope.files import make_folder
from terascope.physical.delivery import PartFormat
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.rel import Field
from terascope.spark.catalyst.frame import place, schema_of
from terascope.spark.catalyst.relations import sort_column
from terascope.spark.mistakes import translating
from terascope.spark.worker import working

TOLD = T.StructType([T.StructField("told", T.StringType())])


def write_parts(df: DataFrame, folder: Path, format: PartFormat, fields: Sequence[Field]) -> int:
    """The rows of a DataFrame as a folder of parts, each written by a task."""
    parts = more_parts(df, "", folder, format, fields)
    drop_other_parts(folder, [part.path for part in parts])
    return sum(part.rows for part in parts)


def more_parts(
    df: DataFrame, query: str, folder: Path, format: PartFormat, fields: Sequence[Field]
) -> list[Part]:
    """The rows of a DataFrame as parts in a folder that may have others."""
    with translating():
        told = told_parts(df, query, folder, format, fields)
        return [Part.of(row[0]) for row in told.collect()]


def told_parts(
    df: DataFrame,
    query: str,
    folder: Path,
    format: PartFormat,
    fields: Sequence[Field],
    ordered: KeptOrder = (),
) -> DataFrame:
    """What the tasks tell that write the rows of a DataFrame, when they run."""
    make_folder(folder)
    plain = df.toDF(*(place(i) for i in range(len(df.columns))))
    writing = Writing(query, str(folder.absolute()), format, tuple(fields), ordered)
    return plain.mapInArrow(writing, TOLD)


@dataclass(frozen=True)
class Writing:
    """Writes the rows of a task to one part."""

    query: str
    folder: str
    format: PartFormat
    fields: tuple[Field, ...]
    ordered: KeptOrder = ()
    """The columns whose order is looked at."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        folder = Path(self.folder)
        with (
            working(),
            PartWriter(folder, self.format, self.fields, ordered=self.ordered) as part,
        ):
            for batch in batches:
                if batch.num_rows:
                    part.write(batch)
            path, rows = part.close()
            written = Part(self.query, path, rows, part.extents)
        yield pa.RecordBatch.from_arrays([pa.array([written.told()])], ["told"])


def parts_frame(
    spark: SparkSession,
    parts: Sequence[Part],
    columns: int,
    fields: Sequence[Field],
    order: Sequence[tuple[str, bool]],
) -> DataFrame:
    """The rows of parts, in order, under their own names."""
    files = [str(part.path) for part in parts if part.rows]
    schema = schema_of(fields)
    df = spark.read.parquet(*files) if files else spark.createDataFrame([], schema)
    df = df.toDF(*(place(i) for i in range(len(fields))))
    df = df.select(*(F.col(f.name).cast(f.dataType).alias(f.name) for f in schema))
    places = {f.name: F.col(place(i)) for i, f in enumerate(fields)}
    if order:
        df = df.orderBy(*(sort_column(places[name], down) for name, down in order))
    return df.select(*(F.col(place(i)).alias(f.name) for i, f in enumerate(fields[:columns])))
