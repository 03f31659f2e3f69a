"""The parts of a result assembled into one file, with rows in order.

In: parts in held form (terascope.execute.results.parts), and the columns to sort by; all of it fits
in memory. Out: the file that terascope.spark.write would write from the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from terascope.connectors.base import arrow_type
from terascope.execute.results.result_files import (
    PARQUET_COMPRESSION,
    Format,
    atomic,
    parquet_batch,
    parquet_schema,
    text_encoder,
    write_chunks,
)
from terascope.plan.rel import Field

BATCH_ROWS: Final = 1 << 16


def assemble(
    parts: Sequence[Path],
    path: Path,
    format: Format,
    fields: Sequence[Field],
    order: Sequence[tuple[str, bool]] = (),
) -> int:
    """Write the `fields` of all rows, sorted by columns of the parts (True: descending), and return
    how many rows there are.

    Raises:
        OutputError: the file cannot be written.
    """
    return write_table(sorted_table(parts, fields, order), path, format, fields)


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
    chunks = ((encode(batch), batch.num_rows) for batch in filled_batches(table))
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
