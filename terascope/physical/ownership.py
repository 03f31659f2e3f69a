"""The epochs that a task reads alone, and the epochs that end while it reads.

In: the splits of the tasks, with the bounds of their columns. Out: for an aggregation the epochs of
which no other task has tuples (they are complete in the task and need no exchange), and the epochs
that are over when only some splits are left. Bounds are facts about the files, not declared orders,
so that disorder costs time and never an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from terascope.connectors.base import Split
from terascope.functions.base import Value
from terascope.kernels.columns.dictionary import Ints
from terascope.kernels.merge.groups import NO_EPOCH
from terascope.physical.low_plan import LowAggregate
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Expr, columns_of
from terascope.types import INT_MAX


@dataclass(frozen=True)
class Epochs:
    """Epochs from `first` to `last`, both included; None: no limit on that side."""

    first: int | None = None
    last: int | None = None

    def __contains__(self, epoch: int) -> bool:
        return (self.first is None or epoch >= self.first) and (
            self.last is None or epoch <= self.last
        )

    def contain(self, epochs: Ints) -> NDArray[np.bool_]:
        """The mask of epochs in this range; NULL belongs to a range without a limit."""
        inside = np.ones(len(epochs), np.bool_)
        if self.first is not None:
            inside &= epochs >= self.first
        if self.last is not None:
            inside &= (epochs <= self.last) & (epochs != NO_EPOCH)
        return inside


EVERYTHING = Epochs()


def owned(query: LowAggregate, tasks: Sequence[Sequence[Split]]) -> list[Epochs | None]:
    """For each task the epochs that it owns; None where that is unknown."""
    ours = [[s for s in task if s.interface in query.interfaces] for task in tasks]
    having = sum(bool(splits) for splits in ours)
    if having <= 1:
        return [EVERYTHING if splits or not having else None for splits in ours]
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
    column, evaluate = epoch_of(query.keys[query.epoch][1])
    known = [split.bound(column) for split in splits]
    found = [b for b in known if b is not None]
    if len(found) < len(known):
        return None
    first = evaluate((min(low for low, _ in found),))
    last = evaluate((max(high for _, high in found),))
    return None if first is None or last is None else (first, last)


@lru_cache(maxsize=256)
def epoch_of(key: Expr) -> tuple[str, Callable[[tuple[Value, ...]], Value]]:
    """The column of a temporal key, and the function from the column to the key."""
    (column,) = columns_of(key)
    return column, compile_expr(key, (column,), {})


ALL: Final = INT_MAX
"""An epoch after all others: all epochs are over."""


@dataclass(frozen=True)
class Timeline:
    """The epochs of an aggregation along the splits of a task."""

    earliest: Sequence[int | None]
    """For each position among the splits, and for their end, the earliest epoch from there on; None
    where that is unknown."""
    last: Sequence[int | None]
    """The last epoch of each split; None where that is unknown, or there is none."""

    def ends_with(self, place: int) -> bool:
        """Whether no epoch continues from a split into later ones, as far as that is known."""
        last, next_ = self.last[place], self.earliest[place + 1]
        return last is None or next_ is None or last < next_


def timelines(queries: Sequence[LowAggregate], splits: Sequence[Split]) -> list[Timeline]:
    """The timeline of each query; queries with the same epochs share one."""
    known: dict[tuple[Expr | None, tuple[str, ...]], Timeline] = {}
    found: list[Timeline] = []
    for query in queries:
        key = (None if query.epoch is None else query.keys[query.epoch][1], query.interfaces)
        if key not in known:
            known[key] = timeline(query, splits)
        found.append(known[key])
    return found


def timeline(query: LowAggregate, splits: Sequence[Split]) -> Timeline:
    earliest: list[int | None] = [ALL]
    last: list[int | None] = []
    for split in reversed(splits):
        after = earliest[-1]
        own = None
        if split.interface in query.interfaces:
            own = span(query, [split])
            after = None if own is None or after is None else min(own[0], after)
        earliest.append(after)
        last.append(None if own is None else own[1])
    return Timeline(earliest[::-1], last[::-1])
