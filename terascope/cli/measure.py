"""The commands that measure: `terascope bench`, Terascope beside other engines on the same data and
cores, and `terascope calibrate`, what functions cost on this machine, for splitting queries.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from terascope.cli.command import QUIET, argument, errors, flag, switch, tell_line

if TYPE_CHECKING:
    from terascope.physical.statistics.calibrate import FunctionCost

NEEDED = ("duckdb", "matplotlib")
"""Packages no experiment can do without; a contender that is not installed is only left out."""
QUICK_SCALE = 0.01


def bench(
    name: str | None = argument("The experiment; without it, all are listed.", "NAME", None),
    scale: float = flag("Size of the data; 1 is the full experiment.", default=1.0, min=1e-4),
    runs: int | None = flag(
        "Counted runs of each contender; 3 unless the experiment says otherwise.", min=1
    ),
    quick: bool = switch("Less than a minute, to see that it works: not for figures.", "--quick"),
    minutes: float | None = flag("How long experiments last that watch a stream.", min=0.1),
    only: str | None = flag("Only these contenders; others by name.", metavar="A,B"),
    json: bool = switch("End with one line of JSON: what was measured.", "--json"),
    output: Path = flag(
        "Where NAME.csv, NAME.json and NAME.png go.", default=Path("bench-results"), metavar="DIR"
    ),
    data: Path | None = flag(
        "Where the data are kept; ~/.cache/terascope/bench by default.",
        metavar="DIR",
        envvar="TERASCOPE_BENCH_DATA",
    ),
    cores: int | None = flag("Cores for each contender; all by default.", min=1),
    seed: int = flag("Another number, other data.", default=1, min=0),
    seeds: int = flag(
        "How many random runs: those that crash kills, the query sets of fig7 and fig8.",
        default=50,
        min=1,
    ),
    patience: float = flag(
        "A contender whose first run takes longer is run only once.",
        default=60.0,
        metavar="SECONDS",
    ),
    keep: bool = switch("Keep the results that the contenders wrote.", "--keep"),
    quiet: bool = QUIET,
) -> None:
    """Measure Terascope beside other engines.

    Every contender runs in a process of its own on the same cores, in turn, several times, and
    their answers are compared. Prints a table, writes CSV, JSON and a picture.

    Examples:
        terascope bench
        terascope bench queries78 --scale 0.1
        terascope bench set50 --only terascope,duckdb --runs 5
        terascope bench decode --json | tail -1
    """
    check_packages()
    from bench.experiment import DATA_VERSION, Settings
    from bench.harness import Rules, run_experiment
    from bench.picture import write_picture
    from bench.registry import EXPERIMENTS, find_experiment
    from bench.report import as_json, show, write_csv, write_json
    from terascope.display import stdout_console

    if name is None:
        for each in EXPERIMENTS:
            typer.echo(f"{each:<15} {find_experiment(each).title}")
        return
    folder = data or Path.home() / ".cache" / "terascope" / "bench"
    console = errors()
    pinned = hasattr(os, "sched_getaffinity")
    allowed = len(os.sched_getaffinity(0)) if pinned else os.cpu_count()
    settings = Settings(
        scale * QUICK_SCALE if quick else scale,
        seed,
        cores or allowed or 1,
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


def check_packages() -> None:
    """The packages of the extra are there, or one clear line says how to get them."""
    lacking = [package for package in ("bench", *NEEDED) if find_spec(package) is None]
    if lacking:
        tell_line(
            "error",
            f"bench needs packages that are not installed ({', '.join(lacking)});"
            " get them with pip install 'terascope[bench]'",
        )
        raise typer.Exit(1)


def calibrate(
    output: Path | None = flag(
        "Where to keep the costs; in the user's cache folder by default.", "--output", "-o"
    ),
    quiet: bool = QUIET,
) -> None:
    """Measure what every function costs on this machine.

    Queries are split by these costs: what is cheap runs next to the source, what is expensive above
    it. They are kept in a small file, and used from then on; without it every function has an
    estimate. A configuration file can overrule any of them: [costs] str_regex_match = 50.

    Examples:
        terascope calibrate
        terascope calibrate --output costs.json
    """
    from terascope.analysis.costs import write_measured
    from terascope.cli.progress import counting
    from terascope.physical.statistics.calibrate import about_machine, builtin_scalars
    from terascope.physical.statistics.calibrate import calibrate as measure

    functions = builtin_scalars()
    with counting("measuring", len(functions), "functions", quiet) as counted:
        found = measure(functions, counted)
    path = write_measured({m.name: m.ns for m in found}, about_machine(), output)
    typer.echo(table(found), nl=False)
    typer.echo(f"{len(found)} costs kept in {path}")


def table(found: list[FunctionCost]) -> str:
    """The costs, cheapest first."""
    width = max(len(m.name) for m in found)
    lines = [f"{'function':<{width}}  {'ns a call':>9}  where"]
    for m in sorted(found, key=lambda m: (not m.native, m.ns)):
        where = "kernels" if m.native else "Python"
        lines.append(f"{m.name:<{width}}  {m.ns:>9.1f}  {where}")
    return "\n".join(lines) + "\n"
