"""The measured figures of operators in a run, beside the predicted ones. Pure data.

In: reports of tasks. Out: a `Measure` for each operator of a Job, by its name, summed over tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias


@dataclass(frozen=True)
class Measure:
    """The figures of one operator."""

    taken: int = 0
    """Tuples, groups or rows that it read."""
    given: int = 0
    """Tuples, groups or rows that it emitted."""
    probes: int = 0
    """Look-ups in its table."""
    evicted: int = 0
    """Groups that left its table before their epoch was over."""
    exchanged_bytes: int = 0
    spilled_bytes: int = 0
    seconds: float = 0.0
    """The time over all tasks, which run side by side."""

    def __add__(self, other: Measure) -> Measure:
        return Measure(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Measure)))


Measures: TypeAlias = Mapping[str, Measure]
"""Measures by the name of an operator."""


def summed(many: Iterable[Measures]) -> dict[str, Measure]:
    """The sum of the figures of several tasks or batches."""
    found: dict[str, Measure] = {}
    for measures in many:
        for name, measure in measures.items():
            found[name] = found.get(name, Measure()) + measure
    return found


def measures_from(document: Mapping[str, Mapping[str, float]]) -> dict[str, Measure]:
    """The measures of a task's report; figures of later versions are left out."""
    known = {f.name for f in fields(Measure)}
    return {
        name: Measure(**{k: v for k, v in figures.items() if k in known})  # type: ignore[arg-type]
        for name, figures in document.items()
    }
