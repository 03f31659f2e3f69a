"""Which epochs a task sees alone, and which are over while it reads.

In: the splits of the tasks, with the bounds of their columns. Out: for an aggregation the epochs
that no other task has tuples of (they are complete where they are, and need no exchange), and how
far time has moved when only some splits are left. Nothing is taken from declared orders: bounds are
facts about the files, so that disorder costs time and never an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from terascope.connectors.base import Split
from terascope.low.plan import LowAggregate
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import columns_of


@dataclass(frozen=True)
class Epochs:
    """Epochs from `first` to `last`, both included; None: no limit on that side."""

    first: int | None = None
    last: int | None = None

    def __contains__(self, epoch: int) -> bool:
        return (self.first is None or epoch >= self.first) and (
            self.last is None or epoch <= self.last
        )


EVERYTHING = Epochs()


def owned(query: LowAggregate, tasks: Sequence[Sequence[Split]]) -> list[Epochs | None]:
    """For each task the epochs that are its own; None where that cannot be said."""
    ours = [[s for s in task if s.interface in query.interfaces] for task in tasks]
    if sum(bool(splits) for splits in ours) <= 1:
        return [EVERYTHING] * len(tasks)
    ranges = [span(query, splits) for splits in ours]
    if any(splits and r is None for splits, r in zip(ours, ranges, strict=True)):
        return [None] * len(tasks)
    return [alone(i, ranges) for i in range(len(tasks))]


def alone(task: int, ranges: Sequence[tuple[int, int] | None]) -> Epochs | None:
    own = ranges[task]
    if own is None:
        return None
    first, last = own
    for other in (r for i, r in enumerate(ranges) if i != task and r is not None):
        if other[0] <= first and other[1] >= last:
            return None
        if other[0] <= first:
            first = max(first, other[1] + 1)
        elif other[1] >= last:
            last = min(last, other[0] - 1)
        elif other[0] <= last:  # in the midst of ours
            return None
    return Epochs(first, last) if first <= last else None


def span(query: LowAggregate, splits: Sequence[Split]) -> tuple[int, int] | None:
    """The first and the last epoch of some splits."""
    if query.epoch is None or not splits:
        return None
    epoch = query.keys[query.epoch][1]
    (column,) = columns_of(epoch)
    known = [bounds_of(split, column) for split in splits]
    found = [b for b in known if b is not None]
    if len(found) < len(known):
        return None
    evaluate = compile_expr(epoch, (column,), {})
    first = evaluate((min(low for low, _ in found),))
    last = evaluate((max(high for _, high in found),))
    return None if first is None or last is None else (first, last)


def bounds_of(split: Split, column: str) -> tuple[int, int] | None:
    return next(((low, high) for name, low, high in split.bounds if name == column), None)


def over_before(query: LowAggregate, left: Sequence[Split]) -> int | None:
    """The earliest epoch the splits that are left may have tuples of; None when not known, or when
    nothing is left.
    """
    relevant = [s for s in left if s.interface in query.interfaces]
    reach = span(query, relevant) if relevant else None
    return None if reach is None else reach[0]
