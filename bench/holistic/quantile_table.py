"""`table3-quantiles`: four quantiles in one query over real packets, by three algorithms.

Table 3 of paper 1, whose machine had one processor of 733 MHz. Strategies are those of section 4.1;
beside them the null UDAF, all work in the high level, and whole summaries in the low level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType

from bench.experiment import Outcome, Prepared, Settings, Tell
from bench.holistic.contenders import (
    NULL,
    RIGHT_ANSWERS,
    LevelContender,
    Point,
    level,
    wrong_sums,
)
from bench.holistic.levels_shown import TOTAL, draw_bars, level_table, measured
from bench.holistic.quantiles import ALGORITHMS, CONTENDERS, quantile_udaf, wrong_quantiles
from bench.holistic.replayed import LINK_RATE, Replayed, about_packets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKETS: Final = 4_000_000
COLUMNS: Final = ("len", "srcPort", "destPort", "ttl")
POINT: Final = "four quantiles"
PAPER: Final = {
    "alg1_lite": (1.70, 13.9, 15.6),
    "alg2_heavy": (11.8, 0.129, 11.9),
    "alg3_medium": (6.67, 9.87, 16.5),
}
"""Microseconds a tuple: low, high, both."""


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    shown: list[RenderableType] = [level_table(outcomes, [POINT], "Table 3", PAPER)]
    costs = {o.contender: level(o, POINT, TOTAL) for o in measured(outcomes)}
    ranked = sorted((c, name) for name, c in costs.items() if name in ALGORITHMS and c is not None)
    if ranked:
        order = ", ".join(f"{name} {cost:.0f}" for cost, name in ranked)
        shown.append(f"cheapest first: {order} ns (the paper's: alg2, alg1, alg3)")
    return shown


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    draw_bars(figure, outcomes, [POINT])


@dataclass(frozen=True)
class Table3Quantiles:
    name: str = "table3-quantiles"
    title: str = "four quantiles by minute and source over real packets, low and high level"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        replay = Replayed(settings.count(PACKETS))
        tell(f"{replay.packets:,} {about_packets()}")
        path = replay.path(settings)
        contenders = tuple(
            LevelContender(
                name,
                (Point(POINT, path, tuple(quantile_udaf(name, c) for c in COLUMNS)),),
                wrong_sums if name == NULL else wrong_quantiles,
            )
            for name in CONTENDERS
        )
        about = (
            f"{replay.packets:,} {about_packets()}, {LINK_RATE:,} a second;"
            f" quantiles of {', '.join(COLUMNS)}, one task on one core",
        )
        return Prepared(
            contenders, RIGHT_ANSWERS, about, inputs=(path,), conclude=conclude, draw=draw
        )


EXPERIMENT = Table3Quantiles()
