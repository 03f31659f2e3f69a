"""`terascope status`: how a running set is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from terascope.cli.command import Checkpoint

if TYPE_CHECKING:
    from terascope.streaming.state.runs import Run

BETWEEN_LOOKS = 1.0


def status(
    checkpoint: Checkpoint = None,
    json: Annotated[
        bool, typer.Option("--json", help="Everything that is known, as one line of JSON.")
    ] = False,
    operators: Annotated[
        bool,
        typer.Option(
            "--operators",
            help="Also what every physical operator of reading and closing tasks has done so far.",
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Look again every second, until Ctrl-C.")
    ] = False,
) -> None:
    """Show how a running set is: its sources, its queries, and what it takes of the machine.

    A source's watermark says that nothing earlier will come from it; a query's lag, how far its
    closed windows are behind the present. The same is served at /status, and for Prometheus at
    /metrics, on the port that run prints.
    """
    if json and watch:
        raise typer.BadParameter("--json shows one status; call it again", param_hint="--watch")
    from terascope.cli.status_view import StatusView, operator_table
    from terascope.display import stdout_console
    from terascope.operate.server import fetch_status
    from terascope.streaming.state.runs import find_run

    run = find_run(checkpoint)
    if watch:
        watched(run)
    elif json:
        typer.echo(fetch_status(run).to_json())
    else:
        now = fetch_status(run)
        stdout_console().print(StatusView(now))
        if operators:
            stdout_console().print(operator_table(now.operators))


def watched(run: Run) -> None:
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
            time.sleep(BETWEEN_LOOKS)
