"""The command line: `terascope check | fmt | explain | stats | run | generate | demo | bench |
calibrate`, and for a set that is running `terascope status | why | tail | set`.

In: flags. Out: results on stdout; progress, warnings and mistakes on stderr; the exit codes 0
(done), 1 (the query set or its input is wrong), 2 (usage), 130 (interrupted). Every command is a
module of its name; what is slow to import is imported when a command needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Annotated

import typer

from terascope.cli.bench import bench
from terascope.cli.calibrate import calibrate
from terascope.cli.check import check
from terascope.cli.command import as_command
from terascope.cli.demo import demo
from terascope.cli.explain import explain
from terascope.cli.fmt import fmt
from terascope.cli.generate import generate, shape_flags
from terascope.cli.run import run
from terascope.cli.set import set_
from terascope.cli.stats import stats
from terascope.cli.status import status
from terascope.cli.tail import tail
from terascope.cli.why import why
from terascope.cli.words import EXAMPLES, help_text
from terascope.version import VERSION

app = typer.Typer(
    name="terascope",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES["terascope"],
)


def add(
    command: Callable[..., None], panel: str | None = None, more: Sequence[Parameter] = ()
) -> None:
    """A command by the name of its function; `set_` leaves Python its own set."""
    name = command.__name__.removesuffix("_")
    help = help_text(command)
    app.command(name, help=help, epilog=EXAMPLES[name], rich_help_panel=panel)(
        as_command(command, more)
    )


for batch_command in (check, fmt, explain, stats, run):
    add(batch_command)
add(generate, more=shape_flags())
for other_command in (demo, bench, calibrate):
    add(other_command)
for stream_command in (status, why, tail, set_):
    add(stream_command, "A running set")


def print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"terascope {VERSION}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Say which version."),
    ] = False,
) -> None:
    """Sets of GSQL queries over packet traces and tables, computed by Apache Spark."""
