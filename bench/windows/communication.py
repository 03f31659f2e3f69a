"""`fig7-communication`: tuples streamed from the lower level to the upper one (paper 0, 6.2).

Full push-down sends the results of every query, partial push-down the groups of the common slices,
paired or paned, pull-up the tuples. Means over the query sets of each size. The numbers are counted
(counts.py); that they are what the low level really sends is checked with the first set of each
size, which our engine runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from rich.console import RenderableType

from bench.experiment import Figures, Outcome, Prepared, Settings, Tell
from bench.low_run import Work, run_job
from bench.windows.counts import FULL, PAIRED, PANED, PLANS, PULL_UP, Counted
from bench.windows.job import plan_windows
from bench.windows.sides import (
    SIDES,
    draw_sides,
    measured_lines,
    point,
    side_tables,
)
from bench.windows.snort import (
    EXPONENT,
    QUICK_SETS,
    SIZES,
    SOURCES,
    TUPLES,
    query_set,
    query_sets,
    syn_file,
    syns,
)
from terascope.sharing.slices import Periodic
from terascope.sharing.windows import Mode

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST = "first.json"
PAPER: dict[tuple[str, bool], dict[int, float]] = {
    (FULL, False): {2: 118, 32: 1_898},
    (PAIRED, False): {2: 177, 32: 1_920},
    (PANED, False): {32: 86_278},
    (PULL_UP, False): {32: 523_761},
    (FULL, True): {4: 257_675, 8: 512_535},
    (PAIRED, True): {2: 86_472, 32: 183_910},
    (PANED, True): {4: 455_401},
    (PULL_UP, True): {8: 523_761},
}
"""What the paper says in words. It plots no paned or raw line when ungrouped: one number each."""


@dataclass(frozen=True)
class PlanContender:
    """A way to place the aggregation."""

    plan: str
    sizes: tuple[int, ...]
    sets: int
    tuples: int
    seed: int
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.plan

    def start(self, cores: int) -> PlanCounting:
        del cores  # counting takes one
        return PlanCounting(self)


class PlanCounting:
    def __init__(self, contender: PlanContender) -> None:
        self._contender = contender
        stream = syns(contender.seed, contender.tuples)
        self._sides = {side: Counted(stream, side) for side in SIDES}

    def warm(self) -> None:
        self._sides[True].sent(self._contender.plan, query_set(2, 0))

    def run(self, output: Path) -> Figures:
        """Means over all sets; what was counted of the first of each size goes to a file."""
        of, means, first = self._contender, {}, {}
        for n in of.sizes:
            sets = query_sets(n, of.sets, of.seed)
            for side, counted in self._sides.items():
                sent = [counted.sent(of.plan, windows) for windows in sets]
                means[point(n, side)] = fmean(sent)
                first[point(n, side)] = sent[0]
        (output / FIRST).write_text(json.dumps(first), encoding="utf-8")
        return means

    def close(self) -> None:
        pass


@dataclass
class AsTheEngineSends:
    """What was counted of the first set of each size, against what our engine sends for it."""

    syns: Path
    sizes: tuple[int, ...]
    seed: int
    seen: dict[str, dict[str, int]] = field(default_factory=dict)

    def look(self, outcome: Outcome, output: Path) -> None:
        self.seen[outcome.contender] = json.loads((output / FIRST).read_text(encoding="utf-8"))

    def judge(self, outcomes: list[Outcome]) -> None:
        expected: dict[str, dict[str, int]] = {plan: {} for plan in PLANS}
        for n in self.sizes:
            for side in SIDES:
                for plan, number in self.engine_sends(n, side).items():
                    expected[plan][point(n, side)] = number
        for outcome in outcomes:
            if outcome.contender not in self.seen:
                continue
            counted, sent = self.seen[outcome.contender], expected[outcome.contender]
            differs = [name for name in sent if counted[name] != sent[name]]
            outcome.checked = not differs
            if differs:
                name = differs[0]
                outcome.remark = f"{name}: {counted[name]:,} counted, {sent[name]:,} sent"

    def engine_sends(self, n: int, side: bool) -> dict[str, int]:
        (windows,) = query_sets(n, 1, self.seed)
        paired, paned = self.work(windows, side, "paired"), self.work(windows, side, "paned")
        return {
            FULL: paired.rows,
            PAIRED: paired.partials,
            PANED: paned.partials,
            PULL_UP: paired.tuples,
        }

    def work(self, windows: tuple[Periodic, ...], side: bool, mode: Mode) -> Work:
        return run_job(plan_windows(self.syns, windows, side, mode))


LINES = {plan: (plan, "") for plan in PLANS}


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    lines = measured_lines(outcomes, LINES)
    return side_tables(lines, PAPER, "tuples sent up", "{:,.0f}")


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    draw_sides(figure, measured_lines(outcomes, LINES), PAPER, "tuples sent up (x: the paper's)")


@dataclass(frozen=True)
class Communication:
    name: str = "fig7-communication"
    title: str = "tuples sent from the lower to the upper level: full and partial push-down"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        sets = min(settings.seeds, QUICK_SETS) if settings.quick else settings.seeds
        sizes = (SIZES[0], SIZES[-1]) if settings.quick else SIZES
        tuples = settings.count(TUPLES)
        tell(f"{tuples:,} SYNs in {settings.data}; {sets} sets of each size")
        path = syn_file(settings.data, settings.seed, tuples)
        return Prepared(
            contenders=tuple(
                PlanContender(plan, sizes, sets, tuples, settings.seed) for plan in PLANS
            ),
            check=AsTheEngineSends(path, sizes, settings.seed),
            about=(
                f"{tuples:,} SYNs of 24 hours, {SOURCES:,} sources with Zipf exponent {EXPONENT};"
                f" means over {sets} sets of each size; the time is that of counting",
            ),
            runs=0,
            alternating=False,
            conclude=conclude,
            draw=draw,
        )


EXPERIMENT = Communication()
