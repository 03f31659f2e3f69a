"""`terascope tail`: the rows of a named stream as they come."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from terascope.cli.command import Checkpoint


def tail(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A named stream of the set.")],
    checkpoint: Checkpoint = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="All rows that were written, then the new ones.")
    ] = False,
    rows: Annotated[
        int, typer.Option(help="How many rows that were there before come first.", min=0)
    ] = 10,
    format: Annotated[
        Literal["table", "csv", "ndjson"],
        typer.Option("--format", "-f", help="How rows are shown."),
    ] = "table",
    no_follow: Annotated[
        bool, typer.Option("--no-follow", help="End when what is there has been shown.")
    ] = False,
) -> None:
    """Show the rows of a named stream as they come, until the run is over or Ctrl-C.

    It reads the files that the run writes, and never holds the run up. A stream that is internal
    to its set is written from now on, beginning with its next whole slice. With --checkpoint it
    also reads what a run that is over has written.
    """
    from terascope.cli.row_printer import RowPrinter
    from terascope.operate.control_requests import SHOWN, rows_folder
    from terascope.operate.subscription import Subscription, start_of_last
    from terascope.streaming.state.runs import find_run

    run = find_run(checkpoint, over=True)
    folder = rows_folder(run, name)
    since, skip = (-1, 0) if from_start else start_of_last(folder, rows)
    subscription = Subscription(
        folder, follow=not no_follow, since_batch=since, is_over=lambda: not run.is_alive
    )
    printer = RowPrinter(format, named=False)
    for batch, table in subscription.batches():
        shown = table.slice(min(skip, table.num_rows))
        skip -= table.num_rows - shown.num_rows
        header = subscription.header
        if shown.num_rows and header is not None:
            printer.show(header.query.removesuffix(SHOWN), batch.number, header.fields, shown)
