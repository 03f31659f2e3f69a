"""How many rows leave a table, for every size of the table and of its input (paper 4, equation 1).

In: statistics of an attribute set, the kind of table. Out: a `Curve`: out(b, n), the rows that
leave a table of b buckets in an epoch in which n rows enter it, evicted and flushed ones.

n = tuples is the stream itself; a smaller n is the output of the tables above, in which frequent
groups are rarer than in the stream.

Invariant: g <= out(b, n) <= n, because every group enters at least once; out falls with b, rises
with n, and never rises faster than n. The proof of Algorithm 2 rests on that. Where the formulas of
`evictions` do not keep to it, they are clipped.

Cost: the formulas are computed once for a grid of 8 inputs and 96 sizes, and interpolated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from math import exp, log
from typing import Final

import numpy as np

from terascope.sharing.evictions import Floats, filtered, leaving, reuse, support, zipf
from terascope.sharing.model import Attributes, Statistics, TableModel

INPUTS: Final = 8
SIZES: Final = 96
SMALLEST: Final = 1e-5
MOST_PLACES: Final = 8.0
"""Places per group beyond which a direct-mapped table is not made larger."""
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
        if rows_in <= self.groups or len(self.log_inputs) == 1:
            return np.full(len(self.buckets), min(rows_in, self.groups))
        at = (log(rows_in) - self.log_inputs[0]) / (self.log_inputs[1] - self.log_inputs[0])
        below = min(int(at), len(self.log_inputs) - 2)
        part = min(at - below, 1.0)
        mixed = (1 - part) * self.log_out[below] + part * self.log_out[below + 1]
        return np.asarray(np.exp(mixed))

    def out(self, buckets: float, rows_in: float) -> float:
        return float(np.interp(buckets, self.buckets, self.row(rows_in)))

    def outs(self, buckets: Floats, rows_in: Floats) -> Floats:
        """The rows that leave, for each pair of a size and an input."""
        if len(self.log_inputs) == 1:
            return np.minimum(rows_in, self.groups)
        row = (np.log(np.maximum(rows_in, self.groups)) - self.log_inputs[0]) / (
            self.log_inputs[1] - self.log_inputs[0]
        )
        below = np.minimum(row.astype(np.int64), len(self.log_inputs) - 2)
        part = np.minimum(row - below, 1.0)
        right = np.clip(np.searchsorted(self.buckets, buckets, "right"), 1, len(self.buckets) - 1)
        left, each = right - 1, np.arange(len(right))
        share = (buckets - self.buckets[left]) / (self.buckets[right] - self.buckets[left])
        share = np.clip(share, 0.0, 1.0)
        less, more = self.log_out[below], self.log_out[below + 1]
        near, far = (
            np.exp((1 - part) * less[each, at] + part * more[each, at]) for at in (left, right)
        )
        return np.asarray(np.minimum((1 - share) * near + share * far, rows_in))

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
        flat = np.full((1, SIZES), log(tuples))
        return Curve(tuples, np.array([log(tuples)]), sizes * tuples, flat)
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
            form[at] = (leaving(epoch, buckets, model) - least) / (rows_in - least)
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


class Curves:
    """The curves of attribute sets, each made once."""

    def __init__(self, statistics: Statistics, model: TableModel) -> None:
        self.statistics = statistics
        self.model: TableModel = model

        def made(attributes: Attributes) -> Curve:
            groups = min(max(1.0, statistics.groups(attributes)), statistics.tuples)
            return curve(groups, statistics.exponent(attributes), statistics.tuples, model)

        self.of: Callable[[Attributes], Curve] = cache(made)
