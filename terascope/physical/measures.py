"""What operators did in a run: the measured figures beside the predicted ones. Pure data.

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
    """Tuples, groups or rows it read."""
    given: int = 0
    """Tuples, groups or rows it handed on."""
    probes: int = 0
    """Look-ups in its table."""
    evicted: int = 0
    """Groups that left its table before their epoch was over."""
    exchanged_bytes: int = 0
    spilled_bytes: int = 0
    seconds: float = 0.0
    """Over all tasks; tasks run side by side."""

    def __add__(self, other: Measure) -> Measure:
        return Measure(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Measure)))


Measures: TypeAlias = Mapping[str, Measure]
"""By the name of an operator."""


def summed(many: Iterable[Measures]) -> dict[str, Measure]:
    """The figures of several tasks or batches together."""
    found: dict[str, Measure] = {}
    for measures in many:
        for name, measure in measures.items():
            found[name] = found.get(name, Measure()) + measure
    return found


def measures_from(document: Mapping[str, Mapping[str, float]]) -> dict[str, Measure]:
    """Measures as a task reported them; figures of later versions are left out."""
    known = {f.name for f in fields(Measure)}
    return {
        name: Measure(**{k: v for k, v in figures.items() if k in known})  # type: ignore[arg-type]
        for name, figures in document.items()
    }
