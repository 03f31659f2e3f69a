"""What the commands about a running set share: its flag, and how it is found and asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from terascope.operate.status import QueryStatus, Status
    from terascope.streaming.state.runs import Run

Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="The checkpoint of the run; not needed while only one set is running.",
        show_default=False,
    ),
]


def found(checkpoint: Path | None, over: bool = False) -> Run:
    """The run that is meant.

    Raises:
        StreamError: there is none, or there are several.
    """
    from terascope.streaming.state.runs import find_run

    return find_run(checkpoint, over)


def asked(run: Run) -> Status:
    """What the run says of itself.

    Raises:
        StreamError: it does not answer.
    """
    from terascope.operate.client import fetch_status

    return fetch_status(run)


def query_named(status: Status, name: str) -> QueryStatus:
    """A stream of the run.

    Raises:
        StreamError: it has no such stream.
    """
    from terascope.streaming.mistakes import StreamError

    query = status.query(name)
    if query is None:
        known = ", ".join(q.name for q in status.queries) or "none"
        raise StreamError(f"{status.run.set_name} has no query '{name}'; it has: {known}")
    return query
