"""`fig5-speedup`: by how much FPTAS needs fewer hash operations than SLC (paper 4, figure 5).

20, 30, ... 78 of the pair queries, three random sets of each number, at 50K, 500K and 5000K
buckets, over generated flow records. Planned costs are those of both plans' own models; the first
set of some numbers is executed, too. Plans know a quarter of an epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from statistics import mean
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType

from bench.experiment import Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.trees.asked import WRONG, Asked, NothingWrong, new_table
from bench.trees.execution import executed, statistics_of
from bench.trees.memory import ALLOCATIONS, BUCKET_BYTES, TABLES, pair_queries, planner_for
from bench.trees.streams import Stream, stream_of
from terascope.sharing.model import Query

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS: Final = (20, 30, 40, 50, 60, 70, 78)
QUICK: Final = (20, 50)
BUCKETS: Final = (50_000, 500_000, 5_000_000)
SETS: Final = 3
EXECUTED: Final = (20, 78)
KNOWN_SHARE: Final = 0.25
PAPER: Final = "paper 4: 50% at 5000K buckets (its text; the curves of its figure are not numbers)"
COLOURS: Final = dict(zip(BUCKETS, ("#41ab5d", "#2c7fb8", "#c0392b"), strict=True))


@dataclass(frozen=True)
class SomeQueries:
    """So many of the pair queries."""

    number: int
    stream: Stream
    seed: int
    sets: int = SETS
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.number} queries"

    def start(self, cores: int) -> Asked:
        del cores
        return Asked(self.figures)

    def query_sets(self) -> list[tuple[Query, ...]]:
        """All different, where there is more than one."""
        queries = pair_queries(self.stream.attributes)
        if self.number == len(queries):
            return [queries]
        dice = Random(f"{self.seed} {self.number}")
        return [tuple(dice.sample(queries, self.number)) for _ in range(self.sets)]

    def figures(self) -> Figures:
        statistics = statistics_of(self.stream, KNOWN_SHARE)
        found = {WRONG: 0.0, "rows": float(self.stream.records)}
        for at, queries in enumerate(self.query_sets()):
            for allocation in ALLOCATIONS:
                planner = planner_for(queries, statistics, allocation)
                for number in BUCKETS:
                    plan = planner.plan(number * BUCKET_BYTES)
                    found[cost(allocation, "planned", number, at)] = plan.cost.total
                    if at == 0 and self.number in EXECUTED:
                        kind = TABLES[allocation]
                        made = executed(self.stream, plan.tree, kind, statistics)
                        found[cost(allocation, "measured", number, at)] = made.total
                        found[WRONG] += made.lost
        return found


def cost(allocation: str, what: str, buckets: int, query_set: int) -> str:
    return f"{allocation} {what} {buckets} set {query_set}"


def reductions(outcome: Outcome, what: str, buckets: int) -> list[float]:
    """The part of SLC's hash operations that FPTAS does without, for each set."""
    found = []
    for at in range(SETS):
        ours, theirs = (outcome.figure(cost(a, what, buckets, at)) for a in ALLOCATIONS)
        if ours is not None and theirs is not None:
            found.append(1 - ours / theirs)
    return found


def tables(outcomes: list[Outcome]) -> list[RenderableType]:
    columns = ["queries"]
    for number in BUCKETS:
        columns += [f"{number // 1000}K: planned", "from", "to", "measured"]
    table = new_table("hash operations that FPTAS does without, of those of SLC", columns)
    for outcome in outcomes:
        if outcome.figures:
            cells = [outcome.contender.split()[0]]
            for number in BUCKETS:
                planned, seen = (reductions(outcome, w, number) for w in ("planned", "measured"))
                cells += [f"{mean(planned):.0%}", f"{min(planned):.0%}", f"{max(planned):.0%}"]
                cells.append(f"{seen[0]:.0%}" if seen else "")
            table.add_row(*cells)
    return [table, PAPER]


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    axes = figure.subplots()
    figure.subplots_adjust(left=0.1, right=0.97, top=0.88, bottom=0.24)
    measured = [o for o in outcomes if o.figures]
    places = [int(o.contender.split()[0]) for o in measured]
    for number in BUCKETS:
        colour = COLOURS[number]
        means = [100 * mean(reductions(o, "planned", number)) for o in measured]
        axes.plot(places, means, "-", color=colour, label=f"{number // 1000}K buckets, planned")
        for place, outcome in zip(places, measured, strict=True):
            seen = [100 * part for part in reductions(outcome, "measured", number)]
            axes.plot([place] * len(seen), seen, "o", color=colour)
    axes.axhline(50, linestyle=":", color="black", label="paper 4 at 5000K")
    axes.set(xlabel="queries; dots: measured", ylabel="fewer hash operations than SLC, %")
    axes.set_ylim(0, 100)
    axes.legend(fontsize=7)


@dataclass(frozen=True)
class Fig5Speedup:
    name: str = "fig5-speedup"
    title: str = "hash operations that FPTAS saves against SLC, over the number of queries"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        tell(f"generated flow records in {settings.data}")
        stream = stream_of("generated", settings)
        numbers, sets = (QUICK, 1) if settings.quick else (NUMBERS, SETS)
        contenders: tuple[Contender, ...] = tuple(
            SomeQueries(number, stream, settings.seed, sets) for number in numbers
        )
        return Prepared(
            contenders,
            NothingWrong("tuples lost"),
            (f"{stream.epochs} epochs, {stream.records:,} generated flow records",),
            alternating=False,
            runs=0,
            conclude=tables,
            draw=draw,
        )


EXPERIMENT = Fig5Speedup()
