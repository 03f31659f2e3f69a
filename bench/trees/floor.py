"""`tree-floor`: how far from the best our trees are when memory is no limit (paper 4, VIII).

The 78 pairs of thirteen attributes, as in `fig4-memory`, with all the memory that tables want: hash
operations of our plan, of the best tree that a search over all 8,192 sets of attributes finds, and
what no tree can be below (lattice.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import RenderableType

from bench.experiment import Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.trees.asked import Asked, new_table, shown
from bench.trees.execution import statistics_of
from bench.trees.lattice import Lattice
from bench.trees.memory import BUCKET_BYTES, BUCKETS, pair_queries, planner_for
from bench.trees.streams import NO_REAL, Stream, has_stream, stream_of

NAMES: Final = ("generated", "real")
PLAN, SEARCH, BOUND = "plan", "search", "bound"
OPERATIONS: Final = "operations"


@dataclass(frozen=True)
class Finding:
    """One way to find a number, for one stream."""

    how: str
    stream: Stream
    rounds: int
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.how} {self.stream.name}"

    def start(self, cores: int) -> Asked:
        del cores
        return Asked(self.figures)

    def figures(self) -> Figures:
        ways: dict[str, Callable[[], float]] = {
            PLAN: self.planned,
            SEARCH: lambda: self.lattice.searched(self.rounds // 100),
            BOUND: lambda: self.lattice.bound(self.rounds),
        }
        return {"rows": float(self.stream.records), OPERATIONS: ways[self.how]()}

    @property
    def lattice(self) -> Lattice:
        return Lattice.of(tuple(sorted(self.stream.attributes)), statistics_of(self.stream))

    def planned(self) -> float:
        statistics = statistics_of(self.stream)
        planner = planner_for(pair_queries(self.stream.attributes), statistics, "fptas")
        return planner.plan(BUCKETS[-1] * BUCKET_BYTES).cost.total


@dataclass(frozen=True)
class NothingBelow:
    """No tree takes fewer operations than the bound of its stream."""

    def look(self, outcome: Outcome, output: Path) -> None:
        del output
        outcome.rows = round(outcome.figures[0]["rows"])

    def judge(self, outcomes: list[Outcome]) -> None:
        found = {o.contender: o.figure(OPERATIONS) for o in outcomes if o.figures}
        for outcome in outcomes:
            _, _, stream = outcome.contender.partition(" ")
            own, bound = found.get(outcome.contender), found.get(f"{BOUND} {stream}")
            if own is not None and bound is not None:
                outcome.checked = own >= bound
                outcome.remark = "" if outcome.checked else "below what no tree is below"


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    found = {outcome.contender: outcome for outcome in outcomes if outcome.figures}
    table = new_table("hash operations in an epoch", ["stream", PLAN, SEARCH, BOUND])
    for name in NAMES:
        row = [found.get(f"{how} {name}") for how in (PLAN, SEARCH, BOUND)]
        if all(row):
            table.add_row(name, *(shown(one, OPERATIONS, "{:,.0f}") for one in row if one))
    return [table]


@dataclass(frozen=True)
class TreeFloor:
    name: str = "tree-floor"
    title: str = "78 group-bys without a limit of memory: our tree, a search, and a lower bound"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        there = [name for name in NAMES if has_stream(name)]
        tell(f"streams {', '.join(there)} in {settings.data}")
        rounds = 100 if settings.quick else 3000
        streams = [stream_of(name, settings) for name in there]
        ways = (PLAN, SEARCH, BOUND)
        contenders: tuple[Contender, ...] = tuple(
            Finding(how, stream, rounds) for stream in streams for how in ways
        )
        return Prepared(
            contenders,
            NothingBelow(),
            tuple(f"{s.name}: {s.records:,} records" for s in streams),
            absent={} if has_stream("real") else {f"{how} real": NO_REAL for how in ways},
            alternating=False,
            runs=0,
            conclude=conclude,
        )


EXPERIMENT = TreeFloor()
