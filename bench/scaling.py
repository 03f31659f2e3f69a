"""`scaling`: time and memory against the size of the input.

Thirteen group-bys over flow records, from 20 M to 200 M of them at scale 1, each size in a fresh
process. Time should grow as the input does, and the memory of a worker should not grow at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.figure import Figure
from rich.console import RenderableType

from bench.compare import EachItsOwn, SameRows
from bench.experiment import Contender, Outcome, Prepared, Settings, Tell
from bench.peers.duckdb import DuckDb
from bench.peers.terascope import Terascope
from bench.queries78 import RECORDS, flow_pair, gsql, sql
from bench.workload import same_rows
from terascope.traffic.flow_records import ATTRIBUTES

SIZES = (1, 2, 5, 10)
CIRCLE = (*pairwise(ATTRIBUTES), (ATTRIBUTES[0], ATTRIBUTES[-1]))
"""Every attribute with the next: thirteen pairs."""


def size_of(contender: str) -> int:
    return int(contender.rpartition(" ")[2].removesuffix("x"))


def engine_of(contender: str) -> str:
    return contender.rpartition(" ")[0]


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for engine in dict.fromkeys(engine_of(o.contender) for o in outcomes):
        points = [
            (size_of(o.contender), o.median, o.worker_mb)
            for o in outcomes
            if engine_of(o.contender) == engine and o.median is not None
        ]
        if len(points) < 2:
            continue
        (small, fast, _), (large, slow, _) = points[0], points[-1]
        power = math.log(slow / fast) / math.log(large / small)
        line = f"{engine}: {large / small:g} times the input takes {slow / fast:.2f} times as long"
        line += f" (time grows with the input to the power {power:.2f})"
        workers = [f"{size}x {mb:,.0f} MB" for size, _, mb in points if mb is not None]
        lines.append(line + (f"; largest worker: {', '.join(workers)}" if workers else ""))
    return lines


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    """Time on the left, memory on the right."""
    seconds, memory = figure.subplots(1, 2)
    for engine in dict.fromkeys(engine_of(o.contender) for o in outcomes):
        mine = [o for o in outcomes if engine_of(o.contender) == engine and o.seconds]
        sizes = [size_of(o.contender) for o in mine]
        seconds.plot(sizes, [o.median for o in mine], "o-", label=engine)
        memory.plot(sizes, [o.peak_mb or 0 for o in mine], "o-", label=engine)
    seconds.set_ylabel("seconds, median")
    memory.set_ylabel("peak memory of all processes, MB")
    for axes in (seconds, memory):
        axes.set_xlabel("times the smallest input")
        axes.set_ylim(bottom=0)
        axes.legend()


@dataclass(frozen=True)
class Scaling:
    name: str = "scaling"
    title: str = "time and memory against the size of the input, 13 group-bys over flow records"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        contenders: list[Contender] = []
        checks: dict[str, SameRows] = {}
        inputs = []
        text, queries = gsql(CIRCLE), sql(CIRCLE)
        for size in SIZES:
            records = settings.count(RECORDS * size)
            tell(f"{records:,} flow records in {settings.data}")
            pair = flow_pair(settings, records, text, queries)
            inputs.append(pair.full.parquet)
            mine: tuple[Contender, ...] = (
                Terascope(pair, f"terascope {size}x"),
                DuckDb(pair, f"duckdb {size}x"),
            )
            check = same_rows(settings, mine[-1], pair.full)
            contenders += mine
            checks |= {contender.name: check for contender in mine}
        largest = settings.count(RECORDS * SIZES[-1])
        return Prepared(
            tuple(contenders),
            EachItsOwn(checks),
            (f"up to {largest:,} flow records of one hour, 13 queries",),
            inputs=tuple(inputs),
            alternating=False,
            conclude=conclude,
            draw=draw,
        )


EXPERIMENT = Scaling()
