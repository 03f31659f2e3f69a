"""The picture of an experiment: by default a bar for each contender, a dot for each of its runs."""

from __future__ import annotations

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from bench.experiment import Outcome
from bench.harness import Report
from bench.report import OURS

OWN_COLOUR, PEER_COLOUR, DOT_COLOUR = "#c0392b", "#7f8c9b", "#222222"
FAR_APART = 20
"""From this ratio on, times are drawn on a logarithmic axis."""


def write_picture(report: Report, path: Path) -> None:
    figure = Figure(figsize=(8, 4.5))
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.2, right=0.95, top=0.88, bottom=0.2)
    (report.prepared.draw or draw_bars)(figure, report.outcomes)
    figure.suptitle(f"{report.experiment}, scale {report.scale:g}: {report.title}", fontsize=9)
    figure.text(0.01, 0.01, "\n".join(report.header), fontsize=5, color="#666666", va="bottom")
    figure.savefig(path, dpi=150)


def draw_bars(figure: Figure, outcomes: list[Outcome]) -> None:
    """Medians, the first contender on top."""
    axes = figure.add_subplot()
    measured = [(o, o.median) for o in outcomes if o.median is not None]
    names = [outcome.contender for outcome, _ in measured]
    medians = [middle for _, middle in measured]
    colours = [OWN_COLOUR if name.startswith(OURS) else PEER_COLOUR for name in names]
    places = list(range(len(measured)))
    axes.barh(places, medians, height=0.6, color=colours)
    axes.margins(x=0.12, y=0.5 if len(places) < 3 else 0.05)
    for place, (outcome, middle) in zip(places, measured, strict=True):
        axes.plot(outcome.seconds, [place] * len(outcome.seconds), ".", color=DOT_COLOUR)
        axes.annotate(
            f"{middle:.3g} s",
            (max(outcome.seconds), place),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    if medians and max(medians) > FAR_APART * min(medians):
        axes.set_xscale("log")
    axes.set_xlabel("seconds, median of the runs")
