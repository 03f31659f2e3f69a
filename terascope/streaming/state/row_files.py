"""The files of a stream: read as tables, and merged into one whose rows are in order.

In: Parquet, CSV or NDJSON files of results, and their fields. Out: an Arrow table in readable form:
addresses as text, raw bytes in hexadecimal, integers, FLOATs and BOOLs unchanged. Text formats are
ambiguous: NaN and infinities of NDJSON come back as NULL, and so do empty raw bytes of CSV, and an
empty text there that is the only column. When files are merged, rows are therefore moved unchanged:
lines of text as lines, columns of Parquet as columns.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq
from numpy.typing import NDArray

from terascope.diagnostic import OutputError, StreamError, reason_of
from terascope.execute.results.parts import Part
from terascope.kernels.encode.text import hexadecimal, readable_fields
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.rel import Field
from terascope.streaming.state.manifest import RowFormat

BLOCK = 1 << 20

QUOTE, NEWLINE = ord('"'), ord("\n")
BATCH_ROWS = 1 << 16


def read_rows(path: Path, format: RowFormat, fields: Sequence[Field]) -> pa.Table:
    """All rows of a file.

    Raises:
        StreamError: it is gone, or is not what its manifest says.
    """
    schema = readable_fields(fields)
    try:
        match format:
            case "parquet":
                found = read_parquet(path)
            case "csv":
                found = read_csv(path, schema)
            case "ndjson":
                found = read_ndjson(path, schema)
            case _:
                assert_never(format)
        return found.select(schema.names).cast(schema)
    except FileNotFoundError:
        raise StreamError(
            f"'{path}' is gone: somebody removed results that the manifest beside it names"
        ) from None
    except (pa.ArrowException, OSError, KeyError) as problem:
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise StreamError(f"cannot read '{path}' as {format}: {reason}") from problem


def read_parquet(path: Path) -> pa.Table:
    # One file, by its own schema: a folder named like key=value must not become a column.
    table = pq.ParquetFile(path).read()
    for place, column in enumerate(table.columns):
        if pa.types.is_binary(column.type):
            text = pa.chunked_array([hexadecimal(c) for c in column.chunks], pa.string())
            table = table.set_column(place, table.column_names[place], text)
    return table


def read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    alone = len(schema) == 1  # a lone NULL is written "" because many readers skip empty lines
    return pa_csv.read_csv(
        path,
        read_options=pa_csv.ReadOptions(block_size=block_size(path)),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=not alone),
        convert_options=pa_csv.ConvertOptions(
            column_types=schema,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=alone,
        ),
    )


def read_ndjson(path: Path, schema: pa.Schema) -> pa.Table:
    if path.stat().st_size == 0:
        return schema.empty_table()
    return pa_json.read_json(
        path,
        read_options=pa_json.ReadOptions(block_size=block_size(path)),
        parse_options=pa_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore"
        ),
    )


def block_size(path: Path) -> int:
    """The size of a block to read, mostly the whole file: a row must fit into a block."""
    return int(min(max(path.stat().st_size, BLOCK), 1 << 30))


def reordered(
    parts: Sequence[Part], format: RowFormat, fields: Sequence[Field], ordered: KeptOrder
) -> Part:
    """One part with the rows of all, in the order of some of their columns; the other columns do
    not matter.

    Raises:
        OutputError: the part cannot be written.
        StreamError: a part cannot be read.
    """
    paths = [part.path for part in parts]
    keys = [read_rows(path, format, fields).select([name for name, _ in ordered]) for path in paths]
    places = woven_places(pa.concat_tables(keys), ordered)
    made = paths[0].with_name(f"part-{uuid.uuid4().hex}.{format}")
    try:
        if format == "parquet":
            write_columns(paths, places, made)
        else:
            write_lines(paths, places, made, format == "csv")
    except OSError as problem:
        made.unlink(missing_ok=True)
        raise OutputError(f"cannot write '{made}': {reason_of(problem)}") from problem
    return Part(parts[0].query, made, len(places))


def woven_places(table: pa.Table, ordered: KeptOrder) -> pa.Array:
    """The rows of a table in an order in which every one of its columns is in order. The columns
    rise together in rows that have all of them. A row without a value in the first column (an outer
    join without a partner) comes after the rows that are no later in another column.
    """
    columns = [ranks(table.column(name), down) for name, down in ordered]
    first = columns[0].copy()
    for other in columns[1:]:
        both, alone = (columns[0] >= 0) & (other >= 0), (first < 0) & (other >= 0)
        rising = np.argsort(other[both], kind="stable")
        reached = np.concatenate([[-1], np.maximum.accumulate(columns[0][both][rising])])
        first[alone] = reached[np.searchsorted(other[both][rising], other[alone], side="right")]
    return pa.array(np.lexsort([*columns[:0:-1], first]))


def ranks(column: pa.ChunkedArray, descending: bool) -> NDArray[np.int64]:
    """The rank of every value in its column; -1: no value."""
    is_there = column.is_valid().to_numpy()
    _, found = np.unique(column.drop_null().to_numpy(), return_inverse=True)
    made = np.full(len(column), -1, np.int64)
    made[is_there] = found.max() - found if descending and len(found) else found
    return made


def write_columns(paths: Sequence[Path], places: pa.Array, made: Path) -> None:
    whole = pa.concat_tables([pq.ParquetFile(path).read() for path in paths])
    with pq.ParquetWriter(made, whole.schema) as writer:
        for start in range(0, len(places), BATCH_ROWS):
            writer.write_table(whole.take(places.slice(start, BATCH_ROWS)))


def write_lines(paths: Sequence[Path], places: pa.Array, made: Path, is_csv: bool) -> None:
    lines = [text_lines(path.read_bytes(), quoted=is_csv) for path in paths]
    with made.open("xb") as file:
        if is_csv:  # the first line is the header
            file.write(lines[0][0].as_py())
            lines = [some.slice(1) for some in lines]
        whole = pa.chunked_array(lines)
        for start in range(0, len(places), BATCH_ROWS):
            for chunk in whole.take(places.slice(start, BATCH_ROWS)).chunks:
                file.write(bytes_of(chunk))


def text_lines(content: bytes, quoted: bool) -> pa.Array:
    """The lines of a file, each with its end. With `quoted`, a line that ends within quotes
    continues.
    """
    text = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(text == NEWLINE)
    if quoted:
        quotes = np.flatnonzero(text == QUOTE)
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    offsets: NDArray[np.int64] = np.concatenate([[0], ends + 1]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)


def bytes_of(lines: pa.Array) -> bytes:
    _, offsets, data = lines.buffers()
    edges = np.frombuffer(offsets, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return b"" if data is None else data[int(edges[0]) : int(edges[-1])].to_pybytes()
