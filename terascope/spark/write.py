"""Results as files: one per query, complete or not there at all.

In: a DataFrame, the GSQL types of its columns, a path and a format. Out: the file, and how many
rows it has. The tasks of Spark turn column batches into bytes; the driver takes them one partition
after the other and appends, so that it never holds more than one. The file is written beside its
place and renamed when it is whole.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from terascope.connectors.base import arrow_type
from terascope.diagnostic import OutputError
from terascope.low.text import (
    csv_header,
    csv_lines,
    json_lines,
    readable,
    readable_fields,
    readable_type,
)
from terascope.plan.rel import Field
from terascope.spark.frame import place
from terascope.spark.mistakes import telling, translating
from terascope.types import Type

Format: TypeAlias = Literal["csv", "json", "ndjson", "parquet"]
Encode: TypeAlias = Callable[[pa.RecordBatch], bytes]
Chunk: TypeAlias = tuple[bytes, int]
"""Encoded rows, and how many they are."""

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


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its place only when everything was written."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as problem:
        raise OutputError(f"cannot write '{path}': {problem.strerror}") from problem
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(name).chmod(0o666 & ~current_umask())
        Path(name).replace(path)
    except OSError as problem:
        raise OutputError(f"cannot write '{path}': {problem.strerror}") from problem
    finally:
        Path(name).unlink(missing_ok=True)


def current_umask() -> int:
    """The only way to ask for it is to set it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def chunks(df: DataFrame, encode: Encode) -> Iterator[Chunk]:
    """The rows, encoded by Spark's tasks, in order."""

    def encoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with telling():
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
    names, types = [f.name for f in fields], [f.type for f in fields]
    count = 0
    if format == "csv":
        file.write(csv_header(names))
    elif format == "json":
        file.write(b"[")
    for chunk, rows in chunks(df, text_encoder(format, names, types)):
        if rows and format == "json":
            # Objects stand one a line, with a comma between them.
            file.write((b",\n" if count else b"\n") + chunk[:-1].replace(b"}\n{", b"},\n{"))
        else:
            file.write(chunk)
        count += rows
    if format == "json":
        file.write(b"\n]\n" if count else b"]\n")
    return count


def text_encoder(format: Format, names: Sequence[str], types: Sequence[Type]) -> Encode:
    if format == "csv":
        return lambda batch: csv_lines(batch.columns, types)
    return lambda batch: json_lines(names, batch.columns, types)


def write_parquet(df: DataFrame, file: BinaryIO, fields: Sequence[Field]) -> int:
    """Addresses as text, raw bytes as they are."""
    schema = pa.schema([(f.name, parquet_type(f.type)) for f in fields])
    types = [f.type for f in fields]

    def encode(batch: pa.RecordBatch) -> bytes:
        sink = pa.BufferOutputStream()
        columns = [parquet_column(c, t) for c, t in zip(batch.columns, types, strict=True)]
        with pa.ipc.new_stream(sink, schema) as stream:
            stream.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        return bytes(sink.getvalue())

    count = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for chunk, rows in chunks(df, encode):
            with pa.ipc.open_stream(chunk) as stream:
                for batch in stream:
                    writer.write_batch(batch)
            count += rows
    return count


def parquet_type(type: Type) -> pa.DataType:
    return pa.binary() if type is Type.BINARY else readable_type(type)


def parquet_column(column: pa.Array, type: Type) -> pa.Array:
    return column if type is Type.BINARY else readable(column, type)


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


def readable_table(columns: Sequence[pa.Array], fields: Sequence[Field]) -> pa.Table:
    shown = [readable(column, f.type) for column, f in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(shown, schema=readable_fields(fields))
