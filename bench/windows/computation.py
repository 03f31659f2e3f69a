"""`fig8-computation`: the time of a query set, shared and unshared (paper 0, section 6.3).

Contenders are the ways to share slices: every query its own paired slices, all queries the same
paned, or the same paired ones. Each runs the sets in our own engine without Spark (low_run.py);
figures are means of CPU seconds over the sets of each size. The common sub-query alone is the low
level's part of the shared paired plan. Rows are checked to be the same for all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from rich.console import RenderableType

from bench.experiment import Figures, Outcome, Prepared, Settings, Tell
from bench.low_run import run_job
from bench.windows.counts import FULL, Counted
from bench.windows.job import plan_windows
from bench.windows.sides import SIDES, draw_sides, measured_lines, point, side_tables
from bench.windows.snort import (
    EXPONENT,
    SIZES,
    SOURCES,
    TUPLES,
    query_set,
    query_sets,
    syn_file,
    syns,
)
from terascope.sharing.windows import Mode

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETS, PANED_SETS = 10, 2
"""Panes take many times as long."""
ROWS = "rows.json"
UNSHARED, PANED, PAIRED = "unshared", "shared paned", "shared paired"
SUB_QUERY = "common sub-query"
MODES: dict[str, Mode] = {PAIRED: "paired", PANED: "paned", UNSHARED: "unshared"}
PAPER: dict[tuple[str, bool], dict[int, float]] = {
    (PAIRED, False): {2: 11, 32: 39},
    (PANED, False): {2: 13, 32: 100},
    (UNSHARED, False): {2: 17, 32: 241},
    (SUB_QUERY, False): {2: 8.9, 32: 9.1},
    (PAIRED, True): {2: 33, 32: 505},
    (PANED, True): {2: 94, 32: 1_120},
    (UNSHARED, True): {2: 53, 32: 1_013},
    (SUB_QUERY, True): {2: 18, 32: 23},
}
"""Seconds, on a machine of 2005."""
TARGETS = {False: 6.0, True: 2.0}
"""How many times as long as shared paired the largest sets should take unshared."""
LOW = "low_"


@dataclass(frozen=True)
class SharingContender:
    """A way to share slices."""

    name: str
    syns: Path
    sizes: tuple[int, ...]
    sets: int
    seed: int
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> SharingRunning:
        del cores  # the work of one process
        return SharingRunning(self)


class SharingRunning:
    def __init__(self, contender: SharingContender) -> None:
        self._contender = contender
        self._mode = MODES[contender.name]

    def warm(self) -> None:
        """Compiles the kernels of both sides."""
        for side in SIDES:
            run_job(plan_windows(self._contender.syns, query_set(2, 0), side, self._mode))

    def run(self, output: Path) -> Figures:
        of = self._contender
        means: dict[str, float] = {}
        rows: dict[str, list[int]] = {}
        for n in of.sizes:
            sets = query_sets(n, of.sets, of.seed)
            for side in SIDES:
                jobs = (plan_windows(of.syns, windows, side, self._mode) for windows in sets)
                works = [run_job(job) for job in jobs]
                means[point(n, side)] = fmean(work.seconds for work in works)
                means[point(n, side, LOW)] = fmean(work.low_seconds for work in works)
                rows[point(n, side)] = [work.rows for work in works]
        (output / ROWS).write_text(json.dumps(rows), encoding="utf-8")
        return means

    def close(self) -> None:
        pass


@dataclass
class AsCounted:
    """All have as many rows as the windows have groups."""

    sizes: tuple[int, ...]
    tuples: int
    seed: int
    seen: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def look(self, outcome: Outcome, output: Path) -> None:
        self.seen[outcome.contender] = json.loads((output / ROWS).read_text(encoding="utf-8"))
        outcome.rows = sum(sum(some) for some in self.seen[outcome.contender].values())

    def judge(self, outcomes: list[Outcome]) -> None:
        stream = syns(self.seed, self.tuples)
        for n in self.sizes:
            for side in SIDES:
                self._compare(Counted(stream, side), n, outcomes)

    def _compare(self, counted: Counted, n: int, outcomes: list[Outcome]) -> None:
        name = point(n, counted.grouped)
        most = max((len(rows[name]) for rows in self.seen.values()), default=0)
        expected = [counted.sent(FULL, windows) for windows in query_sets(n, most, self.seed)]
        for outcome in outcomes:
            found = self.seen.get(outcome.contender, {}).get(name)
            if found is None or outcome.remark:
                continue
            outcome.checked = found == expected[: len(found)]
            if not outcome.checked:
                outcome.remark = f"{name}: {found} rows, not {expected[: len(found)]}"


LINES = {
    PAIRED: (PAIRED, ""),
    PANED: (PANED, ""),
    UNSHARED: (UNSHARED, ""),
    SUB_QUERY: (PAIRED, LOW),
}


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    lines = measured_lines(outcomes, LINES)
    shown: list[RenderableType] = [*side_tables(lines, PAPER, "CPU seconds", "{:.3f}")]
    for side, target in TARGETS.items():
        shared = lines.get((PAIRED, side), {}).get(SIZES[-1])
        unshared = lines.get((UNSHARED, side), {}).get(SIZES[-1])
        if shared and unshared:
            said = PAPER[UNSHARED, side][SIZES[-1]] / PAPER[PAIRED, side][SIZES[-1]]
            shown.append(
                f"{SIZES[-1]} queries, {SIDES[side]}: unshared takes {unshared / shared:.1f} times"
                f" as long as shared paired (the paper: {said:.1f}; the target: {target:.0f})"
            )
    return shown


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    draw_sides(figure, measured_lines(outcomes, LINES), PAPER, "seconds (x: the paper's, 2005)")


@dataclass(frozen=True)
class Computation:
    name: str = "fig8-computation"
    title: str = "time of windows that share slices, paired or paned, and of those that do not"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        sets = 1 if settings.quick else min(settings.seeds, SETS)
        paned = min(sets, PANED_SETS)
        sizes = (SIZES[0], SIZES[-1]) if settings.quick else SIZES
        tuples = settings.count(TUPLES)
        tell(f"{tuples:,} SYNs in {settings.data}; {sets} sets of each size, {paned} of panes")
        path = syn_file(settings.data, settings.seed, tuples)
        contenders = tuple(
            SharingContender(name, path, sizes, paned if name == PANED else sets, settings.seed)
            for name in MODES
        )
        return Prepared(
            contenders,
            AsCounted(sizes, tuples, settings.seed),
            about=(
                f"{tuples:,} SYNs of 24 hours, {SOURCES:,} sources with Zipf exponent {EXPONENT};"
                f" means over {sets} sets of each size, {paned} of panes",
            ),
            inputs=(path,),
            runs=0,
            alternating=False,
            conclude=conclude,
            draw=draw,
        )


EXPERIMENT = Computation()
