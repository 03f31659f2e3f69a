"""`fig9-10-adaptive`: time and space of adaptive states that keep 64, 128 or 256 values exactly.

Figures 9 and 10 of paper 1: time by the number of groups; space by the number of groups, for values
from a large range (addresses) and from a small one (ports).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.table import Table

from bench.experiment import Outcome, Prepared, Settings, Tell
from bench.holistic.contenders import (
    HIGH_ONLY,
    LOW_SKETCH,
    NULL,
    RIGHT_ANSWERS,
    SPACE,
    LevelContender,
    Point,
    level,
    wrong_sums,
)
from bench.holistic.generated import LENGTHS, Generated
from bench.holistic.hitter_answers import wrong_hitters
from bench.holistic.hitters import ADAPTIVE, hitter_udaf
from bench.holistic.levels_shown import TOTAL, draw_lines, level_table, measured
from bench.trees.asked import new_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THRESHOLDS: Final = (64, 128, 256)
GROUPS: Final = (100, 1_000, 10_000)
RANGES: Final = {"addresses": LENGTHS, "ports": 120}
"""Different values of a group."""
LOW: Final = "compress"
CONTENDERS: Final = {
    NULL: (NULL, 0),
    HIGH_ONLY: (HIGH_ONLY, THRESHOLDS[0]),
    LOW_SKETCH: (LOW_SKETCH, 0),
    **{f"{ADAPTIVE}_{exact}": (f"{LOW}+{ADAPTIVE}", exact) for exact in THRESHOLDS},
}
"""Contender -> strategy and threshold."""


def point_of(groups: int, what: str) -> str:
    return f"{groups:,} groups, {what}"


def points(settings: Settings, contender: str) -> Iterator[Point]:
    strategy, exact = CONTENDERS[contender]
    for what, values in RANGES.items():
        for groups in GROUPS:
            path = Generated(groups, values).path(settings)
            yield Point(point_of(groups, what), path, (hitter_udaf(strategy, exact=exact),))


def space_table(outcomes: list[Outcome]) -> Table:
    names = [point_of(groups, what) for what in RANGES for groups in GROUPS]
    table = new_table("Figure 10: bytes of states in the end, a packet", ["", *names])
    for outcome in measured(outcomes):
        values = [level(outcome, name, SPACE) for name in names]
        if outcome.contender != NULL:
            table.add_row(outcome.contender, *("" if v is None else f"{v:.2f}" for v in values))
    return table


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    shown: list[RenderableType] = [
        level_table(outcomes, [point_of(g, what) for g in GROUPS], f"Figure 9, {what}")
        for what in RANGES
    ]
    return [
        *shown,
        space_table(outcomes),
        "the paper: 256 costs more time with many groups, and less space, above all with addresses",
    ]


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    figure.set_size_inches(9, 4.5)
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.09, right=0.97, wspace=0.3)
    names = {groups: point_of(groups, "addresses") for groups in GROUPS}
    draw_lines(left, outcomes, names, TOTAL, "ns a tuple and core")
    with_states = [o for o in outcomes if o.contender != NULL]
    draw_lines(right, with_states, names, SPACE, "bytes of states a packet")


@dataclass(frozen=True)
class Fig910Adaptive:
    name: str = "fig9-10-adaptive"
    title: str = "adaptive heavy hitters that keep 64, 128 or 256 values: time and space"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        tell(f"generated traffic in {settings.data}")
        contenders = tuple(
            LevelContender(
                name,
                tuple(points(settings, name)),
                wrong_sums if name == NULL else wrong_hitters,
            )
            for name in CONTENDERS
        )
        about = (
            f"uniform traffic; addresses: {RANGES['addresses']:,} values, ports: {RANGES['ports']};"
            f" {LOW} in the low level; one task on one core",
        )
        return Prepared(
            contenders,
            RIGHT_ANSWERS,
            about,
            inputs=tuple({point.path: None for c in contenders for point in c.points}),
            conclude=conclude,
            draw=draw,
        )


EXPERIMENT = Fig910Adaptive()
