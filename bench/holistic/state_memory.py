"""`state-memory`: a million groups with both sketches, with little memory.

One percentile and the five heaviest hitters of a million sources in one epoch: 6.2 M packets at
scale 1. The local engine runs in a process of its own that begins anew for each run, Spark runs two
tasks. Counted is the largest process that runs tasks: the pages it has for itself, Python and its
libraries among them. It may have its budget and 300 MB.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType

from bench.budget import BESIDE_MB, conclude
from bench.experiment import BenchError, Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.holistic.generated import Generated
from bench.holistic.gsql_costs import PROTOCOL
from bench.peers.terascope import Terascope
from bench.workload import Pair, Queries, Workload, same_rows

if TYPE_CHECKING:
    from bench.experiment import Running

GROUPS: Final = 1_000_000
VALUES: Final = 50_000
INTERVALS: Final = 2
BUDGETS_MB: Final = (64, 256, 512, 1024)
ALL_MB: Final = 16_384
"""More than all groups need."""
QUERY: Final = f"""{PROTOCOL}
QUERY sources:
SELECT epoch, srcIP, approx_percentile(len, 95) AS p, heavy_hitters(destIP, len, 5) AS h
FROM packets.PKT GROUP BY tb/{INTERVALS} AS epoch, srcIP;
"""


@dataclass(frozen=True)
class LocalProcess:
    """The command line with the local engine, a new process for each run."""

    pair: Pair
    name: str
    memory_bytes: int
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Running:
        del cores
        return Queries(self.pair, self._answer)

    def _answer(self, workload: Workload, output: Path) -> Figures:
        words = [
            sys.executable, "-m", "terascope", "run", str(workload.gsql), "--engine", "local",
            "--source", workload.source, "--output", str(output), "--format", "parquet", "--parts",
            "--quiet",
        ]  # fmt: skip
        budget = {"TERASCOPE_MEMORY_BYTES": str(self.memory_bytes)}
        ran = subprocess.run(
            words, capture_output=True, text=True, check=False, env={**os.environ, **budget}
        )
        if ran.returncode:
            raise BenchError(f"{self.name} failed: {ran.stderr.strip()}")
        return {}


def workload_of(settings: Settings, data: Generated) -> Workload:
    parquet = data.path(settings)
    gsql = settings.data / "state-memory.gsql"
    gsql.write_text(QUERY, encoding="utf-8")
    return Workload(f"packets=parquet:{parquet}", gsql, "packets", parquet, {})


def within(outcomes: list[Outcome]) -> list[RenderableType]:
    return conclude([one for one in outcomes if one.contender.endswith(" MB")])


@dataclass(frozen=True)
class StateMemory:
    name: str = "state-memory"
    title: str = f"a million groups with both sketches, within their memory and {BESIDE_MB} MB"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        data = Generated(settings.count(GROUPS), VALUES, intervals=INTERVALS)
        tell(str(data))
        full = workload_of(settings, data)
        small = workload_of(replace(settings, scale=0.01), Generated(100, 100))
        pair = Pair(full, small)
        makers: dict[str, Callable[[str, int], Contender]] = {
            "local": lambda name, size: LocalProcess(pair, name, size),
            "spark": lambda name, size: Terascope(pair, name, memory_bytes=size),
        }
        contenders = tuple(
            make(f"{engine} {mb} MB", mb << 20)
            for engine, make in makers.items()
            for mb in BUDGETS_MB
        )
        reference = LocalProcess(pair, "everything in memory", ALL_MB << 20)
        return Prepared(
            contenders,
            same_rows(settings, reference, full),
            (f"{data}, {INTERVALS} intervals in one epoch",),
            inputs=(full.parquet,),
            alternating=False,
            conclude=within,
        )


EXPERIMENT = StateMemory()
