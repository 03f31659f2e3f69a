"""How many groups a population has, from a uniform sample of its tuples (paper 4, footnote 3).

In: the frequencies of frequencies of a sample of r tuples. Out: the number of groups among any
other number n of tuples of the same stream, and bounds that hold whatever the distribution is.

`gee` is the guaranteed-error estimator of Charikar et al.: off by a factor of about sqrt(n/r) at
most, and none can promise much better. `Growth` is what plans use: a mixture of Poisson rates is
fitted to the frequencies, and says how many groups are seen in n tuples. Skewed, uniform and unique
keys all come out; docs/decisions.md has the errors beside those of other estimators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import compiled
from terascope.sharing.counting import Frequencies

Floats: TypeAlias = NDArray[np.float64]

RARE: Final = 32
"""A group of more tuples than this is common: none like it was missed by the sample."""
STARTS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 20, 26)
"""Sizes up to RARE are taken together from here to the next: more would only cost time."""
PER_DECADE: Final = 8
STEPS: Final = 800
STILL: Final = 1e-5
FEW: Final = 20
"""So many groups of one or two tuples are needed to fit anything to them."""
SIGMAS: Final = 4.0


def gee(found: Frequencies, scale: float) -> float:
    """sqrt(n/r) f1 + f2 + f3 + ...; `scale`: n/r."""
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
    """The number of groups as a function of the number of tuples, which it is exact for at 1."""

    found: Frequencies
    rates: Floats
    """Tuples in the sample that a group can expect; 0 stands for groups that never come again."""
    groups: Floats
    """Of each rate, those that were seen."""

    def seen_in(self, scale: float) -> float:
        """Groups among `scale` times the tuples of the sample."""
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
        """A group of j tuples is missed when each of them is: no model is needed."""
        missed = (1.0 - scale) ** self.found.sizes
        return float(self.found.numbers @ (1.0 - missed))


def fit_growth(found: Frequencies, scale: float) -> GroupGrowth:
    """Fit the rates of the groups to what a sample has of them; `scale`: how far it will be asked
    for, which says how small a rate makes a difference.
    """
    rare = found.sizes <= RARE
    if found.of_size(1) + found.of_size(2) < FEW:
        return GroupGrowth(found, np.zeros(0), np.zeros(0))
    seen = np.zeros(len(STARTS))
    places = np.searchsorted(STARTS, found.sizes[rare], side="right") - 1
    np.add.at(seen, places, found.numbers[rare])
    rates, likely = mixture(rounded(max(2.0, scale)))
    # The groups of a rate that are seen begin in proportion to it, as if there were as many groups
    # of each: what the sample does not tell stays so. Begun with equal numbers of seen groups,
    # estimates from samples of 2% are a seventh too large in the mean.
    weights = np.maximum(rates, rates[1])
    weights /= weights.sum()
    climb(seen, likely, weights, STEPS, STILL)
    return GroupGrowth(found, rates, weights * seen.sum())


def rounded(scale: float) -> float:
    """To a power of the square root of two, so that few mixtures are made."""
    return float(2.0 ** (math.ceil(2.0 * math.log2(scale)) / 2.0))


@lru_cache(maxsize=64)
def mixture(scale: float) -> tuple[Floats, Floats]:
    """Rates, and how likely a rare group of each has which size once it is seen. Rates of half a
    tuple of the population and less are like 0.
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
    """Groups of a rate among `scale` times the tuples, for each that the sample has seen."""
    out = np.full(len(rates), scale)
    out[1:] = np.expm1(-rates[1:] * scale) / np.expm1(-rates[1:])
    return out


@compiled
def climb(seen: Floats, likely: Floats, weights: Floats, steps: int, still: float) -> None:
    """Expectation maximisation: the weights become more likely with every step."""
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
