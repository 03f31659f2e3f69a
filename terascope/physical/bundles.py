"""The size of splits, and bundling of splits into tasks: neighbours, about equally large, ending
where epochs end.

In: the splits of a read. Out: for each task the splits it reads, one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path

from terascope.connectors.base import Edge, Split
from terascope.connectors.registry import Interface

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
