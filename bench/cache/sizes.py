"""Paper 1, Table 1: how large a table must be for so many active groups.

The paper makes the table smaller until packets are lost. Nothing is lost here; partials are
evicted instead, and the smallest table is the one that evicts at most one for a hundred tuples.
"""

from __future__ import annotations

from typing import Final

from bench.cache.streams import evicted_share, paper_table, uniform_tuples
from terascope.kernels.tables.table_policies import Policy

MOST_EVICTED: Final = 0.01
FILLING: Final = 8
"""Tuples for each group before evictions are counted."""
PAPER: Final[dict[int, dict[Policy, int]]] = {
    2_000: {"direct_mapped": 1_900, "second_chance": 1_300},
    5_000: {"direct_mapped": 4_300, "second_chance": 3_300},
    10_000: {"direct_mapped": 7_300, "second_chance": 7_300},
    20_000: {"direct_mapped": 64_000, "second_chance": 19_000},
    40_000: {"direct_mapped": 410_000, "second_chance": 44_000},
}
"""Active groups -> the smallest table before packets were lost."""


def smallest_table(policy: Policy, groups: int, per_group: int, seed: int) -> int:
    """To within one percent, by so many tuples for each group after the table is filled."""
    first = uniform_tuples(groups, FILLING * groups, seed)
    then = uniform_tuples(groups, per_group * groups, seed + 1)

    def suffices(capacity: int) -> bool:
        return evicted_share(paper_table(policy, capacity), first, then) <= MOST_EVICTED

    too_small, enough = 0, groups
    while not suffices(enough):
        too_small, enough = enough, 2 * enough
    while enough - too_small > max(1, enough // 100):
        middle = (too_small + enough) // 2
        if suffices(middle):
            enough = middle
        else:
            too_small = middle
    return enough
