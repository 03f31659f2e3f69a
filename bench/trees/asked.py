"""Contenders that are asked once for their figures, and the check that nothing is wrong in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

from bench.experiment import Figures, Outcome

WRONG: Final = "wrong"
"""The figure that counts what must not be."""


@dataclass(frozen=True)
class Asked:
    """Answers when it is run."""

    answer: Callable[[], Figures]

    def warm(self) -> None:
        """Nothing is timed that would be done once."""

    def run(self, output: Path) -> Figures:
        del output
        return self.answer()

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class NothingWrong:
    """`what` is said of a contender that counted something under WRONG."""

    what: str

    def look(self, outcome: Outcome, output: Path) -> None:
        del output
        outcome.rows = round(outcome.figures[0].get("rows", 0))

    def judge(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.figures:
                wrong = round(outcome.figures[0][WRONG])
                outcome.checked = wrong == 0
                outcome.remark = f"{wrong} {self.what}" if wrong else ""


def new_table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def shown(outcome: Outcome, name: str, form: str) -> str:
    value = outcome.figure(name)
    return "" if value is None else form.format(value)
