"""`terascope set`: another value for a parameter of a running set."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from terascope.cli.binding import pairs
from terascope.cli.command import Checkpoint

if TYPE_CHECKING:
    from terascope.functions.base import Value
    from terascope.operate.status import Status
    from terascope.streaming.state.runs import Run

BETWEEN_LOOKS = 0.2


def set_(
    assignment: Annotated[
        str, typer.Argument(metavar="NAME=VALUE", help="A parameter, and its value from now on.")
    ],
    checkpoint: Checkpoint = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds to wait until the run has taken it.", min=0)
    ] = 60.0,
) -> None:
    """Give a parameter of a running set another value, without stopping the run.

    The new value holds from the next edge between two slices on: no window is computed with half
    of one value and half of another. It stays when the run is started again with the --param that
    it was started with before; another --param wins, for it was given later.
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
    from terascope.diagnostic import StreamError
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


def wait_until(
    run: Run,
    name: str,
    is_it: Callable[[str | None], bool],
    timeout: float,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Status:
    """The first status that has the value.

    Raises:
        StreamError: the run is gone, or has not taken it in time.
    """
    from terascope.diagnostic import StreamError
    from terascope.operate.server import fetch_status

    until = clock() + timeout
    while True:
        status = fetch_status(run)
        if is_it(status.parameters.get(name)):
            return status
        if clock() >= until:
            raise StreamError(
                f"{run.set_name} has not taken {name} within {timeout:g} s; it is"
                f" {status.run.state}, and takes it with its next batch: see terascope status"
            )
        wait(BETWEEN_LOOKS)
