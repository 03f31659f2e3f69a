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
import numpy.typing as npt

from terascope.sharing.evictions import Floats, filtered, leaving, reuse, support, zipf
from terascope.sharing.model import Attributes, Statistics, TableModel

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
