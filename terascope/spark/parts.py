"""Results in parts: written by tasks, or put together from what tasks have written.

In: rows of a query, as a DataFrame or as parts. Out: a folder of parts, or one file with all rows
in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from terascope.execute.results.assemble import assemble
from terascope.execute.results.parts import Part, PartWriter
from terascope.files import is_part, make_folder
from terascope.physical.delivery import PartFormat
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.rel import Field
from terascope.spark.catalyst.frame import place, schema_of
from terascope.spark.catalyst.relations import sort_column
from terascope.spark.mistakes import translating
from terascope.spark.worker import working
from terascope.spark.write import Format, write_output

IN_MEMORY: Final = 2_000_000
"""Rows that the driver may sort by itself."""

TOLD = T.StructType([T.StructField("told", T.StringType())])


def write_parts(df: DataFrame, folder: Path, format: PartFormat, fields: Sequence[Field]) -> int:
    """The rows of a DataFrame as a folder of parts, each written by a task."""
    parts = more_parts(df, "", folder, format, fields)
    keep_only(folder, [part.path for part in parts])
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


def keep_only(folder: Path, parts: Sequence[Path]) -> None:
    """Remove the parts of attempts that failed."""
    make_folder(folder)
    kept = {path.name for path in parts}
    for path in folder.iterdir():
        if path.name not in kept and is_part(path):
            path.unlink()


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


def collected(
    spark: SparkSession,
    parts: Sequence[Part],
    path: Path,
    format: Format,
    columns: int,
    fields: Sequence[Field],
    order: Sequence[tuple[str, bool]],
) -> int:
    """Parts as one file, rows in order. The first `columns` of `fields` are delivered, the others
    are there to sort by.
    """
    rows = sum(part.rows for part in parts)
    files = [part.path for part in parts if part.rows]
    if rows <= IN_MEMORY or not files:
        assemble(files, path, format, fields[:columns], order)
        return rows
    with translating():
        df = parts_frame(spark, parts, columns, fields, order)
    return write_output(df, path, format, fields[:columns])


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
