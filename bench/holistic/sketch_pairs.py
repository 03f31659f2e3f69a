"""`fig5-6-sketches`: heavy hitters over generated traffic, by all pairs of low and high strategies.

Figures 5 and 6 of paper 1: many groups with many values each, uniform and skewed. Beside the six
pairs the null UDAF, all work in the high level, and sketches in the low level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType

from bench.experiment import Outcome, Prepared, Settings, Tell
from bench.holistic.contenders import (
    NULL,
    RIGHT_ANSWERS,
    SENT,
    LevelContender,
    Point,
    level,
    wrong_sums,
)
from bench.holistic.generated import LENGTHS, Generated
from bench.holistic.hitter_answers import wrong_hitters
from bench.holistic.hitters import CONTENDERS, hitter_udaf
from bench.holistic.levels_shown import draw_bars, level_table, measured
from bench.trees.asked import new_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUPS: Final = 10_000
TRAFFIC: Final = {
    "Figure 5, uniform": Generated(GROUPS, LENGTHS),
    "Figure 6, skewed": Generated(GROUPS, LENGTHS, skewed=True),
}


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    sent = new_table("bytes that go up, a tuple", ["", *TRAFFIC])
    for outcome in measured(outcomes):
        values = [level(outcome, point, SENT) for point in TRAFFIC]
        sent.add_row(outcome.contender, *("" if v is None else f"{v:.1f}" for v in values))
    return [
        level_table(outcomes, list(TRAFFIC), "Figures 5 and 6"),
        sent,
        "the paper: both extremes lose packets; uniform: the six pairs are alike, buffer slightly"
        " ahead; skewed: buffer costs more than hash, hash more than compress, compress+adaptive"
        " is best",
    ]


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    draw_bars(figure, outcomes, list(TRAFFIC))


@dataclass(frozen=True)
class Fig56Sketches:
    name: str = "fig5-6-sketches"
    title: str = "heavy hitters over uniform and skewed traffic, all pairs of strategies"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        tell(f"generated traffic in {settings.data}")
        paths = {point: traffic.path(settings) for point, traffic in TRAFFIC.items()}
        contenders = tuple(
            LevelContender(
                name,
                tuple(Point(point, path, (hitter_udaf(name),)) for point, path in paths.items()),
                wrong_sums if name == NULL else wrong_hitters,
            )
            for name in CONTENDERS
        )
        about = (
            f"{GROUPS:,} groups, {LENGTHS:,} addresses, weighted by length; one task on one core",
        )
        return Prepared(
            contenders,
            RIGHT_ANSWERS,
            about,
            inputs=tuple(paths.values()),
            conclude=conclude,
            draw=draw,
        )


EXPERIMENT = Fig56Sketches()
