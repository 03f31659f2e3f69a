"""Rows as tables: for a terminal (rich) and for a notebook (HTML).

In: the first rows of a result and how many there are in all. Out: a table with numbers to the
right, at most as wide as the terminal: columns that do not fit are counted instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
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


def is_number(type: Type) -> bool:
    """Whether a column stands to the right."""
    return type.is_numeric or type.is_whole


def cells(head: pa.Table) -> list[list[str]]:
    """Column by column."""
    return [[cell(value) for value in column.to_pylist()] for column in head.columns]


def rows_text(shown: int, total: int) -> str:
    """The footer of a table."""
    rows = plural(total, "row")
    return rows if shown == total else f"... {total - shown:,} more; {rows}"


@dataclass(frozen=True)
class ResultTable:
    """Rows for a terminal: a table as wide as there is room for."""

    name: str
    fields: tuple[Field, ...]
    columns: list[list[str]]
    shown: int
    total: int
    width: int = ANY_WIDTH

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = [f.name for f in self.fields]
        fitting = fitting_columns(names, self.columns, min(self.width, options.max_width))
        left_out = len(names) - fitting
        footer = rows_text(self.shown, self.total)
        if left_out:
            footer += f"; {plural(left_out, 'more column')} to the right"
        yield Text(self.name, style="bold")
        yield self.table(fitting)
        yield Text(footer, style="dim")

    def table(self, fitting: int) -> Table:
        table = plain_table()
        for field in self.fields[:fitting]:
            justify: JustifyMethod = "right" if is_number(field.type) else "left"
            table.add_column(Text(field.name), justify=justify, no_wrap=True)
        for row in zip(*self.columns[:fitting], strict=True):
            table.add_row(*(Text(text, style="dim" if text == NULL else "") for text in row))
        return table


def result_table(
    name: str, fields: Sequence[Field], head: pa.Table, total: int, width: int = ANY_WIDTH
) -> ResultTable:
    """The first rows of a result, to be printed on a rich console, at most `width` letters wide."""
    return ResultTable(name, tuple(fields), cells(head), head.num_rows, total, width or ANY_WIDTH)


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
    align = ["right" if is_number(f.type) else "left" for f in fields]
    header = "".join(
        f'<th style="text-align:{side}" title="{f.type.label}">{escape(f.name)}</th>'
        for f, side in zip(fields, align, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{side}">{escape(text)}</td>'
            for text, side in zip(row, align, strict=True)
        )
        + "</tr>"
        for row in zip(*cells(head), strict=True)
    )
    footer = escape(rows_text(head.num_rows, total))
    return (
        f'<table><caption style="text-align:left;font-weight:bold">{escape(name)}</caption>'
        f"<thead><tr>{header}</tr></thead><tbody>{body}</tbody></table><p><em>{footer}</em></p>"
    )
