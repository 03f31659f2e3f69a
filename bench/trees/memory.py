"""`fig4-memory`: hash operations of FPTAS and SLC over the memory (paper 4, VIII, figure 4).

The 78 pairs of thirteen attributes, over each stream. FPTAS: our trees, Algorithm 2, chained tables
with LRU. SLC: its trees, its shares, direct-mapped tables. Plans know one epoch of the stream, all
of it; what they predict stands beside what the low level counted, in the mean over all epochs.
Memory is in buckets, as in the paper, whatever an entry takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from rich.console import RenderableType

from bench.experiment import Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.trees.asked import WRONG, Asked, NothingWrong, new_table, shown
from bench.trees.execution import executed, statistics_of
from bench.trees.slc import SlcPlanner
from bench.trees.streams import NO_REAL, STREAMS, Stream, has_stream, stream_of
from terascope.kernels.tables.table_policies import Policy
from terascope.sharing.cost import Accounting
from terascope.sharing.model import Query, Statistics, Tree
from terascope.sharing.plan import Planned, Planner

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Allocation: TypeAlias = Literal["fptas", "slc"]

BUCKETS: Final = (
    *(10_000, 30_000, 100_000, 300_000, 500_000),
    *(1_000_000, 2_000_000, 3_200_000, 5_000_000),
)
EXECUTED: Final = (10_000, 100_000, 500_000, 2_000_000, 5_000_000)
QUICK: Final = (10_000, 500_000, 5_000_000)
BUCKET_BYTES: Final = 64
"""What every bucket counts for, in both plans."""
TABLES: Final[dict[Allocation, Policy]] = {"fptas": "lru", "slc": "direct_mapped"}
ALLOCATIONS: Final[tuple[Allocation, ...]] = ("fptas", "slc")
COLOURS: Final = {"fptas": "#c0392b", "slc": "#2c7fb8"}
PAPER: Final = (
    "paper 4, real NetFlow of a backbone: the plan of FPTAS stays the same beyond 1M buckets; the"
    " cost of SLC rises around 3.2M; at 5000K FPTAS takes 50% fewer hash operations"
)


def pair_queries(attributes: tuple[str, ...]) -> tuple[Query, ...]:
    return tuple(Query(frozenset(pair)) for pair in combinations(attributes, 2))


def planner_for(
    queries: tuple[Query, ...], statistics: Statistics, allocation: Allocation
) -> Planner | SlcPlanner:
    """Memory is given in buckets times BUCKET_BYTES."""
    table = TABLES[allocation]
    accounting = Accounting(table, bucket_bytes=BUCKET_BYTES)
    if allocation == "slc":
        return SlcPlanner(queries, statistics, accounting)
    return Planner(queries, statistics, table, accounting)


@dataclass(frozen=True)
class Planning:
    """One way to plan, over one stream."""

    allocation: Allocation
    stream: Stream
    buckets: tuple[int, ...] = BUCKETS
    executed: tuple[int, ...] = EXECUTED
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.allocation} {self.stream.name}"

    def start(self, cores: int) -> Asked:
        del cores
        return Asked(self.figures)

    def figures(self) -> Figures:
        statistics = statistics_of(self.stream)
        queries = pair_queries(self.stream.attributes)
        planner = planner_for(queries, statistics, self.allocation)
        plans = {n: planner.plan(n * BUCKET_BYTES) for n in self.buckets}
        found = {WRONG: 0.0, "rows": float(self.stream.records)}
        found["flat"] = len(queries) * statistics.tuples
        known: dict[Tree, tuple[float, float]] = {}
        for number, plan in plans.items():
            found |= told(plan, number)
            found[f"seconds {number}"] = plan.seconds
            if isinstance(planner, Planner):
                found[f"least {number}"] = planner.least(number * BUCKET_BYTES)
            elif number == self.buckets[-1]:
                found[f"untuned {number}"] = planner.untuned(number * BUCKET_BYTES)
            if number in self.executed:
                if plan.tree not in known:
                    made = executed(self.stream, plan.tree, TABLES[self.allocation], statistics)
                    known[plan.tree] = made.total, made.during
                    found[WRONG] += made.lost
                total, during = known[plan.tree]
                found[f"measured {number}"] = total
                found[f"measured during {number}"] = during
        if self.allocation == "fptas":
            found[WRONG] += broken_laws(list(plans.values()), statistics)
        return found


def told(plan: Planned, number: int) -> dict[str, float]:
    inner = [node for node in plan.tree.nodes if not node.is_query]
    return {
        f"predicted {number}": plan.cost.total,
        f"predicted during {number}": plan.cost.during,
        f"nodes {number}": float(len(inner)),
        f"used {number}": sum(node.buckets for node in inner),
    }


def broken_laws(plans: list[Planned], statistics: Statistics) -> int:
    """How often more memory costs more, or a plan changes that has all it wants."""
    broken = 0
    for less, more in pairwise(plans):
        broken += more.cost.total > less.cost.total * (1 + 1e-9)
        inner = [node for node in less.tree.nodes if not node.is_query]
        full = all(node.buckets >= statistics.groups(node.attributes) * 0.999 for node in inner)
        broken += full and more.cost.total == less.cost.total and more.tree != less.tree
    return broken


# ---- what it says --------------------------------------------------------------------------------


def by_stream(outcomes: list[Outcome]) -> dict[str, dict[str, Outcome]]:
    """Stream -> allocation -> what was measured."""
    found: dict[str, dict[str, Outcome]] = {}
    for outcome in outcomes:
        if outcome.figures:
            allocation, stream = outcome.contender.split(" ", 1)
            found.setdefault(stream, {})[allocation] = outcome
    return found


def numbers(outcome: Outcome, what: str) -> list[int]:
    """The buckets for which something was told."""
    names = (name.removeprefix(f"{what} ") for name in outcome.figures[0])
    return sorted(int(name) for name in names if name.isdigit())


def tables(outcomes: list[Outcome]) -> list[RenderableType]:
    found = by_stream(outcomes)
    parts: list[RenderableType] = [stream_table(name, both) for name, both in found.items()]
    return [*parts, *(saying(name, both) for name, both in found.items()), PAPER]


def stream_table(name: str, both: dict[str, Outcome]) -> RenderableType:
    columns = ["buckets"]
    for allocation in both:
        columns += [f"{allocation}: nodes", "used", "predicted M", "measured", "off"]
        columns += ["during: predicted", "measured"]
    table = new_table(f"{name}: million hash operations in an epoch", columns)
    for number in numbers(next(iter(both.values())), "predicted"):
        cells = [f"{number:,}"]
        for outcome in both.values():
            cells += cells_of(outcome, number)
        table.add_row(*cells)
    return table


def cells_of(outcome: Outcome, number: int) -> list[str]:
    error = off(outcome, number)
    return [
        shown(outcome, f"nodes {number}", "{:.0f}"),
        shown(outcome, f"used {number}", "{:,.0f}"),
        millions(outcome, f"predicted {number}"),
        millions(outcome, f"measured {number}"),
        "" if error is None else f"{error:+.1%}",
        millions(outcome, f"predicted during {number}"),
        millions(outcome, f"measured during {number}"),
    ]


def millions(outcome: Outcome, name: str) -> str:
    value = outcome.figure(name)
    return "" if value is None else f"{value / 1e6:.2f}"


def off(outcome: Outcome, number: int) -> float | None:
    """By how much more was predicted than measured."""
    said, seen = outcome.figure(f"predicted {number}"), outcome.figure(f"measured {number}")
    return None if said is None or seen is None else said / seen - 1


def saying(name: str, both: dict[str, Outcome]) -> str:
    parts = []
    for allocation, outcome in both.items():
        errors = [e for n in numbers(outcome, "measured") if (e := off(outcome, n)) is not None]
        worst = max(errors, key=abs, default=0.0)
        parts.append(f"{allocation} predicted within {abs(worst):.1%}")
    if len(both) == len(ALLOCATIONS):
        last = numbers(both["fptas"], "measured")[-1]
        ours, theirs = (both[each].figure(f"measured {last}") or 0.0 for each in ALLOCATIONS)
        parts.append(f"FPTAS takes {1 - ours / theirs:.0%} fewer at {last:,} buckets")
        untuned = both["slc"].figure(f"untuned {last}")
        if untuned:
            parts.append(f"{1 - ours / untuned:.0%} fewer than SLC predicts without a peak load")
    return f"{name}: {', '.join(parts)}"


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    found = by_stream(outcomes)
    figure.set_size_inches(11, 2.6 * max(1, len(found)) + 1)
    lines = max(1, len(found))
    figure.subplots_adjust(
        left=0.07, right=0.98, top=1 - 0.35 / lines, bottom=0.5 / lines, hspace=0.45, wspace=0.22
    )
    panels = figure.subplots(lines, 3, squeeze=False)
    for line, (name, both) in zip(panels, found.items(), strict=False):
        for allocation, outcome in both.items():
            draw_total(line[0], allocation, outcome)
            draw_parts(line[1 if allocation == "fptas" else 2], allocation, outcome)
        line[0].set_ylim(0, None)
        line[0].set_title(f"{name}: all", fontsize=8)
        line[0].legend(fontsize=6)


def draw_total(axes: Axes, allocation: str, outcome: Outcome) -> None:
    colour = COLOURS[allocation]
    for what, style in (("predicted", "-"), ("measured", "o")):
        places = numbers(outcome, what)
        costs = [(outcome.figure(f"{what} {n}") or 0) / 1e6 for n in places]
        axes.plot(places, costs, style, color=colour, label=f"{allocation}, {what}", markersize=4)
    axes.set(xscale="log", xlabel="buckets", ylabel="million hash operations")


def draw_parts(axes: Axes, allocation: str, outcome: Outcome) -> None:
    for what, style in (("predicted", "-"), ("measured", "o")):
        places = numbers(outcome, what)
        total = [(outcome.figure(f"{what} {n}") or 0) / 1e6 for n in places]
        during = [(outcome.figure(f"{what} during {n}") or 0) / 1e6 for n in places]
        end = [whole - part for whole, part in zip(total, during, strict=True)]
        axes.plot(places, during, style, color="#555555", label=f"during, {what}", markersize=4)
        axes.plot(places, end, style, color="#e67e22", label=f"end, {what}", markersize=4)
    axes.set(xscale="log", ylim=(0, None), xlabel="buckets")
    axes.set_title(f"{allocation}: during and at the end of the epoch", fontsize=8)
    axes.legend(fontsize=6)


@dataclass(frozen=True)
class Fig4Memory:
    name: str = "fig4-memory"
    title: str = "hash operations of 78 group-bys over the memory, FPTAS and SLC"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        there = [name for name in STREAMS if has_stream(name)]
        tell(f"streams {', '.join(there)} in {settings.data}")
        points = (QUICK, QUICK) if settings.quick else (BUCKETS, EXECUTED)
        streams = [stream_of(name, settings) for name in there]
        contenders: tuple[Contender, ...] = tuple(
            Planning(allocation, stream, *points)
            for stream in streams
            for allocation in ALLOCATIONS
        )
        absent = {} if has_stream("real") else {f"{a} real": NO_REAL for a in ALLOCATIONS}
        return Prepared(
            contenders,
            NothingWrong("tuples lost, or more memory that costs more"),
            tuple(f"{s.name}: {s.epochs} epochs, {s.records:,} records" for s in streams),
            absent=absent,
            alternating=False,
            runs=0,
            conclude=tables,
            draw=draw,
        )


EXPERIMENT = Fig4Memory()
