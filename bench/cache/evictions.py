"""Paper 4, section VI-A: evictions when groups are Zipf-like and the table holds a part of them.

Perfect LFU keeps the groups that come most often, which it knows; every other tuple is evicted.
Lemma 6.1 approximates the share of those by 1 - (b/g) ** (1 - exponent). The paper says that LRU,
which knows nothing, comes near to it.
"""

from __future__ import annotations

from typing import Final

from bench.cache.streams import evicted_share, paper_table, zipf_shares, zipf_tuples
from terascope.kernels.tables.table_policies import Policy

GROUPS: Final = 100_000
EXPONENTS: Final = (0.85, 0.67, 0.48)
"""Of source addresses, of pairs of addresses, of pairs with their ports (paper 4, VI)."""
PARTS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75)
"""Places of the table, of the number of groups."""


def zipf_evictions(policy: Policy, exponent: float, count: int, seed: int) -> dict[float, float]:
    """Evicted partials per tuple, for each size of the table."""
    first, then = (zipf_tuples(GROUPS, exponent, count, seed + i) for i in (0, 1))
    return {
        part: evicted_share(paper_table(policy, round(part * GROUPS)), first, then)
        for part in PARTS
    }


def perfect_lfu(exponent: float, part: float) -> float:
    """The share of the groups that do not fit when the most frequent ones are kept."""
    return float(1 - zipf_shares(GROUPS, exponent)[round(part * GROUPS) - 1])


def lemma(exponent: float, part: float) -> float:
    return float(1 - part ** (1 - exponent))
