"""`terascope bench`: measure Terascope beside other engines, on the same data and cores."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from terascope.cli.command import Quiet

NEEDED = ("duckdb", "matplotlib")
"""Packages no experiment can do without; a contender that is not installed is only left out."""
QUICK_SCALE = 0.01


def bench(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The experiment; without it, all are listed."),
    ] = None,
    scale: Annotated[
        float, typer.Option(help="Size of the data; 1 is the full experiment.", min=1e-4)
    ] = 1.0,
    runs: Annotated[
        int | None,
        typer.Option(
            help="Counted runs of each contender; 3 unless the experiment says otherwise.", min=1
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Less than a minute, to see that it works: not for figures."),
    ] = False,
    minutes: Annotated[
        float | None, typer.Option(help="How long experiments last that watch a stream.", min=0.1)
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only these contenders; others by name.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="End with one line of JSON: what was measured.")
    ] = False,
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Where NAME.csv, NAME.json and NAME.png go.")
    ] = Path("bench-results"),
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the data are kept; ~/.cache/terascope/bench by default.",
            envvar="TERASCOPE_BENCH_DATA",
        ),
    ] = None,
    cores: Annotated[
        int | None, typer.Option(help="Cores for each contender; all by default.", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Another number, other data.", min=0)] = 1,
    seeds: Annotated[
        int,
        typer.Option(
            help="How many random runs: those that crash kills, the query sets of fig7 and fig8.",
            min=1,
        ),
    ] = 50,
    patience: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="A contender whose first run takes longer is run only once."
        ),
    ] = 60.0,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the results that the contenders wrote.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Measure Terascope beside other engines.

    Every contender runs in a process of its own on the same cores, in turn, several times, and
    their answers are compared. Prints a table, writes CSV, JSON and a picture.
    """
    check_packages()
    from bench.experiment import DATA_VERSION, Settings
    from bench.harness import Rules, run_experiment
    from bench.picture import write_picture
    from bench.registry import EXPERIMENTS, find_experiment
    from bench.report import as_json, show, write_csv, write_json
    from terascope.cli.mistakes import errors
    from terascope.display import stdout_console

    if name is None:
        for each in EXPERIMENTS:
            typer.echo(f"{each:<15} {find_experiment(each).title}")
        return
    folder = data or Path.home() / ".cache" / "terascope" / "bench"
    console = errors()
    settings = Settings(
        scale * QUICK_SCALE if quick else scale,
        seed,
        cores or available_cores(),
        folder.absolute() / f"v{DATA_VERSION}",
        quick,
        minutes,
        seeds,
    )
    rules = Rules(runs, patience, tuple(filter(None, (only or "").split(","))), keep)
    report = run_experiment(
        find_experiment(name),
        settings,
        rules,
        settings.data / "work",
        (lambda line: None) if quiet else (lambda line: console.print(line, style="dim")),
    )
    output.mkdir(parents=True, exist_ok=True)
    write_csv(report, output / f"{name}.csv")
    write_json(report, output / f"{name}.json")
    write_picture(report, output / f"{name}.png")
    show(report, stdout_console())
    if json:
        typer.echo(as_json(report.outcomes))


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_packages() -> None:
    """The packages of the extra are there, or one clear line says how to get them."""
    from terascope.cli.mistakes import tell_line

    lacking = [package for package in ("bench", *NEEDED) if find_spec(package) is None]
    if lacking:
        tell_line(
            "error",
            f"bench needs packages that are not installed ({', '.join(lacking)});"
            " get them with pip install 'terascope[bench]'",
        )
        raise typer.Exit(1)
