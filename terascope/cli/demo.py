"""`terascope demo`: two minutes of traffic with something in it, and ten queries that find it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    seed: Annotated[int, typer.Option(help="Another number, other traffic.", min=0)] = 7,
    victim: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The attacked host.")
    ] = None,
    start: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="When it begins, after the start.", min=0),
    ] = None,
    scenario: Annotated[
        str, typer.Option(help="quiet, syn_flood, port_scan, amplification or flash_crowd.")
    ] = "syn_flood",
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the trace, the queries and the results here."),
    ] = None,
) -> None:
    """Generate traffic with an attack in it, and find the attack.

    Two minutes of traffic, about ten queries of the papers over it, and at the end the attacked
    host and the time, with the tables they followed from.
    """
    from terascope.cli.generate import checked, scenario_name
    from terascope.demo import run_demo

    name = scenario_name(scenario)
    checked(lambda: run_demo(seed=seed, victim=victim, start=start, scenario=name, keep=keep))
