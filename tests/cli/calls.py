"""Calling the command line in this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from terascope.cli import app
from terascope.traffic.profile import Profile, Scenario
from terascope.traffic.trace import generate

FLOWS = """\
QUERY flows:
SELECT tb, srcIP, destIP, count(*) AS packets, sum(len) AS bytes
FROM TCP
GROUP BY time/10 AS tb, srcIP, destIP;

QUERY heavy:
SELECT tb, srcIP, max(packets) AS most
FROM flows
GROUP BY tb, srcIP
HAVING max(packets) > $threshold;
"""


@dataclass(frozen=True)
class Called:
    code: int
    out: str
    err: str


ENVIRONMENT = {"COLUMNS": "100", "TERASCOPE_KERNELS": "numpy"}
"""Small data need not wait for machine code."""


def call(*arguments: str | Path, stdin: str | None = None) -> Called:
    result = CliRunner().invoke(
        app, [str(a) for a in arguments], input=stdin, prog_name="terascope", env=ENVIRONMENT
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Called(result.exit_code, result.stdout, result.stderr)


def small_trace(path: Path, packets: int = 1500) -> Path:
    """Some seconds of traffic with a flood in it."""
    flood = Scenario("syn_flood", victim="10.9.9.9")
    generate(Profile(packets=packets, rate=50.0, seed=3, scenarios=(flood,)), path)
    return path
