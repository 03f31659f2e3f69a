"""The command line: `terascope check | fmt | explain | stats | advise | run | generate | split |
demo | bench | calibrate`, and for a set that is running `terascope status | why | tail | set`.

In: flags. Out: results on stdout; progress, warnings and mistakes on stderr; the exit codes 0
(done), 1 (the query set or its input is wrong), 2 (usage), 130 (interrupted). What is slow to
import is imported when a command needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter

import typer

from terascope.cli.advise import advise
from terascope.cli.command import as_command, help_texts
from terascope.cli.measure import bench, calibrate
from terascope.cli.query_sets import check, explain, fmt, stats
from terascope.cli.run import run
from terascope.cli.running_set import set_, status, tail, why
from terascope.cli.split import split
from terascope.cli.traffic import demo, generate, profile_flags
from terascope.version import VERSION

app = typer.Typer(
    name="terascope",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def add(
    command: Callable[..., None], panel: str | None = None, more: Sequence[Parameter] = ()
) -> None:
    """A command by the name of its function; `set_` leaves Python its own set."""
    name = command.__name__.removesuffix("_")
    help, epilog = help_texts(command)
    app.command(name, help=help, epilog=epilog, rich_help_panel=panel)(as_command(command, more))


for batch_command in (check, fmt, explain, stats, advise, run):
    add(batch_command)
add(generate, more=profile_flags())
for other_command in (split, demo, bench, calibrate):
    add(other_command)
for stream_command in (status, why, tail, set_):
    add(stream_command, "A running set")


def print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"terascope {VERSION}")
        raise typer.Exit


def main(
    version: bool = typer.Option(
        False, "--version", callback=print_version, is_eager=True, help="Say which version."
    ),
) -> None:
    """Sets of GSQL queries over packet traces and tables, computed by Apache Spark.

    Examples:
        terascope demo
        terascope generate trace.pcap --duration 120 --scenario syn_flood
        terascope run flows.gsql --source eth0=pcap:trace.pcap
    """


main_help, main_epilog = help_texts(main)
app.callback(help=main_help, epilog=main_epilog)(main)
