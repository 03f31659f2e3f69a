"""Rows of a stream on stdout, as their windows close.

In: the rows of a batch, query by query: it is a callback of the run, so that each comes after it is
durable. Out: a table for each batch, CSV or lines of JSON. Of several queries every block of CSV
begins with `# query NAME` and its header, and every line of JSON with the key "query".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Literal, TypeAlias, assert_never

import pyarrow as pa

from terascope.cli.tail import text_columns
from terascope.display import result_table, stdout_console
from terascope.kernels.encode.text import csv_header, csv_lines, json_lines
from terascope.plan.rel import Field

RowsFormat: TypeAlias = Literal["table", "csv", "ndjson"]


class ConsoleRows:
    """Prints what it is called with."""

    def __init__(
        self, format: RowsFormat, fields: Mapping[str, tuple[Field, ...]], rows: int
    ) -> None:
        """`fields`: the columns of every query; `rows`: of a table at most."""
        self._format = format
        self._fields = fields
        self._rows = rows
        self._has_header = False

    def __call__(self, query: str, batch: int, rows: pa.Table, /) -> None:
        match self._format:
            case "table":
                self._table(query, batch, rows)
            case "csv":
                self._csv(query, rows)
            case "ndjson":
                key = b'{"query": ' + json.dumps(query, ensure_ascii=False).encode() + b", "
                plain = json_lines(rows.column_names, *text_columns(rows))
                write(b"".join(key + line[1:] for line in plain.splitlines(keepends=True)))
            case _:
                assert_never(self._format)

    def _table(self, query: str, batch: int, rows: pa.Table) -> None:
        console = stdout_console()
        title = f"{query}, batch {batch:,}"
        head = rows.slice(0, self._rows)
        with console.capture() as shown:
            console.print(result_table(title, self._fields[query], head, rows.num_rows))
            console.print()
        # Not by the console itself, which ends the process when nobody reads any more.
        sys.stdout.write(shown.get())
        sys.stdout.flush()

    def _csv(self, query: str, rows: pa.Table) -> None:
        several = len(self._fields) > 1
        text = f"# query {query}\n".encode() if several else b""
        if several or not self._has_header:
            text += csv_header(rows.column_names)
            self._has_header = True
        write(text + csv_lines(*text_columns(rows)))


def write(content: bytes) -> None:
    """To stdout, now."""
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
