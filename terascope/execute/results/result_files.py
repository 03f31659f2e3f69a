"""A result as one file: complete or not there at all.

In: batches of rows, in order, values in held form. Out: bytes of a CSV, JSON or NDJSON file, or the
schema and columns of a Parquet file. The file is written beside its place and renamed when it is
complete. Spark's tasks (terascope.spark.write) and terascope.execute.results.assemble write the
same bytes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias

import pyarrow as pa

from terascope.diagnostic import OutputError
from terascope.kernels.encode.text import csv_header, csv_lines, json_lines, readable, readable_type
from terascope.plan.rel import Field
from terascope.types import Type

Format: TypeAlias = Literal["csv", "json", "ndjson", "parquet"]
Encode: TypeAlias = Callable[[pa.RecordBatch], bytes]
Chunk: TypeAlias = tuple[bytes, int]
"""Encoded rows, and their number."""

PARQUET_COMPRESSION: Final = "zstd"


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A private file that is renamed into place only when everything was written."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as problem:
        raise OutputError(f"cannot write '{path}': {problem.strerror}") from problem
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(name).replace(path)
    except OSError as problem:
        raise OutputError(f"cannot write '{path}': {problem.strerror}") from problem
    finally:
        Path(name).unlink(missing_ok=True)


# ---- text ----------------------------------------------------------------------------------------


def text_encoder(format: Format, fields: Sequence[Field]) -> Encode:
    """Rows as lines of a format."""
    names, types = [f.name for f in fields], [f.type for f in fields]
    if format == "csv":
        return lambda batch: csv_lines(batch.columns, types)
    return lambda batch: json_lines(names, batch.columns, types)


def write_chunks(
    chunks: Iterable[Chunk], file: BinaryIO, format: Format, fields: Sequence[Field]
) -> int:
    """Write encoded rows with the text around them; return their number."""
    count = 0
    if format == "csv":
        file.write(csv_header([f.name for f in fields]))
    elif format == "json":
        file.write(b"[")
    for chunk, rows in chunks:
        if rows and format == "json":
            # Objects stand one a line, with a comma between them.
            file.write((b",\n" if count else b"\n") + chunk[:-1].replace(b"}\n{", b"},\n{"))
        else:
            file.write(chunk)
        count += rows
    if format == "json":
        file.write(b"\n]\n" if count else b"]\n")
    return count


# ---- Parquet -------------------------------------------------------------------------------------


def parquet_schema(fields: Sequence[Field]) -> pa.Schema:
    return pa.schema([(f.name, parquet_type(f.type)) for f in fields])


def parquet_batch(columns: Sequence[pa.Array], fields: Sequence[Field]) -> pa.RecordBatch:
    """Columns in Parquet form: addresses as text, raw bytes unchanged."""
    written = [parquet_column(c, f.type) for c, f in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(written, schema=parquet_schema(fields))


def parquet_type(type: Type) -> pa.DataType:
    return pa.binary() if type is Type.BINARY else readable_type(type)


def parquet_column(column: pa.Array, type: Type) -> pa.Array:
    return column if type is Type.BINARY else readable(column, type)
