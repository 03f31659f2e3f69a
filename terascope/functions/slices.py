"""Sliced windows: time cut at edges that repeat with a period (paper 0, definition 2).

In: the lengths of the slices of a period, as numbers or as text. Out: `SliceVector`, which says in
which slice a time lies. Periods begin at multiples of their length, before time 0 too; slices are
half-open, so that a time on an edge is in the slice that begins there. A slice in brackets is a
gap: no window has it, and tuples in it are of no use.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, groupby

from terascope.functions.base import ValueMistake

SLICE = re.compile(r"(?:\((\d+)\)|(\d+))(?:x(\d{1,6}))?")
"""The length of a gap, or else that of a slice; and how many of them there are."""
MOST_SLICES = 1 << 20


@dataclass(frozen=True)
class SliceVector:
    """W(s1, ..., sn)."""

    lengths: tuple[int, ...]
    gaps: frozenset[int] = frozenset()
    """Places of slices that no window has."""

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 1:
            raise ValueMistake("slices are one or more lengths of at least 1")

    def __str__(self) -> str:
        return self._text

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.lengths, self.gaps))

    @cached_property
    def _text(self) -> str:
        gaps = self.gaps
        words: Iterable[str] = map(str, self.lengths)
        if gaps:
            words = (f"({word})" if i in gaps else word for i, word in enumerate(words))
        runs = [(word, len(list(same))) for word, same in groupby(words)]
        return " ".join([word if times == 1 else f"{word}x{times}" for word, times in runs])

    @cached_property
    def period(self) -> int:
        return sum(self.lengths)

    @cached_property
    def kept(self) -> Mapping[int, int]:
        """The number of slices of each length that windows have in a period."""
        if not self.gaps:
            return Counter(self.lengths)
        return Counter(n for i, n in enumerate(self.lengths) if i not in self.gaps)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The begin of each slice, counted from the begin of the period."""
        return (0, *accumulate(self.lengths[:-1]))

    def place(self, time: int) -> int:
        """The place in its period of the slice that a time lies in."""
        return bisect_right(self.starts, time % self.period) - 1

    def start(self, time: int) -> int:
        return time - time % self.period + self.starts[self.place(time)]

    def end(self, time: int) -> int:
        return self.start(time) + self.lengths[self.place(time)]

    def has(self, time: int) -> bool:
        """Whether a window has the slice."""
        return self.place(time) not in self.gaps


@lru_cache(maxsize=256)
def parse_slices(text: str) -> SliceVector:
    """`12 3`; `(5) 5` with a gap; `30x4 60` for four of 30 and one of 60."""
    words = text.split()
    if "".join(words).isdecimal():
        return SliceVector(tuple(map(int, words)))
    found = [match for word in words if (match := SLICE.fullmatch(word))]
    times = [int(match[3] or 1) for match in found]
    if not words or len(found) < len(words) or sum(times) > MOST_SLICES:
        raise ValueMistake(f"'{text}' are no slices: write their lengths, such as '12 3'")
    lengths: list[int] = []
    gaps: set[int] = set()
    for match, number in zip(found, times, strict=True):
        gap, kept, _ = match.groups()
        if gap:
            gaps.update(range(len(lengths), len(lengths) + number))
        lengths += [int(gap or kept)] * number
    return SliceVector(tuple(lengths), frozenset(gaps))
