"""The last rule: a Job must be sane.

In: a draft with its operators. Out: the same draft. A Job that an executor could not run is a
mistake of an earlier rule; it is refused with all its mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from terascope.physical.draft import JobDraft
from terascope.physical.operators import Operator, Placement, WriteRows
from terascope.plan.rel import PlanMistake

ORDER: Final[Mapping[Placement, int]] = {
    "task": 0, "partition": 0, "host": 1, "close": 2, "merge": 2, "driver": 2, "spark": 3,
}  # fmt: skip
"""Rows move from places of a lower number to places of the same or a higher one."""


def check_job(draft: JobDraft) -> JobDraft:
    """Before: a draft      After: the same draft, if every operator can run where it is placed."""
    visible = [output.stream for output in draft.outputs]
    mistakes = list(mistakes_of(draft.operators, visible))
    if mistakes:
        raise PlanMistake("the job is not sane: " + "; ".join(mistakes))
    return draft


def mistakes_of(operators: tuple[Operator, ...], visible: list[str]) -> Iterator[str]:
    """All mistakes in a list of operators. `visible`: the queries whose rows are emitted."""
    known: dict[str, Operator] = {}
    read: set[str] = set()
    for operator in operators:
        if operator.name in known:
            yield f"two operators are called '{operator.name}'"
        if not operator.places:
            yield f"'{operator.name}' has no place"
        for name in operator.inputs:
            if name not in known:
                yield f"'{operator.name}' reads '{name}', which does not come before it"
            elif not flows(known[name], operator):
                yield f"'{operator.name}' is placed before '{name}', which it reads"
        if any(ORDER[a] > ORDER[b] for a, b in pairwise(operator.places)):
            yield f"the places of '{operator.name}' are out of order"
        known[operator.name] = operator
        read.update(operator.inputs)
    written = [operator.query for operator in operators if isinstance(operator, WriteRows)]
    if written != visible:
        yield f"the rows of {visible} are to be emitted, and those of {written} are"
    for name, operator in known.items():
        if name not in read and not isinstance(operator, WriteRows):
            yield f"nothing reads '{name}'"


def flows(before: Operator, after: Operator) -> bool:
    """Whether rows can move from one operator to another, at least to its last place."""
    return ORDER[before.places[0]] <= ORDER[after.places[-1]]
