"""The rows of DataFrames as files: one file of all rows in order, or a folder of parts.

In: a DataFrame, the GSQL types of its columns, a path and a format. Out: the file, complete or not
there at all, and its number of rows. The tasks of Spark turn column batches into bytes; the driver
takes them one partition after the other and appends, so that it never holds more than one. Tasks
write parts themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.execute.results.parts import Part, PartWriter
from terascope.execute.results.result_files import (
    PARQUET_COMPRESSION,
    Chunk,
    Encode,
    Format,
    atomic,
    parquet_batch,
    parquet_schema,
    text_encoder,
    write_chunks,
)
from terascope.files import make_folder
from terascope.kernels.encode.text import readable_table
from terascope.kernels.merge.payload import pack_tuples, unpack_tuples
from terascope.physical.delivery import PartFormat
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.rel import Field
from terascope.spark.catalyst.expressions import wide_number, written_address
from terascope.spark.catalyst.frame import by_place, place
from terascope.spark.mistakes import in_worker, translating
from terascope.spark.stream.source import REPORT
from terascope.types import Type

CHUNK = "chunk binary, rows bigint"


def write_output(df: DataFrame, path: Path, format: Format, fields: Sequence[Field]) -> int:
    """Write the rows in order, and return their number.

    Raises:
        OutputError: the file cannot be written.
        ValueMistake: computing the rows met a value no answer exists for.
    """
    with atomic(path) as file:
        if format == "parquet":
            return write_parquet(df, file, fields)
        return write_text(df, file, format, fields)


def chunks(df: DataFrame, encode: Encode) -> Iterator[Chunk]:
    """The rows, encoded by Spark's tasks, in order."""

    def encoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            chunk = {"chunk": [encode(batch.columns)], "rows": [batch.num_rows]}
            yield pa.RecordBatch.from_pydict(chunk)

    with translating():
        packed = by_place(df).mapInArrow(in_worker(encoded), CHUNK)
        for row in packed.toLocalIterator(prefetchPartitions=True):
            yield bytes(row[0]), row[1]


def write_text(df: DataFrame, file: BinaryIO, format: Format, fields: Sequence[Field]) -> int:
    return write_chunks(chunks(df, text_encoder(format, fields)), file, format, fields)


def write_parquet(df: DataFrame, file: BinaryIO, fields: Sequence[Field]) -> int:
    """Write a Parquet file: addresses as text, raw bytes unchanged."""
    schema = parquet_schema(fields)

    def encode(columns: Sequence[pa.Array]) -> bytes:
        return pack_tuples(parquet_batch(columns, fields))

    count = 0
    with pq.ParquetWriter(file, schema, compression=PARQUET_COMPRESSION) as writer:
        for chunk, rows in chunks(df, encode):
            for batch in unpack_tuples(chunk):
                writer.write_batch(batch)
            count += rows
    return count


# ---- for terminals and notebooks -----------------------------------------------------------------


def to_arrow_table(df: DataFrame, fields: Sequence[Field]) -> pa.Table:
    """All rows in order, in readable form: addresses as text, raw bytes in hexadecimal."""
    with translating():
        table = df.toArrow()
    return readable_table([column.combine_chunks() for column in table.columns], fields)


def preview(df: DataFrame, fields: Sequence[Field], rows: int) -> pa.Table:
    """The first rows only, by `take`: a limit may mix the order of partitions."""
    with translating():
        taken = df.take(rows)
    columns = [
        pa.array([row[i] for row in taken], arrow_type(field.type))
        for i, field in enumerate(fields)
    ]
    return readable_table(columns, fields)


def readable_frame(df: DataFrame, fields: Sequence[Field]) -> DataFrame:
    """The same rows in the same order, with addresses as text and WIDE as the numbers they are:
    decimals of 20 digits, as Spark reads unsigned integers of 64 bits.
    """
    if not any(f.type.is_address or f.type is Type.WIDE for f in fields):
        return df

    def readable(column: Column, type: Type) -> Column:
        if type.is_address:
            return written_address(column)
        return wide_number(column) if type is Type.WIDE else column

    shown = (readable(F.col(place(i)), f.type).alias(f.name) for i, f in enumerate(fields))
    return by_place(df).select(*shown)


# ---- parts ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Writing:
    """Writes the rows of a task to one part, and reports it."""

    query: str
    folder: Path
    format: PartFormat
    fields: tuple[Field, ...]
    ordered: KeptOrder = ()
    """The columns whose order is checked."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with PartWriter(self.folder, self.format, self.fields, ordered=self.ordered) as part:
            for batch in batches:
                if batch.num_rows:
                    part.write(batch)
            path, rows = part.close()
        yield part_report(Part(self.query, path, rows, part.extents))


def written_parts(df: DataFrame, writing: Writing) -> DataFrame:
    """The reports of the tasks that write the rows of a DataFrame, when they run."""
    make_folder(writing.folder)
    return by_place(df).mapInArrow(in_worker(writing), REPORT)


def more_parts(df: DataFrame, writing: Writing) -> list[Part]:
    """The rows of a DataFrame as parts in a folder that may have others."""
    with translating():
        return reported_parts(written_parts(df, writing))


def report_batch(kind: str, text: str) -> pa.RecordBatch:
    """A report of a task as a row of `REPORT`."""
    return pa.RecordBatch.from_pydict({"kind": [kind], "text": [text]})


def part_report(part: Part) -> pa.RecordBatch:
    return report_batch("part", part.to_json())


def read_reports(df: DataFrame) -> list[tuple[str, str]]:
    """The rows of a DataFrame of reports."""
    return [(kind, text) for kind, text in df.collect()]


def reported_parts(df: DataFrame) -> list[Part]:
    return [Part.of(text) for _, text in read_reports(df)]
