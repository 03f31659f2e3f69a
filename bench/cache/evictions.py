"""Paper 4, section VI-A: evictions when groups are Zipf-like and the table holds a part of them.

Perfect LFU keeps the groups that come most often, which it knows; every other tuple is evicted.
Lemma 6.1 approximates its share by 1 - (b/g) ** (1 - exponent). The paper's claim is that LRU, which
knows nothing, comes near to it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bench.cache.streams import Tuples, evicted_share, paper_table, zipf_tuples
from terascope.low.table_policies import Policy

GROUPS: Final = 100_000
EXPONENTS: Final = (0.85, 0.67, 0.48)
"""Of source addresses, of pairs of addresses, of pairs with their ports (paper 4, VI)."""
PARTS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75)
"""Places of the table, of the number of groups."""


def zipf_evictions(policy: Policy, exponent: float, part: float, count: int, seed: int) -> float:
    """Evicted partials per tuple."""
    first = zipf_tuples(GROUPS, exponent, count, seed)
    then = Tuples(first.groups[::-1].copy(), first.values)
    return evicted_share(paper_table(policy, round(part * GROUPS)), first, then)


def perfect_lfu(exponent: float, part: float, count: int, seed: int) -> float:
    """The share of tuples whose group is not among the most frequent of the stream."""
    groups = zipf_tuples(GROUPS, exponent, count, seed).groups
    most_first = np.sort(np.bincount(groups, minlength=GROUPS))[::-1]
    return float(1 - most_first[: round(part * GROUPS)].sum() / count)


def lemma(exponent: float, part: float) -> float:
    return float(1 - part ** (1 - exponent))
