"""Rows of a stream on stdout, batch by batch: as tables, as CSV, or as lines of JSON.

With `named`, rows carry the name of their query: every block of CSV begins with `# query NAME` and
its header, and every line of JSON with the key "query".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Literal, TypeAlias, assert_never

import pyarrow as pa

from terascope.display import result_table, stdout_console
from terascope.kernels.encode.text import csv_header, csv_lines, json_lines
from terascope.plan.rel import Field
from terascope.types import Type

RowsFormat: TypeAlias = Literal["table", "csv", "ndjson"]
TYPES = {
    pa.bool_(): Type.BOOL,
    pa.int64(): Type.INT,
    pa.uint64(): Type.INT,
    pa.float64(): Type.FLOAT,
}
"""Of columns in readable form; an address is text there."""


class RowPrinter:
    def __init__(self, format: RowsFormat, named: bool, rows: int | None = None) -> None:
        """`rows`: of a table at most; None: all."""
        self._format = format
        self._named = named
        self._rows = rows
        self._header: tuple[Field, ...] | None = None

    def show(self, query: str, batch: int, fields: Sequence[Field], rows: pa.Table) -> None:
        """Print the rows of a batch of a query, at once."""
        match self._format:
            case "table":
                self._table(f"{query}, batch {batch:,}", fields, rows)
            case "csv":
                write(self._csv_head(query, tuple(fields)) + csv_lines(*text_columns(rows)))
            case "ndjson":
                plain = json_lines(rows.column_names, *text_columns(rows))
                write(with_key(plain, query) if self._named else plain)
            case _:
                assert_never(self._format)

    def _table(self, title: str, fields: Sequence[Field], rows: pa.Table) -> None:
        console = stdout_console()
        with console.capture() as shown:
            console.print(result_table(title, fields, rows.slice(0, self._rows), rows.num_rows))
            console.print()
        # Not by the console itself, which ends the process when nobody reads any more.
        sys.stdout.write(shown.get())
        sys.stdout.flush()

    def _csv_head(self, query: str, fields: tuple[Field, ...]) -> bytes:
        """The names of the columns: above the first row, and again when they change."""
        header = csv_header([field.name for field in fields])
        if self._named:
            return f"# query {query}\n".encode() + header
        before, self._header = self._header, fields
        return b"" if fields == before else header


def with_key(lines: bytes, query: str) -> bytes:
    """Lines of JSON objects, each with the key "query" first."""
    key = b'{"query": ' + json.dumps(query, ensure_ascii=False).encode() + b", "
    return b"".join(key + line[1:] for line in lines.splitlines(keepends=True))


def text_columns(table: pa.Table) -> tuple[list[pa.Array], list[Type]]:
    """Columns in readable form with their types."""
    columns = [column.chunk(0) for column in table.combine_chunks().columns]
    return columns, [TYPES.get(column.type, Type.STRING) for column in columns]


def write(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
