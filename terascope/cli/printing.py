"""Results on stdout, when no directory is given.

table    a table per query, the first rows of each
csv      one query: plain CSV; several: a line `# query NAME` before each, an empty line between
json     one object: query name -> array of rows
ndjson   a row a line, each with the key "query" first

Everything is computed before anything is printed, so that a failure leaves no half of it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, BinaryIO, Literal, TypeAlias, cast

from terascope.display import result_table, stdout_console

if TYPE_CHECKING:
    from terascope.results import Result, Results

TextFormat: TypeAlias = Literal["csv", "json", "ndjson"]
Told = Callable[[str, int, int], None]
Show: TypeAlias = Callable[[], None]
"""Prints what was computed: when progress is no longer on the screen."""

IN_MEMORY = 16 << 20


def computed_tables(results: Results, rows: int, tell: Told) -> Show:
    """Tables, computed; what is returned prints them."""
    console = stdout_console()
    tables = []
    for number, result in enumerate(results.values()):
        tell(f"computing {result.name}", number, len(results))
        total = result.row_count
        tables.append(result_table(result.name, result.fields, result.head(rows), total))

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
            match format:
                case "csv":
                    spool_csv(result, spool, number, len(results))
                case "json":
                    spool_json(result, spool, number)
                case "ndjson":
                    spool_ndjson(result, spool)
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


def spool_csv(result: Result, spool: IO[bytes], number: int, total: int) -> None:
    if total > 1:
        spool.write(b"\n" if number else b"")
        spool.write(f"# query {result.name}\n".encode())
    rows_into(result, spool, "csv")


def spool_json(result: Result, spool: IO[bytes], number: int) -> None:
    spool.write(b", " if number else b"{")
    spool.write(json.dumps(result.name, ensure_ascii=False).encode() + b": ")
    rows_into(result, spool, "json")


def spool_ndjson(result: Result, spool: IO[bytes]) -> None:
    """Every row is an object on a line of its own: the key goes behind its first bracket."""
    key = b'{"query": ' + json.dumps(result.name, ensure_ascii=False).encode() + b", "
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as plain:
        rows_into(result, plain, "ndjson")
        plain.seek(0)
        for line in plain:
            spool.write(key + line[1:])


def rows_into(result: Result, file: IO[bytes], format: TextFormat) -> int:
    return result.write_text(cast(BinaryIO, file), format)
