"""Contenders whose cost at the low and the high level is measured, and the check of their answers.

In: strategies, each with the queries it answers (`Point`). Out: figures by point: nanoseconds of
processor time a tuple at each level, bytes that went up and bytes of the states in the end. In the
run that does not count the answers are compared with those of all tuples at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from bench.experiment import Figures, Outcome
from bench.holistic.level_costs import Udaf, level_cost
from bench.trees.asked import WRONG, NothingWrong

NULL: Final = "null"
"""The paper's UDAF that does as good as nothing: a sum."""
HIGH_ONLY: Final = "high_only"
LOW_SKETCH: Final = "low_sketch"
LOW, HIGH, SENT, SPACE = "low", "high", "sent", "space"
RIGHT_ANSWERS: Final = NothingWrong("answers are not within their bounds")

Told: TypeAlias = Callable[[pa.Table, Path, tuple[Udaf, ...]], Figures]
"""Figures of the answers to a query: the groups, the file they are of, the aggregates. The figure
WRONG counts answers beyond their bounds."""


@dataclass(frozen=True)
class Point:
    """A query over a file."""

    name: str
    path: Path
    udafs: tuple[Udaf, ...]


@dataclass(frozen=True)
class LevelContender:
    name: str
    points: tuple[Point, ...]
    told: Told
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> LevelRun:
        del cores  # one task on one core
        return LevelRun(self)


class LevelRun:
    def __init__(self, contender: LevelContender) -> None:
        self._contender = contender
        self._told: dict[str, float] | None = None

    def warm(self) -> None:
        """Kernels are compiled in the run that does not count."""

    def run(self, output: Path) -> Figures:
        del output
        found: dict[str, float] = {"rows": 0}
        told: dict[str, float] = {WRONG: 0}
        for point in self._contender.points:
            cost = level_cost(point.path, point.udafs)
            found["rows"] += cost.groups.num_rows
            for what, value in (
                (LOW, cost.low), (HIGH, cost.high), (SENT, cost.sent_bytes),
                (SPACE, cost.state_bytes),
            ):  # fmt: skip
                found[figure_of(point.name, what)] = value
            if self._told is None:
                answers = self._contender.told(cost.groups, point.path, point.udafs)
                told[WRONG] += answers[WRONG]
                told |= {figure_of(point.name, n): v for n, v in answers.items() if n != WRONG}
        self._told = self._told or told
        return found | self._told

    def close(self) -> None:
        """Nothing is open."""


def figure_of(point: str, what: str) -> str:
    return f"{point}: {what}"


def level(outcome: Outcome, point: str, what: str) -> float | None:
    """A figure of a point; the total is that of both levels."""
    if what != "total":
        return outcome.figure(figure_of(point, what))
    low, high = (outcome.figure(figure_of(point, each)) for each in (LOW, HIGH))
    return None if low is None or high is None else low + high


def wrong_sums(groups: pa.Table, path: Path, udafs: tuple[Udaf, ...]) -> Figures:
    """Sums that are not those of all tuples; the null UDAF has no bounds."""
    wrong = 0
    for place, udaf in enumerate(udafs):
        column = udaf.arguments[0]
        table = pq.read_table(path, columns=list(dict.fromkeys(("tb", "srcIP", column))))
        expected = summed(table, column)
        wrong += 0 if summed(groups, f"u{place}").equals(expected) else 1
    return {WRONG: wrong}


def summed(table: pa.Table, column: str) -> pa.Table:
    keys = ["tb", "srcIP"]
    plain = pa.table({name: table.column(name).cast(pa.int64()) for name in (*keys, column)})
    found = (
        plain.group_by(keys).aggregate([(column, "sum")]).sort_by([(k, "ascending") for k in keys])
    )
    return found.rename_columns([*keys, "sum"])
