"""Windows as slices: the paned and the paired rewriting, and their composition (paper 0, 3 and 4).

In: windows W[r, s]. Out: slices from which every window can be assembled, with the period and the
rate of edges. The paired rewriting has one slice a slide when r is a multiple of s, and two
otherwise; r < s (hopping) needs only the second of them, the first is a gap. Composing means taking
the edges of all: all slices from which a set of windows can be computed have these edges (theorem
1), so that no composition is shorter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from operator import sub
from typing import Final

from terascope.functions.slices import SliceVector

MOST_SLICES: Final = 4096
"""The most slices of a composition: windows with a longer one do not share slices."""
MOST_EDGES: Final = 4 * MOST_SLICES
"""The most edges that are accepted before composing: many edges may coincide."""


@dataclass(frozen=True, order=True)
class Periodic:
    """The window W[r, s]: at every multiple t of the slide the tuples in [t-r, t)."""

    range: int
    slide: int

    @property
    def edges(self) -> tuple[int, ...]:
        """The positions within a slide at which windows begin or end."""
        return tuple(sorted({0, -self.range % self.slide}))

    def needs(self, start: int, end: int) -> bool:
        """Whether a window contains the slice [start, end), inside of which there is no edge."""
        last = start + self.range  # the latest end of a window that begins at or before `start`
        return last - last % self.slide >= end


def paired(window: Periodic) -> SliceVector:
    """The paired window: (s - r mod s, r mod s), or (s) when r is a multiple of s."""
    return with_gaps(window.edges, window.slide, [window])


def with_gaps(edges: Iterable[int], period: int, windows: Sequence[Periodic]) -> SliceVector:
    """The slices between edges; slices that no window contains are gaps."""
    starts = sorted(set(edges))
    cuts = [*starts, period]
    lengths = tuple(map(sub, cuts[1:], cuts))
    if any(window.range >= window.slide for window in windows):
        return SliceVector(lengths)
    gaps = (
        i
        for i, (a, b) in enumerate(pairwise(cuts))
        if not any(window.needs(a, b) for window in windows)
    )
    return SliceVector(lengths, frozenset(gaps))


def stretched(vector: SliceVector, times: int) -> SliceVector:
    """The same slices with a period that is this many times as long."""
    number = len(vector.lengths)
    gaps = frozenset(i + k * number for k in range(times) for i in vector.gaps)
    return SliceVector(vector.lengths * times, gaps)


def most_edges(windows: Iterable[Periodic]) -> tuple[int, int]:
    """The common period, and an upper bound of the edges in it."""
    known = list(windows)
    period = math.lcm(*(w.slide for w in known))
    return period, sum(len(w.edges) * (period // w.slide) for w in known)


def composed(windows: Iterable[Periodic]) -> SliceVector | None:
    """The composition of all windows; None when a period would have too many slices."""
    known = sorted(set(windows))
    period, edges = most_edges(known)
    if edges > MOST_EDGES:
        return None
    found: set[int] = set()
    for window in known:
        for first in window.edges:
            found.update(range(first, period, window.slide))
    if len(found) > MOST_SLICES:
        return None
    return shortest(with_gaps(found, period, known))


def composed_panes(windows: Sequence[Periodic]) -> SliceVector | None:
    """The composition of the windows as paned windows, which have many more edges; None when a
    period would have too many slices.
    """
    period = math.lcm(*(w.slide for w in windows))
    steps = {math.gcd(w.range, w.slide) for w in windows}
    if sum(period // step for step in steps) > MOST_EDGES:
        return None
    edges = {edge for step in steps for edge in range(0, period, step)}
    return None if len(edges) > MOST_SLICES else with_gaps(edges, period, windows)


def shortest(vector: SliceVector) -> SliceVector:
    """The same slices with the shortest period after which they repeat."""
    # A gap counts as a length below zero.
    marked = vector.lengths
    if vector.gaps:
        marked = tuple([-n if i in vector.gaps else n for i, n in enumerate(vector.lengths)])
    for part in divisors(len(marked)):
        if marked[part:] == marked[:-part]:
            return SliceVector(vector.lengths[:part], frozenset(i for i in vector.gaps if i < part))
    return vector


@lru_cache(maxsize=MOST_SLICES)
def divisors(number: int) -> tuple[int, ...]:
    """The divisors of a number that are smaller than it."""
    return tuple([part for part in range(1, number // 2 + 1) if number % part == 0])


def rate(vector: SliceVector) -> Fraction:
    """The rate beta of a composition: kept slices per unit of time."""
    return Fraction(len(vector.lengths) - len(vector.gaps), vector.period)
