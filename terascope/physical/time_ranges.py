"""Ranges of time to which partitions send their tuples, instead of partial groups.

In: the splits of a read, whose bounds are known, and a number of tasks. Out: `TimeRanges`: for each
task the tuples from one edge between epochs to another, whatever partition has them. A task that
gets all tuples of an epoch completes its groups, as a task does that reads a range of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from terascope.connectors.base import Edge, Split
from terascope.kernels.columns.arrays import Ints
from terascope.physical.job import SourceRead
from terascope.physical.ownership import KeyOwnership
from terascope.physical.splits import split_bytes
from terascope.physical.time_cuts import TimeSpread, bounds_of

SENT: Final = "tuples"
"""The kind of splits that hold tuples which other tasks have sent."""


@dataclass(frozen=True)
class TimeRanges:
    """Ranges of a column; every tuple is in one of them."""

    column: str
    edges: tuple[int, ...]
    """The first value of each range, and the number behind the last value of the last one."""

    @property
    def count(self) -> int:
        return len(self.edges) - 1

    def numbers(self, values: Ints) -> Ints:
        """The range of each value."""
        return np.searchsorted(np.array(self.edges[1:-1], np.int64), values, "right")

    def splits(self, interfaces: Iterable[str]) -> list[tuple[Split, ...]]:
        """Return, for each range, splits with its bounds that stand for the tuples of the
        interfaces.
        """
        names = tuple(interfaces)
        return [
            tuple(Split(SENT, n, "", 0, 0, 0, (), ((self.column, a, b - 1),)) for n in names)
            for a, b in pairwise(self.edges)
        ]


def ranges_for(read: SourceRead, tasks: int) -> TimeRanges:
    """About equally large ranges, one for each task where there are as many epochs. They end where
    all epochs end, or, where that makes too few, where most do.
    """
    edge = read.edge
    assert edge is not None
    spread = TimeSpread(read.splits, split_bytes(read.splits), edge.column)
    found = [spread.even_cuts(step, tasks) for step in (edge.step, edge.often) if step]
    enough = (cuts for cuts in found if 2 * len(cuts) >= tasks - 1)
    cuts = next(enough, max(found, key=len))
    return TimeRanges(edge.column, (spread.first, *cuts, spread.last + 1))


def has_epochs(read: SourceRead, edge: Edge) -> bool:
    """Whether the times of a read are known, and are those of several epochs."""
    found, step = bounds_of(read.splits, edge.column), edge.often or edge.step
    return found is not None and found[0] // step < found[1] // step


def partition_part(read: SourceRead, owned: KeyOwnership) -> SourceRead:
    """Return the read that the tasks of partitions do: without the aggregations that are computed
    from the tuples they send, but with all columns.
    """
    if read.name not in owned.sending:
        return read
    assert read.low is not None
    own = {query.name for query in read.queries} - owned.sending[read.name]
    return replace(read, low=read.low.part_of(own))


def sent_part(read: SourceRead, owned: KeyOwnership) -> SourceRead:
    """Return the read that the tasks of ranges do: of the columns that partitions send them."""
    assert read.low is not None
    assert read.edge is not None
    low = read.low.part_of(owned.sending[read.name])
    used = low.columns_used | {read.edge.column}
    low = replace(low, columns=tuple(c for c in low.columns if c.name in used))
    return replace(read, name=f"{read.name} by time", low=low, clocks=())


def read_parts(reads: Iterable[SourceRead], owned: KeyOwnership | None) -> Iterator[SourceRead]:
    """Each read; one that is done in two parts as both of them."""
    for read in reads:
        if owned is None or read.name not in owned.sending:
            yield read
        else:
            yield partition_part(read, owned)
            yield sent_part(read, owned)
