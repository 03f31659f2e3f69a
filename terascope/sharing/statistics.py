"""Statistics of any set of attributes, estimated from a sample of the source.

In: a uniform sample of the tuples of some epochs, as hashes of every attribute. Out: the number of
groups in an epoch, or in any other number of tuples, with bounds; and their skew, the
exponent alpha of p(rank) ~ rank^-alpha (paper 4, VI), 0 for groups that are equally frequent. Each
set of attributes is counted at its first use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from math import log2, prod
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import numpy as np

from terascope.sharing.distinct import (
    Floats,
    Frequencies,
    GroupGrowth,
    Hashes,
    attribute_hashes,
    bounds,
    count_groups,
    fit_growth,
    set_hashes,
)

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def remembered(
    method: Callable[Concatenate[SampledStatistics, Asked], Answer],
) -> Callable[Concatenate[SampledStatistics, Asked], Answer]:
    """A method that computes each answer once."""

    @wraps(method)
    def asked(self: SampledStatistics, /, *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
        key = (method.__name__, *args)
        if key not in self._known:
            self._known[key] = method(self, *args, **kwargs)
        answer: Answer = self._known[key]
        return answer

    return asked


@dataclass(frozen=True)
class SampledStatistics:
    """Statistics of the tuples of an epoch.

    Equal values in two epochs are two groups: with several epochs in the sample, the hash of the
    epoch is part of every set, and the statistics are means over the epochs.
    """

    hashes: Mapping[str, Hashes]
    """The hashes of an attribute, one for each tuple of the sample."""
    sampled: int
    """The number of tuples in the sample."""
    tuples: float
    """The tuples of an epoch; `sampled` is a uniform sample of the tuples of `epochs` epochs."""
    rate: float | None = None
    """Tuples a second."""
    epochs: int = 1
    epoch_hashes: Hashes | None = None
    """The hashes of the epochs, where there are several."""
    places: Floats | None = None
    """The position of each tuple in its epoch, from 0 to 1. With positions, parts of an epoch are
    counted piece by piece, because groups come in bursts."""
    _known: dict[tuple[object, ...], Any] = field(default_factory=dict, repr=False)
    """The answers given so far."""

    @property
    def is_whole(self) -> bool:
        """Whether every tuple of the epochs is in the sample: then the groups are exact."""
        return not self.sampled or self._scale(self.tuples) <= 1.0

    @remembered
    def frequencies(self, attributes: frozenset[str]) -> Frequencies:
        """Groups of the sample by their number of tuples.

        Raises:
            KeyError: the sample has no such attribute.
        """
        columns = [self.hashes[attribute] for attribute in attributes]
        if self.epoch_hashes is not None:
            columns.append(self.epoch_hashes)
        return count_groups(columns[0] if len(columns) == 1 else set_hashes(columns, self.sampled))

    def groups(self, attributes: frozenset[str], tuples: float | None = None) -> float:
        """The number of groups in an epoch, or in a slice of this many neighbouring tuples."""
        return self._estimate(attributes, self.tuples if tuples is None else tuples)

    @remembered
    def in_pieces(self, number: int) -> SampledStatistics:
        """The statistics of an epoch that is cut into this many pieces of equally many tuples."""
        assert self.places is not None
        piece = np.minimum((self.places * number).astype(np.int64), number - 1)
        own = attribute_hashes(piece, "piece")
        return SampledStatistics(
            self.hashes,
            self.sampled,
            self.tuples / number,
            self.rate,
            self.epochs * number,
            own if self.epoch_hashes is None else own + self.epoch_hashes,
        )

    @remembered
    def _estimate(self, attributes: frozenset[str], tuples: float) -> float:
        if not self.sampled or tuples <= 0:
            return 0.0
        if not attributes:
            return 1.0
        if self.places is not None and tuples < self.tuples:
            return self._in_part(attributes, tuples)
        found = self._growth(attributes).seen_in(self._scale(tuples)) / self.epochs
        if len(attributes) > 1:
            alone = [self.groups(frozenset({one}), tuples) for one in attributes]
            found = min(max(found, *alone), prod(alone))
        return max(min(found, tuples), min(1.0, tuples))

    def _in_part(self, attributes: frozenset[str], tuples: float) -> float:
        """Groups in less than an epoch; above half an epoch, interpolated."""
        if 2.0 * tuples <= self.tuples:
            return self.in_pieces(round(self.tuples / tuples)).groups(attributes, tuples)
        half, whole = self.groups(attributes, self.tuples / 2), self.groups(attributes)
        return float(half * (whole / half) ** (1.0 + log2(tuples / self.tuples)))

    def bounds(self, attributes: frozenset[str]) -> tuple[float, float]:
        """Bounds of the number of groups in an epoch, for any distribution."""
        if not attributes or not self.sampled:
            return (0.0, 0.0) if not self.sampled else (1.0, 1.0)
        low, high = bounds(self.frequencies(attributes), self._scale(self.tuples))
        return low / self.epochs, high / self.epochs

    @remembered
    def exponent(self, attributes: frozenset[str]) -> float:
        """The Zipf exponent of an epoch's groups; 0: all are equally frequent."""
        if not attributes or not self.sampled:
            return 0.0
        groups = self.groups(attributes) * self.epochs
        return exponent(self.frequencies(attributes), groups, self.epochs)

    @remembered
    def _growth(self, attributes: frozenset[str]) -> GroupGrowth:
        return fit_growth(self.frequencies(attributes), self._scale(self.tuples))

    def _scale(self, tuples: float) -> float:
        """Tuples as a multiple of the sample; a whole sample is never rounded to a part."""
        scale = tuples * self.epochs / self.sampled
        return 1.0 if abs(scale - 1.0) < 1e-9 else scale


FIRST_RANK: Final = 3
"""The first rank of the fit: the first two groups are often exceptional, such as a name server."""
LEAST_TUPLES: Final = 8
"""The least tuples of a rank in the fit: below, chance outweighs the frequency."""
ENOUGH_RANKS: Final = 96
POINTS: Final = 80
STEEPEST: Final = 4.0
BINS: Final = 256
SIGMAS: Final = 4.0


def exponent(found: Frequencies, groups: float, epochs: int = 1) -> float:
    """The slope of the rank-frequency curve in logarithms, from the third rank to the last rank
    with eight tuples. `groups` is the number of groups of the population; groups of several epochs
    are ranked together, so that the third rank of each epoch comes later.

    Groups that differ no more than by chance are uniform. Where few groups of many have eight
    tuples, the exponent is the one with which draws from so many groups repeat as often as the
    tuples of the sample do.
    """
    if is_uniform(found, groups):
        return 0.0
    first = FIRST_RANK * epochs
    ranks = int(found.numbers[found.sizes >= LEAST_TUPLES].sum())
    if ranks >= first + ENOUGH_RANKS or (ranks > first and 2 * ranks > groups):
        return slope(found, first)
    return matching(found.tuples / epochs, found.groups / epochs, groups / epochs)


def is_uniform(found: Frequencies, groups: float) -> bool:
    """Whether pairs of tuples fall into the same group as often as with equally frequent groups,
    which is once in `groups` pairs, up to four standard deviations more.
    """
    sizes, tuples = found.sizes.astype(np.float64), float(found.tuples)
    if tuples < 2 or groups < 2:
        return True
    same = float(found.numbers @ (sizes * (sizes - 1))) / (tuples * (tuples - 1))
    return same * groups < 1.0 + SIGMAS * math.sqrt(2.0 * groups) / tuples


def slope(found: Frequencies, first: int = FIRST_RANK) -> float:
    """The slope of log(tuples) over -log(rank), at ranks that are evenly spaced in logarithms."""
    often = found.sizes >= LEAST_TUPLES
    tuples = np.repeat(found.sizes[often], found.numbers[often])[::-1]
    if len(tuples) <= first:
        return 0.0
    ranks = np.unique(np.geomspace(first, len(tuples), POINTS).astype(np.int64))
    x, y = np.log(ranks), np.log(tuples[ranks - 1])
    x = x - x.mean()
    return float(np.clip(-(x @ y) / (x @ x), 0.0, STEEPEST))


def matching(draws: float, seen: float, groups: float) -> float:
    """The exponent with which this many draws are expected to see this many of the groups."""
    low, high = 0.0, STEEPEST
    if seen >= min(groups, expected_groups(draws, groups, low)):
        return low
    if seen <= expected_groups(draws, groups, high):
        return high
    while high - low > 1e-3:
        middle = (low + high) / 2
        if expected_groups(draws, groups, middle) > seen:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def expected_groups(draws: float, groups: float, alpha: float) -> float:
    """The expected number of different groups among independent draws from a Zipf-like law."""
    ranks, widths = bins(max(1, round(groups)))
    weights = ranks**-alpha
    chance = np.minimum(weights / (weights @ widths), 1.0 - 1e-12)
    return float(widths @ -np.expm1(draws * np.log1p(-chance)))


@lru_cache(maxsize=64)
def bins(groups: int) -> tuple[Floats, Floats]:
    """Ranks that represent themselves and their neighbours, with the number that each represents;
    the first ranks represent themselves alone.
    """
    apart = np.round(np.geomspace(1, groups, min(groups, BINS)))
    first = np.unique(np.concatenate([np.arange(1.0, min(groups, BINS // 4) + 1), apart]))
    last = np.append(first[1:] - 1.0, float(groups))
    return np.sqrt(first * last), last - first + 1.0
