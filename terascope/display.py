"""Rows as tables: for a terminal (rich) and for a notebook (HTML).

In: the first rows of a result and how many there are in all. Out: a table with numbers to the
right, at most as wide as the terminal: columns that do not fit are counted instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import pyarrow as pa
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from terascope.plan.rel import Field
from terascope.types import Type
from terascope.units import plural

WIDEST = 48
"""Letters of a cell at most."""
NULL = "-"
ANY_WIDTH = 100_000
BETWEEN = 3
"""The width of a column apart from its letters."""


def cell(value: Any) -> str:
    """A value as it is shown."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    text = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."


def side(type: Type) -> Literal["left", "right"]:
    """The side of its column at which a value stands."""
    return "right" if type.is_numeric or type.is_whole else "left"


def cells(head: pa.Table) -> list[list[str]]:
    """Column by column."""
    return [[cell(value) for value in column.to_pylist()] for column in head.columns]


def footer(shown: int, total: int) -> str:
    rows = plural(total, "row")
    return rows if shown == total else f"... {total - shown:,} more; {rows}"


@dataclass(frozen=True)
class ResultTable:
    """The first rows of a result for a rich console: a table as wide as there is room for."""

    name: str
    fields: Sequence[Field]
    head: pa.Table
    total: int
    """The number of all rows."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = cells(self.head)
        names = [f.name for f in self.fields]
        fitting = fitting_columns(names, columns, options.max_width)
        left_out = len(names) - fitting
        below = footer(self.head.num_rows, self.total)
        if left_out:
            below += f"; {plural(left_out, 'more column')} to the right"
        table = plain_table()
        for field in self.fields[:fitting]:
            table.add_column(Text(field.name), justify=side(field.type), no_wrap=True)
        for row in zip(*columns[:fitting], strict=True):
            table.add_row(*(Text(text, style="dim" if text == NULL else "") for text in row))
        yield Text(self.name, style="bold")
        yield table
        yield Text(below, style="dim")


def plain_table() -> Table:
    """An empty table as all commands show it: a line under the header and no other."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")


def stdout_console() -> Console:
    """The console of stdout; without a terminal lines have any length."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = ANY_WIDTH
    return console


def fitting_columns(names: Sequence[str], columns: Sequence[Sequence[str]], width: int) -> int:
    """The number of columns that fit into a terminal; at least one."""
    used = 0
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        used += max([len(name), *map(len, column)]) + (BETWEEN if number else 0)
        if used > width and number:
            return number
    return len(names)


def html_table(name: str, fields: Sequence[Field], head: pa.Table, total: int) -> str:
    """The table for a notebook."""
    styles = [f'style="text-align:{side(f.type)}"' for f in fields]
    header = "".join(
        f'<th {style} title="{f.type.label}">{escape(f.name)}</th>'
        for f, style in zip(fields, styles, strict=True)
    )
    body = ""
    for row in zip(*cells(head), strict=True):
        values = zip(row, styles, strict=True)
        body += f"<tr>{''.join(f'<td {style}>{escape(text)}</td>' for text, style in values)}</tr>"
    return (
        f'<table><caption style="text-align:left;font-weight:bold">{escape(name)}</caption>'
        f"<thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
        f"<p><em>{escape(footer(head.num_rows, total))}</em></p>"
    )
