"""Windows: which ones a tuple belongs to (paper 0, section 3; our windows are [t-r, t)).

In: tuples with a time, or elements with a [wstart, wend) of their own. Out: each tuple once per
window it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, assert_never

from terascope.plan.rel import WEND, WSTART, Slices, Sliding, Window, WindowSpec
from terascope.reference.rows import Row

Interval: TypeAlias = tuple[int, int]
"""[start, end)"""


def window(rel: Window, rows: list[Row]) -> list[Row]:
    """A tuple without a time belongs to no window."""
    names = rel.source.names
    kept = [i for i, name in enumerate(names) if name not in (WSTART, WEND)]
    # A tuple at time ts is the element [ts, ts+1): times are integers.
    edges, length = ((WSTART, WEND), 0) if rel.elements else ((rel.on, rel.on), 1)
    first, second = map(names.index, edges)
    given: list[Row] = []
    for row in rows:
        if row[first] is None or row[second] is None:
            continue
        found = windows_around(rel.spec, row[first], row[second] + length)
        values = tuple(row[i] for i in kept)
        given += [values + interval for interval in found]
    return given


def windows_around(spec: WindowSpec, start: int, end: int) -> Iterator[Interval]:
    """All windows that contain [start, end)."""
    match spec:
        case Sliding(range_, slide):
            t = -(-end // slide) * slide  # the first multiple of slide at or after `end`
            while t - range_ <= start:
                yield t - range_, t
                t += slide
        case Slices():
            low, high = slice_at(spec, start)
            if end <= high:
                yield low, high
        case _:
            assert_never(spec)


def slice_at(spec: Slices, time: int) -> Interval:
    """The slice that contains a time; floor arithmetic makes it right before time 0 too."""
    period = sum(spec.lengths)
    low = time // period * period
    for length in spec.lengths:
        if time < low + length:
            return low, low + length
        low += length
    raise AssertionError("a time lies in one of the slices of its period")


def windows_between(spec: WindowSpec, first: Interval, last: Interval) -> Iterator[Interval]:
    """The windows strictly between two, in order."""
    match spec:
        case Sliding(range_, slide):
            for t in range(first[1] + slide, last[1], slide):
                yield t - range_, t
        case Slices():
            following = slice_at(spec, first[1])
            while following[0] < last[0]:
                yield following
                following = slice_at(spec, following[1])
        case _:
            assert_never(spec)
