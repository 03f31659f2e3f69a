"""How many rows leave a bounded hash table in an epoch, evicted and flushed (paper 4, VI).

Problem: the planner compares thousands of table sizes, so that it needs a formula and cannot run
the tables. The paper's lemma 6.1 assumes a table that always keeps the most frequent groups; real
tables evict far more (`bench/trees/eviction_rates.py` has the lemma, `terascope bench
fig3-evictions` the comparison).

Idea: one curve describes the stream, D(t): the distinct groups among t tuples. A group that was
seen t tuples ago is found again if it survived the D(t) groups that came since:
- in an LRU table, if these are fewer than the buckets (Che's approximation);
- in a direct-mapped table, with probability exp(-D/b): each of them takes its place with 1/b;
- with a second place, more often: only groups both of whose places are taken evict it, so that the
  exponent is smaller by the share of places in use.
Every row that enters a table leaves it, so that n - (tuples found again) rows leave in an epoch of
n tuples.

Cost: sums over ranks are sums over about 80 bins of ranks, the first ranks one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from terascope.sharing.model import TableModel

Floats: TypeAlias = npt.NDArray[np.float64]

SINGLE_RANKS: Final = 24
BINS: Final = 56
TIMES: Final = 112
EARLIEST: Final = 0.05
MOST_SUPPORT: Final = 1e12
NEAR_ONE: Final = 1e-6


@dataclass(frozen=True)
class Ranks:
    """A distribution in bins: the groups of a bin are drawn with the same probability."""

    groups: Floats
    probability: Floats

    def distinct(self, draws: float) -> float:
        """The expected number of distinct groups among this many draws."""
        return float(-(self.groups * np.expm1(-self.probability * draws)).sum())


@lru_cache(maxsize=4096)
def zipf(groups: float, exponent: float) -> Ranks:
    """Zipf's law over this many groups, with the first ranks one by one and the others in bins."""
    groups = max(1.0, groups)
    single = int(min(groups, SINGLE_RANKS))
    ranks = np.arange(1.0, single + 1)
    count, weight = np.ones(single), ranks**-exponent
    if groups > single:
        edges = np.geomspace(single, groups, BINS + 1) + 0.5
        edges[-1] = groups + 0.5
        width = np.diff(edges)
        if abs(exponent - 1) < NEAR_ONE:
            mass = np.diff(np.log(edges))
        else:
            mass = np.diff(edges ** (1 - exponent)) / (1 - exponent)
        count, weight = np.append(count, width), np.append(weight, mass / width)
    return Ranks(count, weight / (count * weight).sum())


@lru_cache(maxsize=4096)
def support(seen: float, exponent: float, draws: float) -> float:
    """The number of groups for which `seen` distinct ones are expected among the draws."""
    if seen >= draws * 0.999:
        return MOST_SUPPORT
    low, high = seen, seen
    while zipf(high, exponent).distinct(draws) < seen and high < MOST_SUPPORT:
        low, high = high, high * 4
    for _ in range(40):
        middle = (low * high) ** 0.5
        if zipf(middle, exponent).distinct(draws) < seen:
            low = middle
        else:
            high = middle
        if high < low * 1.0005:
            break
    return high


def filtered(ranks: Ranks, fraction: float) -> Ranks:
    """The distribution of the rows that tables above let pass, `fraction` of all rows.

    Tables absorb frequent groups, the more frequent the more: p becomes p / (1 + p tau). If few
    rows pass, all groups are equally frequent.
    """
    if fraction >= 1:
        return ranks
    passed = ranks.probability / (1 + ranks.probability * _tau(ranks, fraction))
    return Ranks(ranks.groups, passed / (ranks.groups * passed).sum())


def _tau(ranks: Ranks, fraction: float) -> float:
    """Find tau by Newton's method over log tau, kept within a bracket."""
    low, high = -20.0, 60.0
    at = 0.0
    for _ in range(60):
        tau = float(np.exp(at))
        share = 1 / (1 + ranks.probability * tau)
        mass = ranks.groups * ranks.probability * share
        left = float(mass.sum()) - fraction
        if abs(left) < 1e-6 * fraction:
            break
        low, high = (at, high) if left > 0 else (low, at)
        slope = -float((mass * (1 - share)).sum())
        at = at - left / slope if slope < 0 else (low + high) / 2
        if not low < at < high:
            at = (low + high) / 2
    return float(np.exp(at))


@dataclass(frozen=True)
class Reuse:
    """The curve D(t) of an epoch, and its slope: the chance that a draw is a new group."""

    draws: float
    times: Floats
    distinct: Floats
    slope: Floats

    @property
    def again(self) -> Floats:
        """The tuples of the epoch by the time since their group's last tuple."""
        middle = (self.times[1:] + self.times[:-1]) / 2
        return np.asarray((self.draws - middle) * -np.diff(self.slope))


def reuse(ranks: Ranks, draws: float) -> Reuse:
    times = np.append(0.0, np.geomspace(min(EARLIEST, draws / 4), draws, TIMES))
    left = np.exp(-np.outer(times, ranks.probability))
    return Reuse(draws, times, (1 - left) @ ranks.groups, left @ (ranks.groups * ranks.probability))


def leaving(curve: Reuse, buckets: Floats, model: TableModel) -> Floats:
    """The rows that leave tables of these sizes in the epoch; with endless buckets, D(draws)."""
    if model == "lru":
        time = np.interp(buckets, curve.distinct, curve.times)
        slope = np.interp(time, curve.times, curve.slope)
        held = np.minimum(buckets, curve.distinct[-1])
        return np.asarray(held + slope * (curve.draws - time))
    since = (curve.distinct[1:] + curve.distinct[:-1]) / 2
    again = curve.again
    places = np.maximum(buckets, 1e-9)[:, None]
    if model == "second_chance":
        came = since**EARLY * curve.distinct[-1] ** (1 - EARLY)
        housed = second_homes(came / places)
        others = 1 - second_homes(curve.distinct[-1] / places)
        stays = housed + (1 - housed) * np.exp(-since * others / places)
    else:
        stays = np.exp(-since / places)
    found = stays @ again
    return np.asarray(np.where(buckets > 0, curve.draws - found, curve.draws))


def in_use(buckets: float, groups: float, model: TableModel) -> float:
    """The places that hold a group when an epoch ends.

    Direct-mapped: the places that any group maps to. With a second place a group has no place only
    if both are taken, so that u, the share in use, rises with the groups: du/dg = (1 - u^2) / b.
    """
    if model == "direct_mapped" and buckets > 0:
        return float(buckets * -np.expm1(-groups / buckets))
    if model == "second_chance" and buckets > 0:
        return float(buckets * np.tanh(groups / buckets))
    return min(buckets, groups)


def second_homes(load: Floats) -> Floats:
    """Of the groups with competitors at their first place, the share at their second.

    `load` is groups per place. A place is free for strangers if none of its own groups needs it:
    these are absent, or live at their own second place (about half of them came later than the
    stranger). A group tries its second place once it meets another group at its first.
    """
    lookers = np.maximum(load * -np.expm1(-load), 1e-12)
    housed = np.zeros_like(load)
    for _ in range(HOMES_STEPS):
        free = np.exp(-load * (1 - housed / 2))
        housed = free * -np.expm1(-lookers) / lookers
    return housed


HOMES_STEPS: Final = 12
EARLY: Final = 0.25
"""Frequent groups come early and find free places: the factor measured between Zipf 0.5 and 1.3."""
