"""`bounds`: how often the declared error bounds of approximate aggregates hold.

Random groups of 1 to 20,000 tuples, of many distributions and orders, are merged over random trees
of depth 1 to 4 (terascope.functions.bound_trials), once for each seed and strategy. The target is
that every bound holds for 99% of 1,000 seeds: `terascope bench bounds --seeds 1000`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import RenderableType

from bench.experiment import Column, Figures, Outcome, Prepared, Settings, Tell
from bench.trees.asked import WRONG, NothingWrong, new_table
from terascope.functions.bound_trials import BoundedCall, calls_of, excess
from terascope.functions.registry import Functions

BROKEN, WORST = "broken: ", "worst: "
TARGET: Final = 0.99


@dataclass(frozen=True)
class Bounded:
    """One aggregate, with all its strategies."""

    name: str
    seeds: int
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Bounded:
        del cores  # one process
        return self

    @property
    def calls(self) -> list[BoundedCall]:
        found = Functions.builtin().aggregate(self.name)
        assert found is not None
        return calls_of([found])

    def warm(self) -> None:
        for call in self.calls:
            excess(call, 0)

    def run(self, output: Path) -> Figures:
        figures: dict[str, float] = {WRONG: 0}
        for call in self.calls:
            found = [excess(call, seed) for seed in range(self.seeds)]
            broken = sum(size > 1 for size in found)
            figures[f"{BROKEN}{call}"] = broken
            figures[f"{WORST}{call}"] = max(found)
            share = TARGET if call.bound.cases < 1 else 1.0
            figures[WRONG] += broken > (1 - share) * self.seeds
        return figures | {"rows": self.seeds * len(self.calls)}

    def close(self) -> None:
        return None


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    """A line for each call: the seeds that break its bound, and the largest error."""
    table = new_table("", ["call", "broken", "largest error / bound", "bound"])
    for outcome in outcomes:
        if not outcome.figures:
            continue
        for call in Bounded(outcome.contender, 0).calls:
            broken = outcome.figure(f"{BROKEN}{call}")
            worst = outcome.figure(f"{WORST}{call}")
            table.add_row(str(call), f"{broken:.0f}", f"{worst:.2f}", str(call.bound))
    return [table]


@dataclass(frozen=True)
class Bounds:
    name: str = "bounds"
    title: str = "declared error bounds of approximate aggregates, after merges of depth 1 to 4"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        seeds = max(1, round(settings.seeds * min(1.0, settings.scale)))
        tell(f"{seeds} random groups for each strategy")
        names = dict.fromkeys(
            call.aggregate.name for call in calls_of(Functions.builtin().aggregates.values())
        )
        return Prepared(
            tuple(Bounded(name, seeds) for name in names),
            NothingWrong("bounds are broken more often than declared"),
            (f"{seeds} seeds, up to 20,000 tuples a group, merges of depth 1 to 4",),
            columns=(Column("rows", "trials"),),
            runs=1,
            alternating=False,
            conclude=conclude,
        )


EXPERIMENT = Bounds()
