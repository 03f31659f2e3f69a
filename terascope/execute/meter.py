"""Counters of the operators of one task.

In: calls of the operators, once a batch or a block and never once a tuple. Out: a `Measure` for
each operator, by its name in the Job (`group flows_low`), as JSON in the task's report; and on the
driver the sum over all tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, TypeVar

from terascope.physical.job import Job
from terascope.physical.operators import Measure, MergeGroups, measures_from, summed

Item = TypeVar("Item")


@dataclass
class Meter:
    """The figures of one task, by operator."""

    figures: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, operator: str, **figures: float) -> None:
        known = self.figures.setdefault(operator, {})
        for name, value in figures.items():
            known[name] = known.get(name, 0) + value

    @contextmanager
    def timing(self, operator: str) -> Iterator[None]:
        """Count the time of a block of code."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add(operator, seconds=perf_counter() - start)

    def over(
        self, operator: str, items: Iterable[Item], size: Callable[[Item], int] | None = None
    ) -> Iterator[Item]:
        """Pass items on, and count the time to make each. `size`: the tuples, groups or rows of an
        item.
        """
        iterator = iter(items)
        while True:
            with self.timing(operator):
                item = next(iterator, None)
            if item is None:
                return
            if size is not None:
                self.add(operator, given=size(item))
            yield item

    def report(self, read: str = "") -> dict[str, Any]:
        """The figures as JSON. `read`: the source that the task reads."""
        return {"read": read, "measures": self.figures}


def measures_of(job: Job, reports: Iterable[Mapping[str, Any]]) -> dict[str, Measure]:
    """The sum of the figures of all tasks. A low-level stream with tuples of several sources is one
    operator for each source, which its tasks do not know.
    """
    names = {operator.name for operator in job.operators}

    def named(report: Mapping[str, Any]) -> dict[str, Measure]:
        measures = measures_from(report.get("measures", {}))
        own = {n if n in names else f"{n} of {report['read']}": m for n, m in measures.items()}
        return {name: measure for name, measure in own.items() if name in names}

    found = summed(map(named, reports))
    for operator in job.operators:  # operators that count only what they give
        one = found.get(operator.name)
        if one is not None and not one.taken:
            # A merge takes the exchanged groups; groups of its other inputs were complete.
            read = operator.inputs[:1] if isinstance(operator, MergeGroups) else operator.inputs
            above = sum(found[name].given for name in read if name in found)
            found[operator.name] = replace(one, taken=above)
    return found
