"""Tasks that end where epochs end, though splits do not.

In: the splits of the tasks of a read, one range of time after the other. Out: the same tasks, with
the splits at the border of two tasks read by both, each of which takes only the tuples of its own
epochs. No epoch is divided then, so no partial group is exchanged.

A row group of a Parquet file or a block of a capture ends anywhere. In 12 epochs read by 8 tasks
nearly every epoch is in two tasks, and all of their groups would be partial: packed, exchanged and
merged. To decode a split twice costs about as much as three aggregations over it (a tuple: 65 ns
and 17 to 25 ns), so it pays where there are many aggregations, and splits are short beside epochs.

Nothing depends on the bounds of splits being right: of the tasks that read a split the first takes
all tuples before its end, the last all tuples behind its begin, whatever their times are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from terascope.connectors.base import Edge, Split, SplitRange
from terascope.physical.splits import split_bytes

DECODING: Final = 3.0
"""The cost of decoding a tuple, in aggregations."""
MOST_EDGES: Final = 4096
"""The number of edges that are looked at."""
LARGEST: Final = 1.5
"""The largest task, in sizes of the mean one; the same as for tasks that end at edges by chance."""


def cut_at_edges(
    tasks: Sequence[tuple[Split, ...]], edge: Edge | None, aggregations: int
) -> list[tuple[Split, ...]]:
    """Before: neighbouring tasks have parts of the same epoch      After: each epoch is in one
    task. The tasks as they are where that cannot be had, or would cost more than it saves.
    """
    kept = list(tasks)
    if edge is None or len(tasks) < 2:
        return kept
    bounds = [bounds_of(task, edge.column) for task in tasks]
    if None in bounds:
        return kept
    known = [bound for bound in bounds if bound is not None]
    for step, share in ((edge.step, 1.0), (edge.often, 0.5)):  # of the aggregations
        if step:
            made = cut_by(step, kept, known, edge.column, share * aggregations)
            if made is not None:
                return made
    return kept


def bounds_of(task: Sequence[Split], column: str) -> tuple[int, int] | None:
    """The least and the greatest value in a task; None where they are not known."""
    found = [split.bound(column) for split in task]
    known = [bound for bound in found if bound is not None]
    if not known or len(known) < len(found):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def cut_by(
    step: int,
    tasks: Sequence[tuple[Split, ...]],
    bounds: Sequence[tuple[int, int]],
    column: str,
    aggregations: float,
) -> list[tuple[Split, ...]] | None:
    """The tasks with cuts at multiples of a step; None: as they are, they are better."""
    divided = 0
    for place in range(1, len(tasks)):
        before = max(high for _, high in bounds[:place])
        after = min(low for low, _ in bounds[place:])
        divided += before // step >= after // step
    every = [split for task in tasks for split in task]
    weights = split_bytes(every)
    total = sum(weights)
    if not divided or not total:
        return None
    spread = TimeSpread(every, weights, column)
    cuts = spread.even_cuts(step, len(tasks))
    made: list[tuple[Split, ...]] = []
    costs: list[float] = []
    again = -total
    shares = np.diff([0.0, *(spread.below(cut) for cut in cuts), total])
    for (begin, end), share in zip(pairwise((None, *cuts, None)), shares, strict=True):
        parts = [within(split, column, begin, end) for split in every]
        made.append(tuple(part for part in parts if part is not None))
        read = sum(w for w, part in zip(weights, parts, strict=True) if part is not None)
        again += read
        costs.append(DECODING * read + aggregations * float(share))
    if not all(made) or max(costs) > LARGEST * sum(costs) / len(tasks):
        return None
    first, last = min(low for low, _ in bounds), max(high for _, high in bounds)
    saved = min(total, total * divided * step / (last + 1 - first))
    return made if DECODING * again <= aggregations * saved else None


class TimeSpread:
    """The bytes of splits over time, as if the tuples of each were spread evenly over its range."""

    def __init__(self, splits: Sequence[Split], weights: Sequence[float], column: str) -> None:
        found = [bound for split in splits if (bound := split.bound(column)) is not None]
        self.first, self.last = min(low for low, _ in found), max(high for _, high in found)
        self._lows = np.array([low for low, _ in found], np.float64)
        self._spans = np.array([high - low + 1 for low, high in found], np.float64)
        self._weights = np.array(weights)

    def below(self, time: float) -> float:
        """The bytes of tuples before a time."""
        shares = np.clip((time - self._lows) / self._spans, 0.0, 1.0)
        return float(np.dot(self._weights, shares))

    def even_cuts(self, step: int, tasks: int) -> list[int]:
        """The multiples of a step that divide the tuples into about equally large tasks; fewer
        where there are not as many epochs.
        """
        first, last = self.first // step + 1, self.last // step
        stride = max(1, (last - first) // MOST_EDGES)
        edges = range(first * step, last * step + 1, stride * step)
        if not edges:
            return []
        below = np.array([self.below(edge) for edge in edges])
        wanted = np.arange(1, tasks) * self._weights.sum() / tasks
        places = np.abs(below[None, :] - wanted[:, None]).argmin(axis=1)
        return [edges[place] for place in np.unique(places).tolist()]


def within(split: Split, column: str, begin: int | None, end: int | None) -> Split | None:
    """A split as the task reads it that has the tuples from `begin` to before `end`; None: it has
    none of them.
    """
    bound = split.bound(column)
    assert bound is not None
    low, high = bound
    if (begin is not None and high < begin) or (end is not None and low >= end):
        return None
    least = begin if begin is not None and low < begin else None
    less = end if end is not None and high >= end else None
    if least is None and less is None:
        return split
    own = low if least is None else least, high if less is None else less - 1
    bounds = tuple((name, *own) if name == column else (name, a, b) for name, a, b in split.bounds)
    whole = {**vars(split), "bounds": bounds}
    return SplitRange(**whole, column=column, least=least, less=less)
