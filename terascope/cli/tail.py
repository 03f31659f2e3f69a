"""`terascope tail`: the rows of a named stream as they come."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeAlias, assert_never

import typer

from terascope.cli.binding import Debug
from terascope.cli.operating import Checkpoint, found

if TYPE_CHECKING:
    import pyarrow as pa

    from terascope.streaming.state.manifest import DeliveredBatch, Header
    from terascope.types import Type

Print: TypeAlias = "Callable[[DeliveredBatch, pa.Table, Header], None]"


class TailFormat(StrEnum):
    TABLE = "table"
    CSV = "csv"
    NDJSON = "ndjson"


def tail(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A named stream of the set.")],
    checkpoint: Checkpoint = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="All rows that were written, then the new ones.")
    ] = False,
    rows: Annotated[
        int, typer.Option(help="How many rows that were there before come first.", min=0)
    ] = 10,
    format: Annotated[TailFormat, typer.Option("--format", "-f", help="How rows are shown.")] = (
        TailFormat.TABLE
    ),
    no_follow: Annotated[
        bool, typer.Option("--no-follow", help="End when what is there has been shown.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Show the rows of a named stream as they come, until the run is over or Ctrl-C.

    It reads the files that the run writes, and never holds the run up. A stream that is internal
    to its set is written from now on, beginning with its next whole slice. With --checkpoint it
    also reads what a run that is over has written.
    """
    del debug
    from terascope.operate.control_requests import rows_folder
    from terascope.operate.subscription import Subscription, start_of_last

    run = found(checkpoint, over=True)
    folder = rows_folder(run, name)
    since, skip = (-1, 0) if from_start else start_of_last(folder, rows)
    subscription = Subscription(
        folder, follow=not no_follow, since_batch=since, is_over=lambda: not run.is_alive
    )
    show = printer(format)
    for batch, table in subscription.batches():
        shown = table.slice(min(skip, table.num_rows))
        skip -= table.num_rows - shown.num_rows
        if shown.num_rows and subscription.header is not None:
            show(batch, shown, subscription.header)
            sys.stdout.flush()


def printer(format: TailFormat) -> Print:
    """Prints the rows of a batch."""
    match format:
        case TailFormat.TABLE:
            return print_table
        case TailFormat.CSV:
            return csv_printer()
        case TailFormat.NDJSON:
            return print_ndjson
        case _:
            assert_never(format)


def print_table(batch: DeliveredBatch, table: pa.Table, header: Header) -> None:
    from terascope.display import result_table, stdout_console
    from terascope.operate.showing import SHOWN

    console = stdout_console()
    title = f"{header.query.removesuffix(SHOWN)}, batch {batch.number:,}"
    console.print(result_table(title, header.fields, table, table.num_rows))
    console.print()


def csv_printer() -> Print:
    """The names of the columns stand above the first row, and again when they change."""
    from terascope.kernels.encode.text import csv_header, csv_lines

    told: list[Header] = []

    def show(batch: DeliveredBatch, table: pa.Table, header: Header) -> None:
        del batch
        if told != [header]:
            told[:] = [header]
            sys.stdout.buffer.write(csv_header(table.column_names))
        sys.stdout.buffer.write(csv_lines(*text_columns(table)))

    return show


def print_ndjson(batch: DeliveredBatch, table: pa.Table, header: Header) -> None:
    from terascope.kernels.encode.text import json_lines

    del batch, header
    sys.stdout.buffer.write(json_lines(table.column_names, *text_columns(table)))


def text_columns(table: pa.Table) -> tuple[list[pa.Array], list[Type]]:
    """Columns in readable form with the types they have there: an address is text now."""
    import pyarrow as pa

    from terascope.types import Type

    kinds = {
        pa.bool_(): Type.BOOL,
        pa.int64(): Type.INT,
        pa.uint64(): Type.INT,
        pa.float64(): Type.FLOAT,
    }
    whole = table.combine_chunks()
    columns = [column.chunk(0) for column in whole.columns]
    return columns, [kinds.get(column.type, Type.STRING) for column in columns]
