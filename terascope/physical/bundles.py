"""Splits put together into tasks: neighbours, about equally large, ending where epochs end.

In: the splits of a read. Out: for each task the splits it reads, one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from terascope.connectors.base import Edge, Split

BUNDLE_BYTES = 32 << 20
"""Splits smaller than this are read together by one task."""


def bundles(
    splits: Sequence[Split],
    tasks: int,
    edge: Edge | None = None,
    most_bytes: float = BUNDLE_BYTES,
) -> list[tuple[Split, ...]]:
    """Neighbouring splits put together until they are worth a task: a part of the whole, but no
    more than `most_bytes`. With an edge a task ends at one: from half of that on, and elsewhere
    only when there is none up to one and a half times as much.
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


def is_edge(before: Split, after: Split, edge: Edge) -> bool:
    """Whether another epoch begins between two neighbours."""
    if before.path != after.path:
        return True
    last, first = before.bound(edge.column), after.bound(edge.column)
    return last is not None and first is not None and last[1] // edge.step < first[0] // edge.step


def split_bytes(splits: Sequence[Split]) -> list[float]:
    """The size of each split: its share of its file, for a connector may count in row groups."""
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
