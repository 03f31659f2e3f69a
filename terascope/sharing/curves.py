"""How many rows leave a table, for every size of the table and of its input (paper 4, equation 1).

In: statistics of an attribute set, the kind of table. Out: a `Curve`: out(b, n), the rows that
leave a table of b buckets in an epoch in which n rows enter it, evicted and flushed ones.

n = tuples is the stream itself; a smaller n is the output of the tables above, in which frequent
groups are rarer than in the stream.

Invariant: g <= out(b, n) <= n, because every group enters at least once; out falls with b, rises
with n, and never rises faster than n. The proof of Algorithm 2 rests on that. Where the formulas of
the eviction rates do not keep to it, they are clipped.

Cost: the formulas are computed once for a grid of 8 inputs and 96 sizes, and interpolated.

Eviction rates (paper 4, VI): the planner compares thousands of table sizes, so that it needs a
formula and cannot run the tables. The paper's lemma 6.1 assumes a table that always keeps the most
frequent groups; real tables evict far more (`bench/trees/eviction_rates.py` has the lemma,
`terascope bench fig3-evictions` the comparison).

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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from math import exp, log
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from terascope.sharing.model import Attributes, Statistics, TableModel

Floats: TypeAlias = npt.NDArray[np.float64]

INPUTS: Final = 8
SIZES: Final = 96
GRID: Final = 4 * (INPUTS - 1) + 1
"""The inputs of a form: every input of a curve, and three between each two of them."""
SMALLEST: Final = 1e-5
MOST_PLACES: Final = 8.0
"""Places per group beyond which a direct-mapped table is not made larger."""
SPREAD: Final = 1.001
"""The least ratio between the largest and the smallest input of a curve."""
GROUP_STEP, EXPONENT_STEP = 0.05, 0.01
"""Attribute sets whose groups and exponents differ by less than this share one computation."""


@dataclass(frozen=True)
class Curve:
    """out(b, n), linear in b and geometric in n between the points of a grid."""

    groups: float
    log_inputs: Floats
    buckets: Floats
    log_out: Floats

    @property
    def most(self) -> float:
        """The number of buckets beyond which more buckets change nothing."""
        return float(self.buckets[-1])

    def row(self, rows_in: float) -> Floats:
        """The rows that leave a table of each size of the grid."""
        if rows_in <= self.groups:
            return np.full(len(self.buckets), rows_in)
        at = (log(rows_in) - self.log_inputs[0]) / (self.log_inputs[1] - self.log_inputs[0])
        below = min(int(at), len(self.log_inputs) - 2)
        part = min(at - below, 1.0)
        mixed = (1 - part) * self.log_out[below] + part * self.log_out[below + 1]
        return np.asarray(np.exp(mixed))

    def out(self, buckets: float, rows_in: float) -> float:
        return float(np.interp(buckets, self.buckets, self.row(rows_in)))

    def buckets_for(self, out: Floats, rows_in: float) -> Floats:
        """The fewest buckets with which at most `out` rows leave, or infinity."""
        row = self.row(rows_in)
        found = np.interp(-out, -row, self.buckets)
        found[out >= row[0] * (1 - 1e-9)] = 0.0
        return np.asarray(np.where(out < row[-1] * (1 - 1e-12), np.inf, found))


def curve(groups: float, exponent: float, tuples: float, model: TableModel) -> Curve:
    most = MOST_PLACES if model in ("direct_mapped", "second_chance") else 1.0
    sizes = _sizes(most)
    if tuples <= groups * 1.0001:
        inputs = np.log([tuples, tuples * SPREAD])
        return Curve(tuples, inputs, sizes * tuples, np.full((2, SIZES), log(tuples)))
    inputs = np.geomspace(groups, tuples, INPUTS)
    if model == "uniform":  # lemma 7.1
        out = np.maximum(groups, sizes * groups + np.outer(inputs, 1 - np.clip(sizes, 0.0, 1.0)))
    else:
        form = _repeats(
            exp(round(log(groups) / GROUP_STEP) * GROUP_STEP),
            round(exponent / EXPONENT_STEP) * EXPONENT_STEP,
            tuples,
            model,
        )
        out = groups + (inputs[:, None] - groups) * form
    if most == 1:
        out[:, -1] = groups
    return Curve(groups, np.log(inputs), sizes * groups, _lawful(np.log(out), np.log(inputs)))


@lru_cache(maxsize=8)
def _sizes(most: float) -> Floats:
    return np.append(0.0, np.geomspace(SMALLEST, most, SIZES - 1))


@lru_cache(maxsize=16384)
def _repeats(groups: float, exponent: float, tuples: float, model: TableModel) -> Floats:
    """The share that leaves of the rows after the first of each group, by input and size."""
    most = MOST_PLACES if model in ("direct_mapped", "second_chance") else 1.0
    groups = min(groups, tuples / 1.0001)
    buckets = _sizes(most) * groups
    ranks = zipf(support(groups, exponent, tuples), exponent)
    form = np.ones((INPUTS, SIZES))
    for at, rows_in in enumerate(np.geomspace(groups, tuples, INPUTS)):
        if at:
            epoch = reuse(filtered(ranks, rows_in / tuples), float(rows_in))
            least = epoch.distinct[-1]
            form[at] = (rows_out(epoch, buckets, model) - least) / (rows_in - least)
    return np.clip(form, 0.0, 1.0)


def _lawful(log_out: Floats, log_inputs: Floats) -> Floats:
    """Make a curve fall with the table size, and rise with the input but never faster."""
    log_out = np.minimum.accumulate(log_out, axis=1)
    log_out[:, 0] = log_inputs
    log_out = np.clip(log_out, log_inputs[0], log_inputs[:, None])
    step = log_inputs[1] - log_inputs[0]
    for at in range(1, len(log_inputs)):
        log_out[at] = np.clip(log_out[at], log_out[at - 1], log_out[at - 1] + step)
    return log_out


@dataclass(frozen=True)
class Form:
    """The rows that leave the table of an attribute set, for every input between its groups and all
    tuples: the input is never smaller.
    """

    grid: Floats
    cell: npt.NDArray[np.int64]
    """By [rows, size]: the cell of the grid in which the number of leaving rows is."""
    share: Floats
    """By [rows, size]: the position within that cell, from 0 to 1."""
    log_out: Floats
    """By [rows, size]: the logarithm of the rows that leave."""


def rows_leaving(made: Curve, tuples: float) -> Form:
    grid = np.geomspace(made.groups, max(tuples, made.groups * SPREAD), GRID)
    grid[0] = made.groups
    rows = np.array([made.row(float(rows)) for rows in grid])
    rows = np.clip(rows, grid[0], grid[:, None])
    cell = np.clip(np.searchsorted(grid, rows, "right") - 1, 0, GRID - 2)
    share = (rows - grid[cell]) / (grid[cell + 1] - grid[cell])
    return Form(grid, cell, share, np.log(rows))


class Curves:
    """The curves and forms of attribute sets, each made once."""

    def __init__(self, statistics: Statistics, model: TableModel) -> None:
        self.statistics = statistics
        self.model: TableModel = model

        def made(attributes: Attributes) -> Curve:
            groups = min(max(1.0, statistics.groups(attributes)), statistics.tuples)
            return curve(groups, statistics.exponent(attributes), statistics.tuples, model)

        self.of: Callable[[Attributes], Curve] = cache(made)
        self.form: Callable[[Attributes], Form] = cache(
            lambda attributes: rows_leaving(self.of(attributes), statistics.tuples)
        )


# ---- how many rows leave a bounded table, evicted and flushed ------------------------------------

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


def rows_out(curve: Reuse, buckets: Floats, model: TableModel) -> Floats:
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
