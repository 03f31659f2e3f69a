"""Rows on stdout, when no directory is given: of a batch, and of a stream batch by batch.

table    a table per query, the first rows of each
csv      one query: plain CSV; several: a line `# query NAME` before each, an empty line between
json     one object: query name -> array of rows
ndjson   a row a line, each with the key "query" first

Everything of a batch is computed before anything is printed, so that a failure leaves no half of
it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias, cast

import pyarrow as pa

from terascope.cli.progress import Told
from terascope.display import ResultTable, stdout_console
from terascope.kernels.encode.text import csv_header, csv_lines, json_lines
from terascope.plan.rel import Field
from terascope.types import Type

if TYPE_CHECKING:
    from terascope.results import Results

TextFormat: TypeAlias = Literal["csv", "json", "ndjson"]
RowsFormat: TypeAlias = Literal["table", "csv", "ndjson"]
Show: TypeAlias = Callable[[], None]
"""Prints what was computed: when progress is no longer on the screen."""

IN_MEMORY = 16 << 20
TYPES = {
    pa.bool_(): Type.BOOL,
    pa.int64(): Type.INT,
    pa.uint64(): Type.INT,
    pa.float64(): Type.FLOAT,
}
"""The types of columns in readable form; an address is text there."""


def computed_tables(results: Results, rows: int, tell: Told) -> Show:
    """Tables, computed; what is returned prints them."""
    console = stdout_console()
    tables = []
    for number, result in enumerate(results.values()):
        tell(f"computing {result.name}", number, len(results))
        total = result.row_count
        tables.append(ResultTable(result.name, result.fields, result.head(rows), total))

    def show() -> None:
        for table in tables:
            console.print(table)
            console.print()

    return show


def computed_rows(results: Results, format: TextFormat, tell: Told) -> Show:
    """Rows, computed and encoded; what is returned prints them."""
    with ExitStack() as stack:
        spool = stack.enter_context(tempfile.SpooledTemporaryFile(IN_MEMORY))
        for number, result in enumerate(results.values()):
            tell(f"computing {result.name}", number, len(results))
            if format == "ndjson":
                with tempfile.SpooledTemporaryFile(IN_MEMORY) as plain:
                    result.write_text(cast(BinaryIO, plain), format)
                    plain.seek(0)
                    spool.writelines(with_key(plain, result.name))
                continue
            if format == "json":
                spool.write((b", " if number else b"{") + quoted(result.name) + b": ")
            elif len(results) > 1:
                spool.write((b"\n" if number else b"") + f"# query {result.name}\n".encode())
            result.write_text(cast(BinaryIO, spool), format)
        if format == "json":
            spool.write(b"}\n" if len(results) else b"{}\n")
        stack.pop_all()  # it lives until it is shown

    def show() -> None:
        with spool:
            spool.seek(0)
            sys.stdout.flush()
            shutil.copyfileobj(spool, sys.stdout.buffer)
            sys.stdout.buffer.flush()

    return show


def with_key(lines: Iterable[bytes], query: str) -> Iterator[bytes]:
    """Lines of JSON objects, each with the key "query" behind its first bracket."""
    key = b'{"query": ' + quoted(query) + b", "
    return (key + line[1:] for line in lines)


def quoted(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False).encode()


class RowPrinter:
    """Rows of a stream. With `named`, rows carry the name of their query: every block of CSV begins
    with `# query NAME` and its header, and every line of JSON with the key "query".
    """

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
                named = with_key(plain.splitlines(keepends=True), query)
                write(b"".join(named) if self._named else plain)

    def _table(self, title: str, fields: Sequence[Field], rows: pa.Table) -> None:
        console = stdout_console()
        with console.capture() as shown:
            console.print(ResultTable(title, fields, rows.slice(0, self._rows), rows.num_rows))
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


def text_columns(table: pa.Table) -> tuple[list[pa.Array], list[Type]]:
    """Columns in readable form with their types."""
    columns = [column.chunk(0) for column in table.combine_chunks().columns]
    return columns, [TYPES.get(column.type, Type.STRING) for column in columns]


def write(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
