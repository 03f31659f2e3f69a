"""The fraction of an endless stream that evicts a group, by paper 4's lemmas and by our models.

Lemma 6.1 (perfect LFU) and lemma 7.1 (groups that are equally frequent) are the paper's formulas.
The planner does not use them: `terascope bench fig3-evictions` shows how far they are from what
real tables do, beside the models of `terascope/sharing/evictions.py`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import log
from typing import Final, Literal, TypeAlias

import numpy as np

from terascope.sharing.curves import NEAR_ONE, Floats, Reuse, reuse, rows_out, zipf
from terascope.sharing.model import TableModel
from terascope.sharing.statistics import SampledStatistics

RateModel: TypeAlias = TableModel | Literal["lfu"]


def zipf_sum(last: float, exponent: float) -> float:
    """The sum of rank^-exponent up to a rank: exact at first, then by Euler and Maclaurin."""
    head = np.arange(1.0, min(last, 64.0) + 0.5)
    total = float((head**-exponent).sum())
    if last <= len(head):
        return total
    first = float(len(head))
    ends = float(last**-exponent - first**-exponent) / 2
    return total + _integral(first, last, exponent) + ends


def _integral(first: float, last: float, exponent: float) -> float:
    if abs(exponent - 1) < NEAR_ONE:
        return log(last / first)
    return float((last ** (1 - exponent) - first ** (1 - exponent)) / (1 - exponent))


def paper_rate(buckets: Floats, groups: float, exponent: float, model: RateModel) -> Floats:
    """Lemma 6.1 (perfect LFU) or 7.1 (uniform): the fraction of tuples that are pushed out.

    Lemma 6.1 is an integral for a sum: as printed it is negative for exponents above 1. There, and
    at 1, the sums over ranks stand for it: 1 - H(b) / H(g). All is kept within 0 and 1.
    """
    held = np.clip(buckets / groups, 0.0, 1.0)
    if model == "uniform" or exponent == 0:
        return 1 - held
    if exponent < 1 - NEAR_ONE:
        return np.asarray(1 - held ** (1 - exponent))
    if abs(exponent - 1) < NEAR_ONE:
        if groups <= 1:
            return 1 - held
        return np.asarray(
            np.where(buckets < 1, 1.0, 1 - np.log(np.maximum(buckets, 1)) / log(groups))
        ).clip(0, 1)
    whole = zipf_sum(groups, exponent)
    sums = np.array([zipf_sum(float(b), exponent) if b >= 1 else 0.0 for b in buckets])
    return np.clip(1 - sums / whole, 0.0, 1.0)


STEADY: Final = 1e4
"""An epoch of so many times the groups is as good as endless."""


def eviction_rate(buckets: float, groups: float, exponent: float, model: RateModel) -> float:
    """f(b): the fraction of an endless input of so many groups that makes a group leave.

    1 without buckets. 0 when all groups have one; but where groups have places of their own,
    collisions remain until there are many more places than groups.
    """
    if buckets <= 0:
        return 1.0
    sizes = np.array([float(buckets)])
    if model == "lfu" or model == "uniform":
        return float(paper_rate(sizes, groups, exponent, model)[0])
    if model == "lru" and buckets >= groups:
        return 0.0
    curve = endless_reuse(groups, exponent)
    rows = float(rows_out(curve, sizes, model)[0])
    return min(1.0, max(0.0, (rows - groups) / (curve.draws - groups)))


@lru_cache(maxsize=256)
def endless_reuse(groups: float, exponent: float) -> Reuse:
    ranks = zipf(groups, exponent)
    return reuse(ranks, max(STEADY * groups, 20 / float(ranks.probability.min())))


STEP: Final = 2**0.5


def working_set_evictions(
    known: SampledStatistics, attributes: frozenset[str], places: float
) -> float:
    """How many groups leave an LRU table of so many places in an epoch, before its end.

    The table is full after as many tuples as have that many groups. From then on it misses what
    did not come within so many tuples: as many of a tuple as the number of groups grows by
    with one more (Denning's working set; for independent tuples it is Che's approximation). No
    law of frequencies is assumed, and bursts count as far as the pieces of an epoch show them.
    """
    if places >= known.groups(attributes):
        return 0.0
    if places < 1.0:
        return known.tuples
    two = known.groups(attributes, 2.0)
    if places <= two:  # what is not the same as the tuple before
        return (two - 1.0) * known.tuples
    step = 1
    while logarithm(known, attributes, step) > log(places):
        step += 1
    # The slopes below, at and above the size of the table.
    around = [logarithm(known, attributes, step + i) for i in (1, 0, -1)]
    slopes = [after - before for before, after in pairwise(around)]
    slopes.append(slopes[1])
    if step > 1:  # else beyond the epoch
        slopes[2] = logarithm(known, attributes, step - 2) - around[2]
    part = (log(places) - around[1]) / (around[2] - around[1])
    slope = float(np.interp(part, (-0.5, 0.5, 1.5), slopes)) / log(STEP)
    filling = known.tuples * STEP ** (part - step)
    missing = min(1.0, max(0.0, slope) * places / filling)
    return float(missing * (known.tuples - filling))


def logarithm(known: SampledStatistics, attributes: frozenset[str], step: int) -> float:
    """Of the groups in the tuples of an epoch, divided so many times."""
    return log(known.groups(attributes, known.tuples * STEP**-step))
