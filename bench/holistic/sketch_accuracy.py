"""`fig11-accuracy`: how many of the top five heavy hitters of each group sketches find.

Figure 11 of paper 1: uniform traffic, the worst case, because all values are about as heavy. An
answer is correct when it has its true rank, off by one or by more, or missed. Adaptive states are
compared with direct ones, each with the sketch of the engine, which keeps candidates, and with the
plain one of the paper; and with what the engine chooses when a query names no strategy. The paper
asked for the top five "in various distributions" and gives one figure for all of them. Its
generator made 100, 1,000 or 10,000 groups of 10, 120 or 1,436 values (7.1): each of these nine
kinds of traffic is shown by itself, and their mean beside them. What the engine chooses counts all
of these values exactly; two kinds with 10,000 values show its sketches. Identifiers are random
addresses, or consecutive numbers, whose upper bits are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType

from bench.experiment import Outcome, Prepared, Settings, Tell
from bench.holistic.contenders import (
    HIGH_ONLY,
    LOW_SKETCH,
    NULL,
    RIGHT_ANSWERS,
    LevelContender,
    Point,
    level,
    wrong_sums,
)
from bench.holistic.generated import LENGTHS, Generated
from bench.holistic.hitter_answers import RANKS, top_five
from bench.holistic.hitters import ADAPTIVE, CHOSEN, DIRECT, PLAIN, hitter_udaf
from bench.holistic.levels_shown import measured
from bench.trees.asked import new_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOW: Final = "compress"
CONTENDERS: Final = {
    NULL: NULL,
    HIGH_ONLY: HIGH_ONLY,
    LOW_SKETCH: LOW_SKETCH,
    DIRECT: f"{LOW}+{DIRECT}",
    ADAPTIVE: f"{LOW}+{ADAPTIVE}",
    f"{DIRECT}{PLAIN}": f"{LOW}+{DIRECT}{PLAIN}",
    f"{ADAPTIVE}{PLAIN}": f"{LOW}+{ADAPTIVE}{PLAIN}",
    CHOSEN: CHOSEN,
}
"""Contender -> strategy. The null UDAF has no answers; it is there for its cost."""
IDENTIFIERS: Final = {"addresses": "destIP", "ports": "destPort"}
UNIFORM: Final = tuple(
    Generated(groups, values) for groups in (100, 1_000, 10_000) for values in (10, 120, LENGTHS)
)
SKEWED: Final = tuple(Generated(groups, LENGTHS, skewed=True) for groups in (1_000, 10_000))
BEYOND: Final = tuple(Generated(1_000, 10_000, skewed) for skewed in (False, True))
"""More values than any contender counts exactly: all answers are those of sketches."""
KINDS: Final = (*UNIFORM, *SKEWED, *BEYOND)
PAPER_MISSED: Final = {DIRECT: 18.0, ADAPTIVE: 14.0}
"""Percent, over various distributions."""
MEAN: Final = "mean of the nine uniform kinds"


def point_of(traffic: Generated, identifiers: str) -> str:
    return f"{traffic}, {identifiers}"


def points_of(kinds: tuple[Generated, ...]) -> list[str]:
    return [point_of(traffic, identifiers) for traffic in kinds for identifiers in IDENTIFIERS]


def shares(outcome: Outcome, point: str) -> list[float] | None:
    """Percent of the answers of each kind; None for one who has no answers."""
    found = [level(outcome, point, kind) for kind in RANKS]
    known = [value for value in found if value is not None]
    return known if len(known) == len(RANKS) else None


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    table = new_table("Figure 11: percent of the top five", ["", "", *RANKS])
    for point in points_of(KINDS):
        for outcome in measured(outcomes):
            found = shares(outcome, point)
            if found is not None:
                table.add_row(point, outcome.contender, *(f"{v:.1f}" for v in found))
        if point == points_of(UNIFORM)[-1]:
            for identifiers in IDENTIFIERS:
                for outcome in measured(outcomes):
                    mean = mean_shares(outcome, identifiers)
                    if mean is not None:
                        cells = (f"{v:.1f}" for v in mean)
                        table.add_row(f"{MEAN}, {identifiers}", outcome.contender, *cells)
    said = ", ".join(f"{name} {percent:g}%" for name, percent in PAPER_MISSED.items())
    return [table, *worst(outcomes), f"the paper's misses on uniform traffic: {said}"]


def mean_shares(outcome: Outcome, identifiers: str) -> list[float] | None:
    """The mean over the kinds of uniform traffic, each with the same weight."""
    found = [shares(outcome, point_of(traffic, identifiers)) for traffic in UNIFORM]
    known = [each for each in found if each is not None]
    if len(known) < len(UNIFORM):
        return None
    return [sum(column) / len(known) for column in zip(*known, strict=True)]


def worst(outcomes: list[Outcome]) -> list[str]:
    """The most that each contender misses, on uniform and on skewed traffic."""
    lines = []
    for law, kinds in (("uniform", UNIFORM), ("skewed", SKEWED)):
        cells = []
        for outcome in measured(outcomes):
            missed = [level(outcome, point, RANKS[-1]) for point in points_of(kinds)]
            known = [value for value in missed if value is not None]
            cells += [f"{outcome.contender} {max(known):.1f}%"] if known else []
        lines.append(f"most misses on {law} traffic: {', '.join(cells)}")
    return lines


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    """Misses of each kind of traffic; dashed what the paper says."""
    axes = figure.add_subplot()
    figure.subplots_adjust(left=0.1, bottom=0.42)
    points = points_of(KINDS)
    bars = [(o.contender, [shares(o, point) for point in points]) for o in measured(outcomes)]
    there = [(name, [f[-1] for f in found if f]) for name, found in bars if all(found)]
    width = 0.8 / max(1, len(there))
    for place, (name, missed) in enumerate(there):
        axes.bar([x + place * width for x in range(len(points))], missed, width, label=name)
    for percent in PAPER_MISSED.values():
        axes.axhline(percent, color="#222222", linestyle="--", linewidth=0.6)
    axes.set_xticks(range(len(points)), points, fontsize=5, rotation=35, ha="right")
    axes.set_ylabel("missed, percent of the top five", fontsize=8)
    if there:
        axes.legend(fontsize=6)


@dataclass(frozen=True)
class Fig11Accuracy:
    name: str = "fig11-accuracy"
    title: str = "the top five heavy hitters of each group: right, off by one, by more, missed"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        tell(f"generated traffic in {settings.data}")
        paths = {traffic: traffic.path(settings) for traffic in KINDS}
        contenders = tuple(
            LevelContender(
                name,
                tuple(
                    Point(point_of(t, ids), path, (hitter_udaf(strategy, column),))
                    for t, path in paths.items()
                    for ids, column in IDENTIFIERS.items()
                ),
                wrong_sums if name == NULL else top_five,
            )
            for name, strategy in CONTENDERS.items()
        )
        return Prepared(
            contenders,
            RIGHT_ANSWERS,
            ("groups by source, top five values by length; one interval of 10 s",),
            inputs=tuple(paths.values()),
            runs=1,
            conclude=conclude,
            draw=draw,
        )


EXPERIMENT = Fig11Accuracy()
