"""The splits of sources: their size, the tasks that read them, and the epochs a task sees alone.

In: the splits of a read, with the bounds of their columns. Out: for each task the splits it reads,
one after the other: neighbours, about equally large, ending where epochs end. For an aggregation
the epochs that no other task has tuples of (they are complete where they are, and need no
exchange), and how far time has moved when only some splits are left. Nothing is taken from declared
orders: bounds are facts about the files, so that disorder costs time and never an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from terascope.connectors.base import Edge, Split
from terascope.connectors.registry import Interface
from terascope.functions.base import Value
from terascope.kernels.columns.arrays import Ints
from terascope.kernels.merge.groups import NO_EPOCH
from terascope.physical.low_plan import LowAggregate
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Expr, columns_of
from terascope.types import INT_MAX

SPLIT_BYTES = 4 << 20
"""The bytes of a split: small, so that any file feeds all cores; tasks read several."""
LARGE_SPLIT_BYTES = 16 << 20
MANY_SPLITS = 32
"""Beyond this number splits are made larger, because each split has a fixed cost."""
BUNDLE_BYTES = 32 << 20
"""Splits smaller than this are read together by one task."""
UNEVEN = 0.1
"""The share by which a task may be larger or smaller if it then ends at an edge."""


def fitting_split_bytes(interfaces: Iterable[Interface]) -> int:
    """The size of the splits of some sources."""
    files = {path for one in interfaces if one.is_there for path in one.files}
    total = sum(file_bytes(str(path)) for path in files)
    return min(LARGE_SPLIT_BYTES, max(SPLIT_BYTES, total // MANY_SPLITS))


def with_any_bounds(splits: Sequence[Split]) -> list[Split]:
    """The splits, empty ones with the last bounds of a neighbour: of no tuple everything is true,
    and what is unknown of one split is unknown of the source.
    """
    found: list[Split] = []
    last = next((split.bounds for split in splits if split.bounds), ())
    for split in splits:
        if split.is_empty:
            split = replace(split, bounds=tuple((name, high, high) for name, _, high in last))
        found.append(split)
        last = split.bounds or last
    return found


def bundles(
    splits: Sequence[Split],
    tasks: int,
    edge: Edge | None = None,
    most_bytes: float = BUNDLE_BYTES,
) -> list[tuple[Split, ...]]:
    """Bundle neighbouring splits until a task has its part of the whole, but at most `most_bytes`.
    With an edge, a task ends at an edge that lies between half and one and a half times of that
    size; without one in this range it ends anywhere.
    """
    if len(splits) <= tasks:
        return [(split,) for split in splits] or [()]
    weights = split_bytes(splits)
    enough = min(most_bytes, sum(weights) / tasks)
    given: list[tuple[Split, ...]] = []
    current: list[Split] = []
    filled = 0.0
    for split, weight in zip(splits, weights, strict=True):
        at_edge = edge is not None and bool(current) and is_edge(current[-1], split, edge)
        full = enough / 2 if at_edge else enough if edge is None else 1.5 * enough
        if current and filled + weight / 2 > full:
            given.append(tuple(current))
            current, filled = [], 0.0
        current.append(split)
        filled += weight
    return [*given, tuple(current)]


def by_time(splits: Sequence[Split], edge: Edge) -> list[tuple[Split, ...]]:
    """The splits of several partitions in ranges of time, each with the splits whose times overlap;
    nothing where times are not known. Ranges may have one epoch in common.
    """
    known = [(bound, split) for split in splits if (bound := split.bound(edge.column)) is not None]
    if len(known) < len(splits):
        return []
    ranges: list[list[Split]] = []
    furthest = 0
    for (low, high), split in sorted(known, key=lambda one: one[0]):
        if not ranges or low // edge.step >= furthest:
            ranges.append([])
        ranges[-1].append(split)
        furthest = max(furthest, high // edge.step)
    return [tuple(one) for one in ranges]


def ranges_of_tasks(ranges: Sequence[Sequence[Split]], tasks: int) -> list[tuple[Split, ...]]:
    """Ranges of time in about equally large tasks, none of them divided."""
    every = [split for one in ranges for split in one]
    weights = dict(zip(every, split_bytes(every), strict=True))
    sizes = [sum(weights[split] for split in one) for one in ranges]
    share = sum(sizes) / tasks
    made: list[list[Split]] = [[]]
    filled = 0.0
    for one, size in zip(ranges, sizes, strict=True):
        if made[-1] and filled + size / 2 > share * len(made):
            made.append([])
        made[-1] += one
        filled += size
    return [tuple(one) for one in made]


def even_bundles(
    splits: Sequence[Split], tasks: int, edge: Edge | None = None
) -> list[tuple[Split, ...]]:
    """Bundle neighbouring splits into about equally large tasks: the tasks of a micro-batch start
    and end together. Of the places where tasks are about equal, one at an edge is best.
    """
    if len(splits) <= tasks:
        return [(split,) for split in splits] or [()]
    before = [0.0, *accumulate(split_bytes(splits))]
    share = before[-1] / tasks
    cuts = [0]
    for number in range(1, tasks):
        places = range(cuts[-1] + 1, len(splits) - (tasks - number) + 1)
        off = {place: abs(before[place] - number * share) for place in places}
        nearest = min(off.values())
        close = [place for place in places if off[place] <= max(nearest, UNEVEN * share)]
        cuts.append(min(close, key=lambda p: (edge_rank(splits, p, edge), off[p])))
    return [tuple(splits[a:b]) for a, b in pairwise([*cuts, len(splits)])]


def edge_rank(splits: Sequence[Split], place: int, edge: Edge | None) -> int:
    """The quality of a place to cut at: 0 where the longest epochs end, 1 where most do, else 2."""
    if edge is None:
        return 2
    steps = (edge.step, edge.often or edge.step)
    found = [is_edge(splits[place - 1], splits[place], replace(edge, step=s)) for s in steps]
    return found.index(True) if any(found) else 2


def is_edge(before: Split, after: Split, edge: Edge) -> bool:
    """Whether another epoch begins between two neighbours."""
    if before.path != after.path:
        return True
    last, first = before.bound(edge.column), after.bound(edge.column)
    return last is not None and first is not None and last[1] // edge.step < first[0] // edge.step


def split_bytes(splits: Sequence[Split]) -> list[float]:
    """The bytes of each split: its share of its file; connectors may count in row groups."""
    units: Counter[str] = Counter()
    for split in splits:
        units[split.path] += split.end - split.start
    sizes = {path: file_bytes(path) for path in units}
    return [sizes[s.path] * (s.end - s.start) / max(1, units[s.path]) for s in splits]


def file_bytes(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return BUNDLE_BYTES


@dataclass(frozen=True)
class Epochs:
    """Epochs from `first` to `last`, both included; None: no limit on that side."""

    first: int | None = None
    last: int | None = None

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
    epoch = query.epoch_expr
    if epoch is None or not splits:
        return None
    column, evaluate = epoch_of(epoch)
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
        key = query.epoch_expr, query.interfaces
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
