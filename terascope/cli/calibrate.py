"""`terascope calibrate`: what functions cost on this machine, for splitting queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from terascope.cli.command import Quiet

if TYPE_CHECKING:
    from terascope.physical.statistics.calibrate import FunctionCost


def calibrate(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to keep the costs; in the user's cache folder by default.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Measure what every function costs on this machine.

    Queries are split by these costs: what is cheap runs next to the source, what is expensive above
    it. They are kept in a small file, and used from then on; without it every function has an
    estimate. A configuration file can overrule any of them: [costs] str_regex_match = 50.
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
