"""The commands that watch and operate a running set: `terascope status | why | tail | set`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import typer

from terascope.cli.binding import pairs
from terascope.cli.command import CHECKPOINT, argument, flag, misuse, switch
from terascope.diagnostic import StreamError

if TYPE_CHECKING:
    from terascope.functions.base import Value
    from terascope.operate.status import Status
    from terascope.streaming.state.runs import Run

BETWEEN_STATUSES: Final = 1.0
BETWEEN_LOOKS: Final = 0.2


def status(
    checkpoint: Path | None = CHECKPOINT,
    json: bool = switch("Everything that is known, as one line of JSON.", "--json"),
    operators: bool = switch(
        "Also what every physical operator of reading and closing tasks has done so far.",
        "--operators",
    ),
    watch: bool = switch("Look again every second, until Ctrl-C.", "--watch", "-w"),
) -> None:
    """Show how a running set is: its sources, its queries, and what it takes of the machine.

    A source's watermark says that nothing earlier will come from it; a query's lag, how far its
    closed windows are behind the present. The same is served at /status, and for Prometheus at
    /metrics, on the port that run prints.

    Examples:
        terascope status
        terascope status --watch
        terascope status --checkpoint state --json | jq .sources
    """
    if json and watch:
        raise misuse("--watch", "--json shows one status; call it again")
    from terascope.cli.status_view import StatusView, operator_table
    from terascope.display import stdout_console
    from terascope.operate.server import fetch_status
    from terascope.streaming.state.runs import find_run

    run = find_run(checkpoint)
    if watch:
        watch_run(run)
    elif json:
        typer.echo(fetch_status(run).to_json())
    else:
        now = fetch_status(run)
        stdout_console().print(StatusView(now))
        if operators:
            stdout_console().print(operator_table(now.operators))


def watch_run(run: Run) -> None:
    """Show one status after the other, until the run is over or Ctrl-C."""
    from terascope.cli.live_view import LiveView
    from terascope.display import stdout_console
    from terascope.operate.server import fetch_status
    from terascope.operate.status import OVER

    with LiveView(stdout_console()) as view:
        while run.is_alive:
            now = fetch_status(run)
            view.show(now)
            if now.run.state in OVER:
                return
            time.sleep(BETWEEN_STATUSES)


def why(
    query: str = argument("A query of the running set.", "QUERY"),
    checkpoint: Path | None = CHECKPOINT,
) -> None:
    """Say which input holds the window of a query back, by how much, and what to do about it.

    A window closes when the watermark of every input has passed its end: then nothing earlier will
    come. An input that is another query of the set is followed to the sources.

    Examples:
        terascope why talkers
        terascope why talkers --checkpoint state
    """
    from terascope.cli.status_view import tell_why
    from terascope.display import stdout_console
    from terascope.operate.server import fetch_status
    from terascope.streaming.state.runs import find_run

    status = fetch_status(find_run(checkpoint))
    found = status.query(query)
    if found is None:
        known = ", ".join(q.name for q in status.queries) or "none"
        raise StreamError(f"{status.run.set_name} has no query '{query}'; it has: {known}")
    tell_why(stdout_console(), status, found, frozenset())


def tail(
    name: str = argument("A named stream of the set.", "NAME"),
    checkpoint: Path | None = CHECKPOINT,
    from_start: bool = switch("All rows that were written, then the new ones.", "--from-start"),
    rows: int = flag("How many rows that were there before come first.", default=10, min=0),
    format: Literal["table", "csv", "ndjson"] = flag(
        "How rows are shown.", "--format", "-f", default="table"
    ),
    no_follow: bool = switch("End when what is there has been shown.", "--no-follow"),
) -> None:
    """Show the rows of a named stream as they come, until the run is over or Ctrl-C.

    It reads the files that the run writes, and never holds the run up. A stream that is internal
    to its set is written from now on, beginning with its next whole slice. With --checkpoint it
    also reads what a run that is over has written.

    Examples:
        terascope tail talkers
        terascope tail talkers --from-start --format csv > talkers.csv
        terascope tail talkers --checkpoint state --rows 100 --no-follow
        terascope tail scanners --format ndjson | jq .srcIP
    """
    from terascope.cli.printing import RowPrinter
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


def set_(
    assignment: str = argument("A parameter, and its value from now on.", "NAME=VALUE"),
    checkpoint: Path | None = CHECKPOINT,
    timeout: float = flag("Seconds to wait until the run has taken it.", default=60.0, min=0),
) -> None:
    """Give a parameter of a running set another value, without stopping the run.

    The new value holds from the next edge between two slices on: no window is computed with half
    of one value and half of another. It stays when the run is started again with the --param that
    it was started with before; another --param wins, for it was given later.

    Examples:
        terascope set threshold=200
        terascope set victim=10.1.2.3 --checkpoint state
    """
    from terascope.operate.control_requests import send_request
    from terascope.operate.server import fetch_status
    from terascope.streaming.state.runs import find_run

    ((name, value),) = pairs("NAME=VALUE", [assignment], "NAME=VALUE")
    run = find_run(checkpoint)
    is_it = check_value(run, name, value)
    if is_it(fetch_status(run).parameters.get(name)):
        typer.echo(f"{name} is {value} already")
        return
    send_request(run, name, value)
    status = wait_until(run, name, is_it, timeout)
    edge = status.run.parameter_edges.get(name)
    typer.echo(f"{name} is {value}" + (f" from {edge} on" if edge else ""))


def check_value(run: Run, name: str, value: str) -> Callable[[str | None], bool]:
    """Whether a text is that value of the parameter, once it is known that both exist.

    Raises:
        StreamError: there is no such parameter, or the value is not of its type.
    """
    from terascope.functions.casts import cast_value
    from terascope.types import Type

    declared = run.parameters.get(name)
    if declared is None:
        known = ", ".join(f"{n} ({d.type})" for n, d in run.parameters.items()) or "none"
        raise StreamError(f"{run.set_name} has no parameter '{name}'; it has: {known}")
    type = Type(declared.type)

    def read(text: str) -> Value:
        return cast_value(text, Type.STRING, type)

    wanted = read(value)
    if wanted is None:
        raise StreamError(f"'{value}' is not a value of type {type.label}, which {name} has")
    return lambda text: text is not None and read(text) == wanted


def wait_until(run: Run, name: str, is_it: Callable[[str | None], bool], timeout: float) -> Status:
    """The first status that has the value.

    Raises:
        StreamError: the run is gone, or has not taken it in time.
    """
    from terascope.operate.server import fetch_status

    until = time.monotonic() + timeout
    while True:
        status = fetch_status(run)
        if is_it(status.parameters.get(name)):
            return status
        if time.monotonic() >= until:
            raise StreamError(
                f"{run.set_name} has not taken {name} within {timeout:g} s; it is"
                f" {status.run.state}, and takes it with its next batch: see terascope status"
            )
        time.sleep(BETWEEN_LOOKS)
