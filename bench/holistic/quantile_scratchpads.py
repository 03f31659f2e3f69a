"""`fig4-quantiles`: one quantile over generated traffic, by three algorithms and three scratchpads.

Figure 4 of paper 1: 100 and 10,000 groups of as many tuples each. The paper calls its scratchpads
small, medium and large; the medium one here is the one it declares, 2,800 bytes, and the others a
quarter and four times of that. Below that the number of different values varies, as in 7.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType

from bench.experiment import Outcome, Prepared, Settings, Tell
from bench.holistic.contenders import NULL, RIGHT_ANSWERS, LevelContender, Point, wrong_sums
from bench.holistic.generated import LENGTHS, Generated
from bench.holistic.levels_shown import draw_bars, level_table
from bench.holistic.quantiles import ALGORITHMS, CONTENDERS, quantile_udaf, wrong_quantiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCRATCHPADS: Final = {"small": 700, "medium": 2_800, "large": 11_200}
GROUPS: Final = (100, 10_000)
FEWER_VALUES: Final = (10, 120, LENGTHS)
VALUE_GROUPS: Final = 1_000
"""Groups of the traffic with fewer values."""


def size_point(groups: int, size: str) -> str:
    return f"{groups:,} groups, {size}"


def value_point(values: int) -> str:
    return f"{values:,} values"


def points(settings: Settings, contender: str) -> Iterator[Point]:
    """The null UDAF, and those who have no scratchpad, are measured once for each traffic, and
    shown with the medium one.
    """
    for groups in GROUPS:
        path = Generated(groups, LENGTHS).path(settings)
        for size, scratchpad in SCRATCHPADS.items():
            if contender in ALGORITHMS or size == "medium":
                udaf = quantile_udaf(contender, "len", scratchpad)
                yield Point(size_point(groups, size), path, (udaf,))
    for values in FEWER_VALUES:
        path = Generated(VALUE_GROUPS, values).path(settings)
        yield Point(value_point(values), path, (quantile_udaf(contender, "len"),))


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    shown: list[RenderableType] = [
        level_table(
            outcomes,
            [size_point(groups, size) for size in SCRATCHPADS],
            f"Figure 4, {groups:,} groups",
        )
        for groups in GROUPS
    ]
    values = [value_point(each) for each in FEWER_VALUES]
    shown.append(level_table(outcomes, values, f"{VALUE_GROUPS:,} groups, medium scratchpad"))
    shown.append(
        "the paper: alg1 has the cheapest low level, then alg3, then alg2; with 100 groups the work"
        " in the low level only pays for alg3 with a large scratchpad, with 10,000 for a medium one"
    )
    return shown


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    draw_bars(figure, outcomes, [size_point(g, s) for g in GROUPS for s in SCRATCHPADS])


@dataclass(frozen=True)
class Fig4Quantiles:
    name: str = "fig4-quantiles"
    title: str = "one quantile over generated traffic: scratchpads, groups and values"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        tell(f"generated traffic in {settings.data}")
        contenders = tuple(
            LevelContender(
                name,
                tuple(points(settings, name)),
                wrong_sums if name == NULL else wrong_quantiles,
            )
            for name in CONTENDERS
        )
        sizes = ", ".join(f"{name} {size:,}" for name, size in SCRATCHPADS.items())
        about = (f"scratchpads in bytes: {sizes}; {LENGTHS:,} values; one task on one core",)
        return Prepared(
            contenders,
            RIGHT_ANSWERS,
            about,
            inputs=tuple({point.path: None for c in contenders for point in c.points}),
            conclude=conclude,
            draw=draw,
        )


EXPERIMENT = Fig4Quantiles()
