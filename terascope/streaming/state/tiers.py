"""Spans of slices, merged once, so that long windows need not read every slice.

In: the slices of a stream, its windows, and the stored spans of the tiers above the slices. Out:
the spans to read so that all due windows can be assembled, and the spans to build now. A span of a
tier consists of eight of those below, or of eight periods of the slices, and begins at a multiple
of its length. Of a range of r/s slices some ten spans of each tier are read: a window costs O(log
r/s) merges, even if it is the only one that is due.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from terascope.functions.slices import SliceVector
from terascope.physical.stream.windows import Length
from terascope.streaming.state.segments import Segment

MOST_EDGES: Final = 256
"""With more edges of due windows, slices are read: each serves many windows."""
BUILT_AT_ONCE: Final = 4
"""The most spans of a stream that one micro-batch builds."""
MARK: Final = "+"
"""Between the key of a stream and the length of the spans of a tier."""

SLICES: Final[Length] = 0


@dataclass(frozen=True)
class SliceSpan:
    """The span [start, end) of a tier."""

    tier: Length
    start: int
    end: int


def tier_stream(key: str, tier: Length) -> str:
    """The stored stream with the spans of a tier."""
    return key if tier == SLICES else f"{key}{MARK}{tier}"


def base_stream(key: str) -> str:
    """The stream of the slices of a stored stream."""
    return key.partition(MARK)[0]


@dataclass(frozen=True)
class Built:
    """The stored spans of a stream: their starts, by tier."""

    vector: SliceVector
    begins: Mapping[Length, Collection[int]]

    def cover(self, first: int, until: int, edges: Collection[int] = ()) -> list[SliceSpan]:
        """The longest spans that cover all time from `first` up to `until`, both edges of slices,
        with no edge inside.
        """
        cuts = sorted({edge for edge in edges if first < edge < until} | {until})
        longest_first = sorted(self.begins, reverse=True)
        found: list[SliceSpan] = []
        at = first
        for cut in cuts:
            while at < cut:
                made = self._longest(at, cut, longest_first)
                found.append(made)
                at = made.end
        return found

    def _longest(self, at: int, until: int, tiers: Sequence[Length]) -> SliceSpan:
        for tier in tiers:
            if at % tier == 0 and at + tier <= until and at in self.begins[tier]:
                return SliceSpan(tier, at, at + tier)
        return SliceSpan(SLICES, at, self.vector.end(at))

    def missing(self, tiers: Iterable[Length], since: int, until: int) -> Iterator[SliceSpan]:
        """Spans that could be built of closed slices, the latest of the shortest tier first."""
        for tier in sorted(tiers):
            known = self.begins.get(tier, ())
            for end in range(until // tier * tier, since + tier - 1, -tier):
                if end - tier not in known:
                    yield SliceSpan(tier, end - tier, end)


def within(
    segments: Iterable[Segment], spans: Iterable[SliceSpan], tier: Length
) -> Iterator[Segment]:
    """The segments of a tier that may have something of one of the spans."""
    begins = sorted(span.start for span in spans if span.tier == tier)
    for segment in segments:
        if segment.low is not None and segment.high is not None:
            place = bisect_left(begins, segment.low)
            if place < len(begins) and begins[place] <= segment.high:
                yield segment
