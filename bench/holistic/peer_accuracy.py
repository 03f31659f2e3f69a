"""How far the answers of engines are off, against all packets at once.

In: what each engine wrote. Out: for percentiles the rank error, the mean and the largest; for heavy
hitters the share of the true top five that is missing; over some groups, the same for all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.experiment import Outcome
from bench.holistic.contenders import summed
from bench.holistic.peer_engines import TERASCOPE, answer_of
from bench.holistic.peer_queries import PERCENT, PERCENTILE, QUESTIONS, SUM, TOP
from bench.holistic.quantiles import EPS, values_of

CHECKED_GROUPS: Final = 500
KEYS: Final = ("tb", "srcIP")


@dataclass(frozen=True)
class Accuracy:
    mean: float
    worst: float
    """Shares: of ranks, or of the top five that is missing."""


@dataclass
class WithinBounds:
    """All engines have all groups and the same sums; we keep our own bounds."""

    datasets: Mapping[str, Path]
    found: dict[tuple[str, str], Accuracy] = field(default_factory=dict)
    """By contender and answer."""
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def look(self, outcome: Outcome, output: Path) -> None:
        wrong = self.wrong.setdefault(outcome.contender, [])
        outcome.rows = 0
        for dataset, path in self.datasets.items():
            for question in QUESTIONS:
                name = answer_of(dataset, question)
                files = files_of(output / f"{name}.parquet")
                if files:
                    answers = pa.concat_tables([pq.read_table(f) for f in files])
                    outcome.rows += answers.num_rows
                    wrong += self._judged(outcome.contender, name, question, path, answers)

    def _judged(
        self, contender: str, name: str, question: str, path: Path, answers: pa.Table
    ) -> list[str]:
        expected = summed(pq.read_table(path, columns=["tb", "srcIP", "len"]), "len")
        if answers.num_rows != expected.num_rows:
            return [f"{name}: {answers.num_rows:,} groups, not {expected.num_rows:,}"]
        if question == SUM:
            return [] if summed(answers, "value").equals(expected) else [f"{name}: other sums"]
        found = accuracy(answers, path, question)
        self.found[contender, name] = found
        beyond = contender == TERASCOPE and question == PERCENTILE and found.worst > EPS
        return [f"{name}: off by {found.worst:.2%}"] if beyond else []

    def judge(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.contender in self.wrong:
                outcome.checked = not self.wrong[outcome.contender]
                outcome.remark = "; ".join(self.wrong[outcome.contender])


def files_of(path: Path) -> list[Path]:
    """The Parquet files of an answer: a file, or a folder of them."""
    return [path] if path.is_file() else sorted(path.rglob("*.parquet"))


def accuracy(answers: pa.Table, path: Path, question: str) -> Accuracy:
    """Over some groups, the same of every engine."""
    in_order = answers.sort_by([(key, "ascending") for key in KEYS])
    chosen = np.random.default_rng(1).permutation(in_order.num_rows)[:CHECKED_GROUPS]
    column = "len" if question == PERCENTILE else "destIP"
    values = values_of(path, column)
    error: Callable[[NDArray[np.int64], Any], float]
    error = percentile_error if question == PERCENTILE else missed_share
    rows = in_order.take(pa.array(chosen)).to_pylist()
    errors = [error(values(int(row["tb"]), int(row["srcIP"])), row["value"]) for row in rows]
    return Accuracy(float(np.mean(errors)), max(errors))


def percentile_error(held: NDArray[np.int64], found: Any) -> float:
    """Engines differ by a rank in what they call a percentile, or stand between two ranks."""
    in_order = np.sort(held)
    rank = max(1, math.ceil(PERCENT / 100 * len(in_order)))
    first, last = (int(np.searchsorted(in_order, found, side)) for side in ("left", "right"))
    return max(0, first - rank, rank - last - 1) / len(in_order)


def missed_share(held: NDArray[np.int64], found: Any) -> float:
    """The share of the top five that is missing; values as heavy as the fifth serve as well."""
    values, counts = np.unique(held, return_counts=True)
    wanted = min(TOP, len(values))
    least = np.sort(counts)[-wanted]
    right = len(set(ids_of(found)) & set(values[counts >= least].tolist()))
    return 1 - min(right, wanted) / wanted


def ids_of(found: Any) -> list[int]:
    """The identifiers of an answer: JSON of ours, structures of Spark, or plain lists."""
    items = json.loads(found) if isinstance(found, str) else found
    return [
        int(i) if not isinstance(i, dict) else int(i["id" if "id" in i else "item"]) for i in items
    ]


def accuracy_rows(check: WithinBounds, contender: str, names: list[str]) -> list[str]:
    """Cells of a table: the mean and the largest error of each answer."""
    known = (check.found.get((contender, name)) for name in names)
    return ["" if a is None else f"{100 * a.mean:.2f} / {100 * a.worst:.1f}" for a in known]
