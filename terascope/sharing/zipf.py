"""The skew of the groups of an attribute set: the exponent of a Zipf-like law (paper 4, VI).

In: the frequencies of frequencies of a sample. Out: the exponent alpha of p(rank) ~ rank^-alpha, 0
for groups that are equally frequent.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np

from terascope.sharing.distinct import Floats, Frequencies

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
