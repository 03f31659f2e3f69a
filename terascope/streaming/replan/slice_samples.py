"""Statistics of a slice, from the samples of the tasks that had tuples of it.

In: samples of tasks, batch by batch. Out: for every slice that is over the pieces that were sampled
of it, and the statistics of a piece, or of those of its tuples that meet a condition.

A piece is what one task has of a slice in one micro-batch. Its tables are empty before it and after
it: how many groups a piece has decides what a tree saves in a stream, not how many a slice has. So
a piece is what statistics call an epoch, and a slice is sampled when some of its pieces are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import expm1
from typing import Final

import numpy as np

from terascope.sharing.counting import attribute_hashes
from terascope.sharing.model import Statistics
from terascope.sharing.statistics import SampledStatistics
from terascope.streaming.replan.tuple_samples import Flags, Prints, TupleSample

MOST_TUPLES: Final = 1 << 15
"""Sampled tuples of a slice; beyond that whole pieces are dropped."""
PIECE: Final = "#piece"


@dataclass(frozen=True)
class SampledPiece:
    """A sample of what one task had of a slice in one batch."""

    chance: float
    keys: Mapping[str, Prints]
    count: int
    met: Mapping[str, Flags] = field(default_factory=dict)
    """As samples have it."""

    def meeting(self, conditions: Collection[str]) -> SampledPiece:
        """The tuples that meet one of some conditions."""
        if not self.met:
            return self
        rows = np.flatnonzero(np.logical_or.reduce([self.met[name] for name in conditions]))
        keys = {name: vector[rows] for name, vector in self.keys.items()}
        return SampledPiece(self.chance, keys, len(rows))


def pieces_of(sample: TupleSample) -> Iterable[tuple[int, SampledPiece]]:
    """The pieces of a sample, by epoch."""
    for epoch in np.unique(sample.epochs):
        rows = np.flatnonzero(sample.epochs == epoch)
        keys = {name: vector[rows] for name, vector in sample.keys.items()}
        met = {name: flags[rows] for name, flags in sample.met.items()}
        yield int(epoch), SampledPiece(sample.chance, keys, len(rows), met)


@dataclass
class SliceSamples:
    """The slices of one family."""

    _slices: dict[int, list[SampledPiece]] = field(default_factory=dict)
    _newest: int | None = None
    _over: int | None = None
    """Up to here slices were given away."""

    def add(self, samples: Iterable[TupleSample]) -> None:
        for sample in samples:
            for epoch, piece in pieces_of(sample):
                self._add(epoch, piece)

    def _add(self, epoch: int, piece: SampledPiece) -> None:
        if self._over is not None and epoch <= self._over:
            return
        if self._newest is None or epoch > self._newest:
            self._newest = epoch
        pieces = self._slices.setdefault(epoch, [])
        pieces.append(piece)
        while len(pieces) > 1 and sum(one.count for one in pieces) > MOST_TUPLES:
            del pieces[::2]

    def take_over(self) -> list[list[SampledPiece]]:
        """The slices that are over, for tuples of a later one came: each is given once."""
        over = sorted(epoch for epoch in self._slices if epoch != self._newest)
        self._over = over[-1] if over else self._over
        return [self._slices.pop(epoch) for epoch in over]


class SampledTraffic:
    """Statistics of some slices, from sampled pieces."""

    def __init__(self, pieces: Sequence[SampledPiece]) -> None:
        self._pieces = pieces
        self._known: dict[frozenset[str], SampledStatistics] = {}

    def of(self, conditions: frozenset[str]) -> tuple[Statistics, float]:
        """Of the tuples that meet one of some conditions: statistics of a piece, and how many
        pieces there are.
        """
        found = self._known.get(conditions)
        if found is None:
            pieces = [piece.meeting(conditions) for piece in self._pieces]
            found = self._known[conditions] = statistics_of(pieces)
        return found, found.epochs


def statistics_of(pieces: Sequence[SampledPiece]) -> SampledStatistics:
    """The statistics of a mean piece."""
    chance = min(piece.chance for piece in pieces)
    random = np.random.default_rng(1)
    kept = []
    for piece in pieces:  # as if all had been thinned alike
        number = int(random.binomial(piece.count, chance / piece.chance))
        kept.append(np.sort(random.choice(piece.count, number, replace=False)))
    counts = np.array([len(rows) for rows in kept])
    sampled = int(counts.sum())
    number = len(pieces)
    if chance < 1.0:  # pieces of which no tuple was drawn are there, too
        seen = max(1, int(np.count_nonzero(counts)))
        number = max(1, round(sampled / expected_count(sampled / seen, chance)))
    vectors = {}
    for name in pieces[0].keys:
        values = [piece.keys[name][rows] for piece, rows in zip(pieces, kept, strict=True)]
        vectors[name] = attribute_hashes(np.concatenate(values).astype(np.int64), name)
    numbers = np.repeat(np.arange(len(pieces)), counts)
    return SampledStatistics(
        vectors,
        sampled,
        sampled / chance / number,
        epochs=number,
        epoch_hashes=attribute_hashes(numbers, PIECE) if len(pieces) > 1 else None,
    )


def expected_count(mean: float, least: float) -> float:
    """How many tuples of a piece are drawn, given the mean of those of which any are: it is
    x / (1 - exp(-x)) for draws at random from pieces of one size.
    """
    found = mean
    for _ in range(100):
        found = mean * -expm1(-found)
    return max(found, least)
