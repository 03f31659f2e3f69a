"""`fig7-real`: four heavy hitters in one query over real packets, by six pairs of strategies.

Figure 7 of paper 1. The paper could not replay its traffic; here all strategies see the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType

from bench.experiment import Outcome, Prepared, Settings, Tell
from bench.holistic.contenders import NULL, RIGHT_ANSWERS, LevelContender, Point, level, wrong_sums
from bench.holistic.hitter_answers import wrong_hitters
from bench.holistic.hitters import CONTENDERS, SIX_PAIRS, hitter_udaf
from bench.holistic.levels_shown import TOTAL, draw_bars, level_table, measured
from bench.holistic.replayed import LINK_RATE, Replayed, about_packets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKETS: Final = 4_000_000
COLUMNS: Final = ("destIP", "srcPort", "destPort", "ttl")
POINT: Final = "four heavy hitters"
PAPER_NS: Final = 100
"""A packet on a modern processor, the paper says of its best strategies."""


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    shown: list[RenderableType] = [level_table(outcomes, [POINT], "Figure 7")]
    costs = {o.contender: level(o, POINT, TOTAL) for o in measured(outcomes)}
    ranked = sorted((c, name) for name, c in costs.items() if name in SIX_PAIRS and c is not None)
    if ranked:
        cost, name = ranked[0]
        shown.append(
            f"cheapest: {name} with {cost / len(COLUMNS):.0f} ns for each heavy hitter (the paper:"
            f" hash and compress are best, adaptive before direct, around {PAPER_NS} ns a packet)"
        )
    return shown


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    draw_bars(figure, outcomes, [POINT])


@dataclass(frozen=True)
class Fig7Real:
    name: str = "fig7-real"
    title: str = "four heavy hitters by minute and source over real packets, six pairs"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        replay = Replayed(settings.count(PACKETS))
        tell(f"{replay.packets:,} {about_packets()}")
        path = replay.path(settings)
        contenders = tuple(
            LevelContender(
                name,
                (Point(POINT, path, tuple(hitter_udaf(name, column) for column in COLUMNS)),),
                wrong_sums if name == NULL else wrong_hitters,
            )
            for name in CONTENDERS
        )
        about = (
            f"{replay.packets:,} {about_packets()}, {LINK_RATE:,} a second;"
            f" heavy hitters of {', '.join(COLUMNS)} by length, one task on one core",
        )
        return Prepared(
            contenders, RIGHT_ANSWERS, about, inputs=(path,), conclude=conclude, draw=draw
        )


EXPERIMENT = Fig7Real()
