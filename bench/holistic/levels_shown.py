"""Costs at both levels for people: tables with the paper's figures beside ours, and pictures.

In: outcomes of `LevelContender`s. Out: a table with a row for each contender and columns for low,
high and both of each point; stacked bars, or lines over a growing number of groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.table import Table

from bench.experiment import Outcome
from bench.holistic.contenders import HIGH, LOW, NULL, level
from bench.trees.asked import new_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOW_COLOUR, HIGH_COLOUR = "#c0392b", "#7f8c9b"
COLOURS: Final = ("#222222", "#c0392b", "#2c6fbb", "#27803b", "#8e5ea2", "#c58b1b", "#7f8c9b")
TOTAL: Final = "total"


def measured(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.figures]


def level_table(
    outcomes: Sequence[Outcome],
    points: Sequence[str],
    title: str,
    paper: Mapping[str, tuple[float, float, float]] | None = None,
) -> Table:
    """`paper`: by contender what it says of low, high and both, in microseconds."""
    told = [] if paper is None else ["paper, us"]
    columns = ["", *points, *told]
    table = new_table(f"{title}: low + high = both, ns a tuple and core", columns)
    for outcome in measured(outcomes):
        cells = [sum_cell(outcome, point) for point in points]
        said = (paper or {}).get(outcome.contender)
        behind = "" if said is None else "{:g} + {:g} = {:g}".format(*said)
        if any(cells):
            table.add_row(outcome.contender, *cells, *([behind] if told else []))
    return table


def sum_cell(outcome: Outcome, point: str) -> str:
    low, high = level(outcome, point, LOW), level(outcome, point, HIGH)
    return "" if low is None or high is None else f"{low:.1f} + {high:.1f} = {low + high:.1f}"


def ratio(outcomes: Sequence[Outcome], point: str, contender: str, base: str = NULL) -> str:
    """How many times as much as another contender both levels take; empty if one is missing."""
    costs = {o.contender: level(o, point, TOTAL) for o in measured(outcomes)}
    one, other = costs.get(contender), costs.get(base)
    return "" if one is None or not other else f"{one / other:.1f}"


def draw_bars(figure: Figure, outcomes: Sequence[Outcome], points: Sequence[str]) -> None:
    """A panel for each point: low and high of each contender, one on top of the other."""
    figure.set_size_inches(max(8, 3.2 * len(points)), 4.5)
    panels = figure.subplots(1, len(points), squeeze=False)[0]
    figure.subplots_adjust(left=0.13, right=0.98, wspace=0.6)
    for axes, point in zip(panels, points, strict=True):
        draw_levels(axes, measured(outcomes), point)
    panels[0].legend(fontsize=6)


def draw_levels(axes: Axes, outcomes: Sequence[Outcome], point: str) -> None:
    there = [o for o in outcomes if level(o, point, TOTAL) is not None]
    places = list(range(len(there)))
    low, high = ([level(o, point, what) or 0.0 for o in there] for what in (LOW, HIGH))
    axes.barh(places, low, height=0.6, color=LOW_COLOUR, label=LOW)
    axes.barh(places, high, left=low, height=0.6, color=HIGH_COLOUR, label=HIGH)
    axes.set_yticks(places, [o.contender for o in there], fontsize=6)
    axes.invert_yaxis()
    axes.set_title(point, fontsize=7)
    axes.set_xlabel("ns a tuple and core", fontsize=7)
    axes.tick_params(axis="x", labelsize=6)


def draw_lines(
    axes: Axes, outcomes: Sequence[Outcome], points: Mapping[int, str], what: str, label: str
) -> None:
    """A line for each contender over points that are numbers."""
    for colour, outcome in zip(COLOURS * 2, measured(outcomes), strict=False):
        values = {x: level(outcome, point, what) for x, point in points.items()}
        known = {x: value for x, value in values.items() if value is not None}
        style = ".:" if outcome.contender == NULL else ".-"
        axes.plot(list(known), list(known.values()), style, color=colour, label=outcome.contender)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("groups", fontsize=8)
    axes.set_ylabel(label, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=6)
