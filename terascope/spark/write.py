"""Results as files: one per query, complete or not there at all.

In: a DataFrame, the GSQL types of its columns, a path and a format. Out: the file, and how many
rows it has. The tasks of Spark turn column batches into bytes; the driver takes them one partition
after the other and appends, so that it never holds more than one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from terascope.connectors.base import arrow_type
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
from terascope.kernels.encode.text import readable_table
from terascope.plan.rel import Field
from terascope.spark.catalyst.frame import place
from terascope.spark.mistakes import translating
from terascope.spark.worker import working

__all__ = ["Format", "preview", "to_arrow_table", "write_output", "write_text"]

CHUNK_SCHEMA = T.StructType(
    [T.StructField("chunk", T.BinaryType()), T.StructField("rows", T.LongType())]
)


def write_output(df: DataFrame, path: Path, format: Format, fields: Sequence[Field]) -> int:
    """Write the rows, in their order, and return how many they are.

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
        with working():
            for batch in batches:
                yield pa.RecordBatch.from_arrays(
                    [pa.array([encode(batch)], pa.binary()), pa.array([batch.num_rows])],
                    ["chunk", "rows"],
                )

    with translating():
        # PySpark looks the columns up by name, and takes a dot in one for a field of a struct.
        plain = df.toDF(*(place(i) for i in range(len(df.columns))))
        packed = plain.mapInArrow(encoded, CHUNK_SCHEMA)
        for row in packed.toLocalIterator(prefetchPartitions=True):
            yield bytes(row[0]), row[1]


def write_text(df: DataFrame, file: BinaryIO, format: Format, fields: Sequence[Field]) -> int:
    return write_chunks(chunks(df, text_encoder(format, fields)), file, format, fields)


def write_parquet(df: DataFrame, file: BinaryIO, fields: Sequence[Field]) -> int:
    """Addresses as text, raw bytes as they are."""
    schema = parquet_schema(fields)

    def encode(batch: pa.RecordBatch) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as stream:
            stream.write_batch(parquet_batch(batch.columns, fields))
        return bytes(sink.getvalue())

    count = 0
    with pq.ParquetWriter(file, schema, compression=PARQUET_COMPRESSION) as writer:
        for chunk, rows in chunks(df, encode):
            with pa.ipc.open_stream(chunk) as stream:
                for batch in stream:
                    writer.write_batch(batch)
            count += rows
    return count


# ---- for terminals and notebooks -----------------------------------------------------------------


def to_arrow_table(df: DataFrame, fields: Sequence[Field]) -> pa.Table:
    """All rows, in their order, readable: addresses as text, raw bytes in hexadecimal."""
    with translating():
        table = df.toArrow()
    return readable_table([column.combine_chunks() for column in table.columns], fields)


def preview(df: DataFrame, fields: Sequence[Field], rows: int) -> pa.Table:
    """The first rows only. Taken, not limited: a limit may mix the order of partitions."""
    with translating():
        taken = df.take(rows)
    columns = [
        pa.array([row[i] for row in taken], arrow_type(field.type))
        for i, field in enumerate(fields)
    ]
    return readable_table(columns, fields)
