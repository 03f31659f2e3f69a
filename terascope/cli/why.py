"""`terascope why`: what keeps the window of a query open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from terascope.cli.command import Checkpoint

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from terascope.operate.causes import Cause
    from terascope.operate.status import QueryStatus, Status


def why(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A query of the running set.")],
    checkpoint: Checkpoint = None,
) -> None:
    """Say which input holds the window of a query back, by how much, and what to do about it.

    A window closes when the watermark of every input has passed its end: then nothing earlier will
    come. An input that is another query of the set is followed to the sources.
    """
    from terascope.diagnostic import StreamError
    from terascope.display import stdout_console
    from terascope.operate.server import fetch_status
    from terascope.streaming.state.runs import find_run

    status = fetch_status(find_run(checkpoint))
    found = status.query(query)
    if found is None:
        known = ", ".join(q.name for q in status.queries) or "none"
        raise StreamError(f"{status.run.set_name} has no query '{query}'; it has: {known}")
    tell_why(stdout_console(), status, found, frozenset())


def tell_why(console: Console, status: Status, query: QueryStatus, seen: frozenset[str]) -> None:
    """The causes of one query, then those of the query that holds it back."""
    from rich.text import Text

    from terascope.operate.causes import causes, expectation
    from terascope.operate.notices import late_text
    from terascope.units import readable_seconds

    closed = query.closed_until
    until = "has closed no window yet" if closed is None else f"is closed until {closed}"
    line = Text.assemble((query.name, "bold"), f" {until}")
    if query.lag_seconds is not None:
        line.append(f", {readable_seconds(query.lag_seconds)} behind the present")
    console.print(line)
    for source in (s for s in status.sources if query.name in s.late_queries):
        console.print(Text.assemble(("late: ", "bold"), late_text(source)), soft_wrap=True)
    found = causes(status, query)
    if not found:
        console.print(expectation(status, query), soft_wrap=True)
        return
    first = found[0]
    if first.input is not None:
        console.print()
        console.print(cause_table(found))
        console.print()
    below = status.query(first.input) if first.kind == "stream" and first.input else None
    if below is not None and below.name not in seen:
        tell_why(console, status, below, seen | {query.name})
        return
    who = f"{query.name}:" if first.input is None else first.input
    console.print(Text.assemble((who, "bold"), f" {first.what}"))
    console.print(Text.assemble(("what to do: ", "bold"), first.advice))


def cause_table(found: tuple[Cause, ...]) -> Table:
    """All inputs that hold back, the earliest watermark first."""
    from rich.text import Text

    from terascope.display import plain_table
    from terascope.units import UNKNOWN, readable_seconds

    table = plain_table()
    table.add_column("input", no_wrap=True)
    table.add_column("watermark", no_wrap=True)
    table.add_column("behind", justify="right", no_wrap=True)
    table.add_column("why")
    for cause in found:
        table.add_row(
            Text(cause.input or UNKNOWN),
            Text(cause.watermark or UNKNOWN),
            readable_seconds(cause.behind_seconds),
            Text(cause.what),
        )
    return table
