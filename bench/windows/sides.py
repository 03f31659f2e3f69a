"""Figures of query sets of growing size, ungrouped and grouped, beside the paper's.

In: outcomes whose figures are named by `point`. Out: two tables for people, and the picture with
two panels, the paper's values as crosses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.console import RenderableType
from rich.table import Table

from bench.experiment import Outcome
from bench.windows.snort import SIZES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Side: TypeAlias = bool
"""Whether it is the grouped one."""
SIDES: Final = {False: "ungrouped", True: "grouped"}
Paper: TypeAlias = Mapping[tuple[str, Side], Mapping[int, float]]
"""Line and side -> size of the set -> what the paper says."""
COLOURS: Final = ("#c0392b", "#2c6fbb", "#7f8c9b", "#27803b", "#8e5ea2")

Lines: TypeAlias = Mapping[tuple[str, Side], Mapping[int, float]]


def point(n: int, grouped: Side, what: str = "") -> str:
    """The name of a figure."""
    return f"{what}{SIDES[grouped]}_{n}"


def measured_lines(
    outcomes: Sequence[Outcome], lines: Mapping[str, tuple[str, str]]
) -> dict[tuple[str, Side], dict[int, float]]:
    """`lines`: by the name of a line the contender, and what its figures begin with."""
    by_name = {outcome.contender: outcome for outcome in outcomes}
    found: dict[tuple[str, Side], dict[int, float]] = {}
    for line, (contender, what) in lines.items():
        if contender not in by_name:
            continue
        for side in SIDES:
            values = {n: by_name[contender].figure(point(n, side, what)) for n in SIZES}
            found[line, side] = {n: v for n, v in values.items() if v is not None}
    return found


def side_tables(lines: Lines, paper: Paper, title: str, form: str) -> list[RenderableType]:
    """A table for each side: our value, and the paper's behind it where it says one."""
    return [side_table(lines, paper, side, title, form) for side in SIDES]


def side_table(lines: Lines, paper: Paper, side: Side, title: str, form: str) -> Table:
    names = [line for line, s in lines if s == side]
    table = Table(
        title=f"{title}, {SIDES[side]} (in brackets: the paper's)",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
    )
    for name in ("queries", *names):
        table.add_column(name, justify="right", no_wrap=True)
    for n in sorted({n for name in names for n in lines[name, side]}):
        cells = [cell(lines[name, side].get(n), paper, (name, side), n, form) for name in names]
        table.add_row(str(n), *cells)
    return table


def cell(value: float | None, paper: Paper, line: tuple[str, Side], n: int, form: str) -> str:
    said = paper.get(line, {}).get(n)
    behind = "" if said is None else f" ({said:,.10g})"
    return "" if value is None else form.format(value) + behind


def draw_sides(figure: Figure, lines: Lines, paper: Paper, what: str) -> None:
    """Logarithmic both ways, a panel for each side."""
    panels = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.09, right=0.97, wspace=0.25)
    for side, axes in zip(SIDES, panels, strict=True):
        draw_side(axes, {line: v for (line, s), v in lines.items() if s == side}, paper, side)
        axes.set_title(SIDES[side], fontsize=8)
    panels[0].set_ylabel(what, fontsize=8)
    panels[0].legend(fontsize=6)


def draw_side(
    axes: Axes, lines: Mapping[str, Mapping[int, float]], paper: Paper, side: Side
) -> None:
    for colour, (line, values) in zip(COLOURS, lines.items(), strict=False):
        axes.plot(list(values), list(values.values()), ".-", color=colour, label=line, linewidth=1)
        said = paper.get((line, side), {})
        axes.plot(list(said), list(said.values()), "x", color=colour)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(SIZES, [str(n) for n in SIZES])
    axes.set_xlabel("queries", fontsize=8)
    axes.tick_params(labelsize=7)
