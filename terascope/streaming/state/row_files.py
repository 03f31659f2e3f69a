"""The files of a stream as tables.

In: a Parquet, CSV or NDJSON file of results, and the fields it has. Out: an Arrow table in readable
form: addresses as text, raw bytes in hexadecimal, integers, FLOATs and BOOLs as they are. Text
formats cannot tell everything apart: NaN and infinities of NDJSON come back as NULL, and so do
empty raw bytes of CSV, and an empty text there that is the only column.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from terascope.kernels.encode.text import hexadecimal, readable_fields
from terascope.plan.rel import Field
from terascope.streaming.mistakes import StreamError
from terascope.streaming.state.manifest import RowFormat

BLOCK = 1 << 20


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
    """A row must not be longer than a block: the whole file, in most cases."""
    return int(min(max(path.stat().st_size, BLOCK), 1 << 30))
