"""A result as one file, complete or not there at all; and the order of its rows.

In: batches of rows, or parts in held form (terascope.execute.results.parts) and the columns to sort
them by; all of it fits in memory. Out: a CSV, JSON, NDJSON or Parquet file, written beside its
place and renamed when it is whole. Spark's tasks (terascope.spark.write) write the same bytes.

Parts whose rows are in order already need not be sorted: while a part is written, an `Extent` is
kept of each column that is declared to be ordered (its first and last value, and whether the rows
between are in order), and the parts may be put one behind the other.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from terascope.connectors.base import arrow_type
from terascope.diagnostic import OutputError, as_mistake
from terascope.kernels.encode.text import csv_header, csv_lines, json_lines, readable, readable_type
from terascope.kernels.merge.finish import ConstantColumn, Numbers, ResultColumn, arrow_column
from terascope.plan.rel import Field
from terascope.types import Type

if TYPE_CHECKING:
    from terascope.execute.results.parts import Part

Format: TypeAlias = Literal["csv", "json", "ndjson", "parquet"]
Encode: TypeAlias = Callable[[Sequence[pa.Array]], bytes]
"""Columns of rows as lines of a format."""
Chunk: TypeAlias = tuple[bytes, int]
"""Encoded rows, and their number."""

PARQUET_COMPRESSION: Final = "zstd"
BATCH_ROWS: Final = 1 << 16


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A private file that is renamed into place only when everything was written."""
    with as_mistake(OutputError, f"cannot write '{path}'"):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)


# ---- text ----------------------------------------------------------------------------------------


def text_encoder(format: Format, fields: Sequence[Field]) -> Encode:
    names, types = [f.name for f in fields], [f.type for f in fields]
    if format == "csv":
        return lambda columns: csv_lines(columns, types)
    return lambda columns: json_lines(names, columns, types)


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
    binary = {f.name: pa.binary() for f in fields if f.type is Type.BINARY}
    return pa.schema([(f.name, binary.get(f.name, readable_type(f.type))) for f in fields])


def parquet_batch(columns: Sequence[pa.Array], fields: Sequence[Field]) -> pa.RecordBatch:
    """Columns in Parquet form: addresses as text, raw bytes unchanged."""
    pairs = zip(columns, fields, strict=True)
    written = [c if f.type is Type.BINARY else readable(c, f.type) for c, f in pairs]
    return pa.RecordBatch.from_arrays(written, schema=parquet_schema(fields))


def write_table(table: pa.Table, path: Path, format: Format, fields: Sequence[Field]) -> int:
    """Write rows in their order, and return how many there are.

    Raises:
        OutputError: the file cannot be written.
    """
    with atomic(path) as file:
        if format == "parquet":
            return write_parquet(filled_batches(table), file, fields)
        return write_lines(table, file, format, fields)


def write_lines(table: pa.Table, file: BinaryIO, format: Format, fields: Sequence[Field]) -> int:
    """Write rows as text, and return how many there are."""
    encode = text_encoder(format, fields)
    chunks = ((encode(batch.columns), batch.num_rows) for batch in filled_batches(table))
    return write_chunks(chunks, file, format, fields)


def write_parquet(
    batches: Iterator[pa.RecordBatch], file: BinaryIO, fields: Sequence[Field]
) -> int:
    count = 0
    with pq.ParquetWriter(file, parquet_schema(fields), compression=PARQUET_COMPRESSION) as writer:
        for batch in batches:
            writer.write_batch(parquet_batch(batch.columns, fields))
            count += batch.num_rows
    return count


def filled_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    return (batch for batch in table.to_batches(BATCH_ROWS) if batch.num_rows)


def sorted_table(
    parts: Sequence[Path], fields: Sequence[Field], order: Sequence[tuple[str, bool]]
) -> pa.Table:
    """The `fields` of all rows, as engines hold them."""
    schema = pa.schema([(f.name, arrow_type(f.type)) for f in fields])
    if not parts:
        return schema.empty_table()
    names = [f.name for f in fields]
    wanted = [*names, *(name for name, _ in order if name not in names)]
    # One by one: a dataset of several files would take a dot in a name for a field of a struct.
    tables = [pq.ParquetFile(part).read() for part in parts]
    whole = pa.concat_tables([table.select(wanted) for table in tables])
    return sorted_rows(whole, schema, order)


def sorted_rows(table: pa.Table, schema: pa.Schema, order: Sequence[tuple[str, bool]]) -> pa.Table:
    """The columns of a schema, in the order of columns that it may lack."""
    if order:
        table = table.take(sorted_places(table, order))
    return table.select(schema.names).cast(schema)


def sorted_places(table: pa.Table, order: Sequence[tuple[str, bool]]) -> pa.Array:
    """The order of rows. NULL counts as the largest value, and NaN as the largest number: each has
    a sort column of its own before the values, because Arrow would put them last in both
    directions.
    """
    columns: list[pa.ChunkedArray] = []
    directions: list[str] = []
    for name, descending in order:
        column = table.column(name)
        given = [column]
        if pa.types.is_floating(column.type):
            given.insert(0, pc.fill_null(pc.is_nan(column), False))
        if column.null_count:
            given.insert(0, pc.is_null(column))
        columns += given
        directions += ["descending" if descending else "ascending"] * len(given)
    names = [f"o{i}" for i in range(len(columns))]
    keys = list(zip(names, directions, strict=True))
    return pc.sort_indices(pa.Table.from_arrays(columns, names), sort_keys=keys)


@dataclass(frozen=True)
class Extent:
    """An ordered column of a part. For a falling column the values have the other sign, so that
    later values are larger.
    """

    low: int | float | None = None
    high: int | float | None = None
    """The last value; None: no row has a value."""
    in_order: bool = True

    def then(self, later: Extent) -> Extent:
        """The extent of these rows followed by those of another extent."""
        if self.high is None or self.low is None:
            return Extent(later.low, later.high, self.in_order and later.in_order)
        if later.high is None or later.low is None:
            return Extent(self.low, self.high, self.in_order and later.in_order)
        in_order = self.in_order and later.in_order and self.high <= later.low
        return Extent(min(self.low, later.low), max(self.high, later.high), in_order)


def extent_of(column: ResultColumn, type: Type, descending: bool) -> Extent:
    """The extent of a page of a column; rows without a value are ignored."""
    sign = -1 if descending else 1
    match column:
        case ConstantColumn(value, _):
            return Extent() if value is None else Extent(sign * value, sign * value)
        case Numbers(values, None):
            found = values
        case _:
            found = arrow_column(column, type, True).drop_null().to_numpy(zero_copy_only=False)
    if not len(found):
        return Extent()
    in_order = found[:-1] >= found[1:] if descending else found[:-1] <= found[1:]
    low, high = sorted((sign * found.min().item(), sign * found.max().item()))
    return Extent(low, high, bool(np.all(in_order)))


def in_sequence(parts: Sequence[Part]) -> list[Part] | None:
    """The sequence of the parts of a result in which all rows are in order; None: there is none,
    and their rows have to be merged.
    """
    if len(parts) <= 1:
        placed = list(parts)
    else:
        placed = sorted(parts, key=lambda part: [place_of(extent) for extent in part.extents])
    whole: tuple[Extent, ...] | None = None
    for part in placed:
        pairs = zip(whole, part.extents, strict=True) if whole is not None else None
        whole = part.extents if pairs is None else tuple(a.then(b) for a, b in pairs)
    return placed if whole is None or all(extent.in_order for extent in whole) else None


def place_of(extent: Extent) -> tuple[Any, ...]:
    """The sort key of a part; a part without values comes last."""
    return (extent.low is None, extent.low or 0, extent.high or 0)
