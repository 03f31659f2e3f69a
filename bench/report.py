"""What an experiment gave, for people and for programs: table, CSV, JSON, one line of JSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.experiment import Outcome
from bench.harness import Report

OURS = "terascope"


def show(report: Report, console: Console) -> None:
    """The header, the table, and what follows from it."""
    console.print(Text(f"{report.experiment}: {report.title}", style="bold"))
    for line in (*report.header, *report.prepared.about):
        console.print(Text(line, style="dim"))
    console.print(table(report))
    if report.prepared.conclude is not None:
        for part in report.prepared.conclude(report.outcomes):
            console.print(part)


def table(report: Report) -> Table:
    shown = Table(box=None, pad_edge=False)
    columns = report.prepared.columns
    base = base_seconds(report.outcomes)
    shown.add_column("contender", no_wrap=True)
    for title in ("runs", "median s", "min", "max", "ratio", *(c.title for c in columns)):
        shown.add_column(title, justify="right", no_wrap=True)
    for title in ("rows", "peak MB", "checked"):
        shown.add_column(title, justify="right", no_wrap=True)
    shown.add_column("", overflow="fold")
    for outcome in report.outcomes:
        middle = outcome.median
        shown.add_row(
            outcome.contender,
            str(len(outcome.seconds)),
            number(middle, "{:.2f}"),
            number(min(outcome.seconds, default=None), "{:.2f}"),
            number(max(outcome.seconds, default=None), "{:.2f}"),
            number(middle / base if middle and base else None, "{:.2f}"),
            *(number(outcome.figure(c.figure), c.form) for c in columns),
            number(outcome.rows, "{:,}"),
            number(outcome.peak_mb, "{:,.0f}"),
            "yes" if outcome.checked else "NO",
            Text(outcome.remark),
        )
    for name, why in report.absent.items():
        shown.add_row(name, "0", *[""] * (7 + len(columns)), Text(f"left out: {why}"))
    return shown


def base_seconds(outcomes: list[Outcome]) -> float | None:
    """What ratios are taken of: our own time, else the first contender's."""
    measured = {o.contender: o.median for o in outcomes if o.median is not None}
    return measured.get(OURS, next(iter(measured.values()), None))


def number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def as_json(outcomes: list[Outcome]) -> str:
    """One line: a list of what was measured."""
    return json.dumps(
        [
            {
                "contender": o.contender,
                "seconds": [round(s, 6) for s in o.seconds],
                "rows": o.rows,
                "peak_mb": None if o.peak_mb is None else round(o.peak_mb, 1),
                "checked": o.checked,
            }
            for o in outcomes
        ]
    )


def write_json(report: Report, path: Path) -> None:
    """Everything that was measured: all figures of all runs, and what was seen over time."""
    told = {
        "experiment": report.experiment,
        "title": report.title,
        "scale": report.scale,
        "measured_on": report.header,
        "about": list(report.prepared.about),
        "outcomes": [
            {
                "contender": o.contender,
                "seconds": o.seconds,
                "figures": [dict(figures) for figures in o.figures],
                "rows": o.rows,
                "peak_mb": o.peak_mb,
                "worker_mb": o.worker_mb,
                "checked": o.checked,
                "remark": o.remark,
                "series": {name: list(values) for name, values in o.series.items()},
            }
            for o in report.outcomes
        ],
        "left_out": report.absent,
    }
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def write_csv(report: Report, path: Path) -> None:
    """A line for each counted run; what it was measured on stands above, behind #."""
    names = sorted({n for o in report.outcomes for figures in o.figures for n in figures})
    with path.open("w", newline="", encoding="utf-8") as file:
        for line in (*report.header, *report.prepared.about):
            file.write(f"# {line}\n")
        rows = csv.writer(file, lineterminator="\n")
        behind = ("total_rows", "peak_mb", "worker_mb", "checked", "remark")
        rows.writerow(["experiment", "scale", "contender", "run", "seconds", *names, *behind])
        for o in report.outcomes:
            tail = [o.rows, o.peak_mb, o.worker_mb, o.checked, o.remark]
            who = [report.experiment, report.scale, o.contender]
            for run, (seconds, figures) in enumerate(zip(o.seconds, o.figures, strict=True), 1):
                values = [figures.get(name) for name in names]
                rows.writerow([*who, run, seconds, *values, *tail])
            if not o.seconds:
                rows.writerow([*who, *[None] * (2 + len(names)), *tail])
        for name, why in report.absent.items():
            gaps = [None] * (2 + len(names) + 4)
            rows.writerow([report.experiment, report.scale, name, *gaps, f"left out: {why}"])
