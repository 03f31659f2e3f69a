"""The number of groups of a population, from a uniform sample of its tuples (paper 4, footnote 3).

In: the frequencies of frequencies of a sample of r tuples. Out: the number of groups among any
other number n of tuples of the same stream, and bounds that hold whatever the distribution is.

`gee` is the guaranteed-error estimator of Charikar et al.: wrong by a factor of about sqrt(n/r) at
most, and no estimator can guarantee much better. Plans use `GroupGrowth`: a mixture of Poisson
rates is fitted to the frequencies, and gives the number of groups in n tuples. It covers skewed,
uniform and unique keys; docs/decisions.md has the errors beside those of other estimators.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from terascope.hashing import GOLDEN, mix
from terascope.machine_code import compiled

Floats: TypeAlias = NDArray[np.float64]
Hashes: TypeAlias = NDArray[np.uint64]
Codes: TypeAlias = NDArray[np.int32]
Ints: TypeAlias = NDArray[np.int64]

RARE: Final = 32
"""A group of more tuples than this is common: the sample missed no group of this kind."""
STARTS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 20, 26)
"""Sizes up to RARE are binned from each of these to the next, to save time."""
PER_DECADE: Final = 8
STEPS: Final = 800
STILL: Final = 1e-5
FEW: Final = 20
"""The number of groups of one or two tuples that a fit needs at least."""
SIGMAS: Final = 4.0


def gee(found: Frequencies, scale: float) -> float:
    """The guaranteed-error estimate sqrt(n/r) f1 + f2 + f3 + ..., where `scale` is n/r."""
    single = found.of_size(1)
    return math.sqrt(max(1.0, scale)) * single + found.groups - single


def bounds(found: Frequencies, scale: float) -> tuple[float, float]:
    """Limits of the number of groups among `scale` times the tuples of a sample.

    Below: the groups that were seen. Above: (n/r) f1 + f2 + f3 + ..., whose expectation is at least
    the number of groups, with four standard deviations of f1; and never more than one new group for
    each tuple that was not seen.
    """
    known = float(found.groups)
    if scale <= 1.0:
        return known, known
    single = found.of_size(1)
    upper = known + (scale - 1.0) * single + scale * SIGMAS * math.sqrt(single + 1.0)
    return known, min(upper, known + (scale - 1.0) * found.tuples)


@dataclass(frozen=True)
class GroupGrowth:
    """The number of groups by the number of tuples; exact at the size of the sample."""

    found: Frequencies
    rates: Floats
    """The expected tuples of a group in the sample; 0 stands for groups that occur only once."""
    groups: Floats
    """The groups of each rate that the sample has."""

    def seen_in(self, scale: float) -> float:
        """The groups among `scale` times the tuples of the sample."""
        if scale <= 1.0:
            return self._seen_in_part(max(0.0, scale))
        low, high = bounds(self.found, scale)
        single = self.found.of_size(1)
        if not single:
            return low
        if not len(self.rates):
            return min(gee(self.found, scale), high)
        common = self.found.groups - self.groups.sum()
        return float(np.clip(common + self.groups @ chances(self.rates, scale), low, high))

    def _seen_in_part(self, scale: float) -> float:
        """Groups in part of the sample: a group is missed when all its tuples are."""
        missed = (1.0 - scale) ** self.found.sizes
        return float(self.found.numbers @ (1.0 - missed))


def fit_growth(found: Frequencies, scale: float) -> GroupGrowth:
    """Fit the rates of the groups to the frequencies of a sample. `scale` is the largest multiple
    of the sample for which the fit will be used; it bounds the smallest rate that matters.
    """
    rare = found.sizes <= RARE
    if found.of_size(1) + found.of_size(2) < FEW:
        return GroupGrowth(found, np.zeros(0), np.zeros(0))
    seen = np.zeros(len(STARTS))
    places = np.searchsorted(STARTS, found.sizes[rare], side="right") - 1
    np.add.at(seen, places, found.numbers[rare])
    rates, likely = mixture(rounded(max(2.0, scale)))
    # The groups of a rate that are seen begin in proportion to it, as if there were as many groups
    # of each: rates without evidence keep these weights. Begun with equal numbers of seen groups,
    # estimates from samples of 2% are a seventh too large in the mean.
    weights = np.maximum(rates, rates[1])
    weights /= weights.sum()
    climb(seen, likely, weights, STEPS, STILL)
    return GroupGrowth(found, rates, weights * seen.sum())


def rounded(scale: float) -> float:
    """Round to a power of the square root of two, so that few mixtures are made."""
    return float(2.0 ** (math.ceil(2.0 * math.log2(scale)) / 2.0))


@lru_cache(maxsize=64)
def mixture(scale: float) -> tuple[Floats, Floats]:
    """The rates of a mixture, and for each rate the probability of each size of a rare group in the
    sample. Rates of less than half a tuple of the population count as 0.
    """
    low, high = 0.5 / scale, 1.5 * RARE
    number = math.ceil(PER_DECADE * math.log10(high / low))
    rates = np.concatenate([[0.0], np.geomspace(low, high, number)])
    sizes = np.arange(1, RARE + 1)
    logs = np.array([math.lgamma(size + 1) for size in sizes])
    likely = np.zeros((len(rates), RARE))
    likely[0, 0] = 1.0
    likely[1:] = np.exp(sizes * np.log(rates[1:, None]) - rates[1:, None] - logs)
    likely /= likely.sum(axis=1, keepdims=True)
    together = np.add.reduceat(likely, np.array(STARTS) - 1, axis=1)
    return rates, np.ascontiguousarray(together)


def chances(rates: Floats, scale: float) -> Floats:
    """The expected groups among `scale` times the tuples, for each group of a rate."""
    out = np.full(len(rates), scale)
    out[1:] = np.expm1(-rates[1:] * scale) / np.expm1(-rates[1:])
    return out


@compiled
def climb(seen: Floats, likely: Floats, weights: Floats, steps: int, still: float) -> None:
    """Expectation maximisation: every step makes the weights more likely."""
    total = seen.sum()
    gains = np.empty(len(seen))
    for _ in range(steps):
        gains[:] = 0.0
        for k in range(len(weights)):
            for j in range(len(seen)):
                gains[j] += weights[k] * likely[k, j]
        for j in range(len(seen)):
            gains[j] = seen[j] / total / gains[j] if gains[j] > 0.0 else 0.0
        moved = 0.0
        for k in range(len(weights)):
            factor = 0.0
            for j in range(len(seen)):
                factor += likely[k, j] * gains[j]
            moved += abs(weights[k] * (factor - 1.0))
            weights[k] *= factor
        if moved < still:
            return


@dataclass(frozen=True)
class Frequencies:
    """`numbers[i]` groups have `sizes[i]` tuples each; sizes rise."""

    sizes: Ints
    numbers: Ints

    @property
    def tuples(self) -> int:
        return int(self.sizes @ self.numbers)

    @property
    def groups(self) -> int:
        return int(self.numbers.sum())

    def of_size(self, size: int) -> int:
        return int(self.numbers[self.sizes == size].sum())


def attribute_hashes(codes: Codes | Ints, attribute: str) -> Hashes:
    """The hashes of the values of an attribute. Equal codes of two attributes have different
    hashes, so that the hash of a set is the sum of the hashes of its attributes.
    """
    seed = (crc32(attribute.encode()) + 1) * GOLDEN % (1 << 64)
    return mixed(codes.astype(np.int64), np.uint64(seed))


def set_hashes(columns: Iterable[Hashes], count: int) -> Hashes:
    """The hashes of a set of attributes, whatever the order of the attributes."""
    total = np.zeros(count, np.uint64)
    for column in columns:
        total += column
    return total


def count_groups(hashes: Hashes) -> Frequencies:
    """The number of occurrences of each different hash."""
    by_size = frequencies(hashes)
    sizes = np.flatnonzero(by_size)
    return Frequencies(sizes.astype(np.int64), by_size[sizes])


@compiled
def mixed(words: Ints, seed: np.uint64) -> Hashes:
    out = np.empty(len(words), np.uint64)
    for i in range(len(words)):
        out[i] = mix(np.uint64(words[i]) + seed)
    return out


@compiled
def frequencies(hashes: Hashes) -> Ints:
    """Count groups by their tuples, in an open-addressing table at most half full."""
    places = 16
    while places < 2 * len(hashes):
        places *= 2
    top = np.uint64(places - 1)
    held = np.empty(places, np.uint64)
    counts = np.zeros(places, np.int32)
    most = 0
    for i in range(len(hashes)):
        # A sum of hashes that are even in all their low bits would crowd: the middle bits decide.
        at = (hashes[i] >> np.uint64(20)) & top
        while counts[at] != 0 and held[at] != hashes[i]:
            at = (at + np.uint64(1)) & top
        held[at] = hashes[i]
        counts[at] += 1
        most = max(most, counts[at])
    by_size = np.zeros(most + 1, np.int64)
    for place in range(places):
        by_size[counts[place]] += 1
    by_size[0] = 0
    return by_size
