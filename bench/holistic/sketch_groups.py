"""`fig8-groups`: what a heavy hitter costs as the number of groups grows.

Figure 8 of paper 1: the three low-level strategies under the adaptive one, and sketches in the low
level; beside them the null UDAF and all work in the high level.
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
    wrong_sums,
)
from bench.holistic.generated import LENGTHS, Generated
from bench.holistic.hitter_answers import wrong_hitters
from bench.holistic.hitters import ADAPTIVE, LOW_LEVELS, hitter_udaf
from bench.holistic.levels_shown import TOTAL, draw_lines, level_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUPS: Final = {n: f"{n:,} groups" for n in (10, 100, 1_000, 10_000, 30_000)}
CONTENDERS: Final = (NULL, HIGH_ONLY, LOW_SKETCH, *(f"{low}+{ADAPTIVE}" for low in LOW_LEVELS))


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    return [
        level_table(outcomes, list(GROUPS.values()), "Figure 8"),
        "the paper: buffer and hash grow with the logarithm of the number of groups, compress less"
        " when there are many; low sketch costs most everywhere",
    ]


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    draw_lines(figure.add_subplot(), outcomes, GROUPS, TOTAL, "ns a tuple and core")


@dataclass(frozen=True)
class Fig8Groups:
    name: str = "fig8-groups"
    title: str = "heavy hitters over generated traffic with more and more groups"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        tell(f"generated traffic in {settings.data}")
        paths = {point: Generated(n, LENGTHS).path(settings) for n, point in GROUPS.items()}
        contenders = tuple(
            LevelContender(
                name,
                tuple(Point(point, path, (hitter_udaf(name),)) for point, path in paths.items()),
                wrong_sums if name == NULL else wrong_hitters,
            )
            for name in CONTENDERS
        )
        about = (f"uniform traffic, {LENGTHS:,} addresses, weighted by length; one core",)
        return Prepared(
            contenders,
            RIGHT_ANSWERS,
            about,
            inputs=tuple(paths.values()),
            conclude=conclude,
            draw=draw,
        )


EXPERIMENT = Fig8Groups()
