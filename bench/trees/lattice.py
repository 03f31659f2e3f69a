"""All sets of a few attributes: the best tree that can be found, and what none can be below.

In: the groups of every set of attributes, and queries by two of them. Out: the hash operations of
trees whose tables have all the memory they want: a row of the stream, or of the node it is made of,
costs one in every child. A set is a number with a bit for each attribute.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import column, compiled_for, output
from terascope.sharing.model import Statistics

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

STEP: Final = 0.05
"""Of the values of queries, in the first round."""
SURE: Final = 1 - 1e-9


@dataclass(frozen=True)
class Lattice:
    """Queries over all pairs of attributes."""

    groups: Floats
    """Of every set; never more than there are tuples."""
    tuples: float

    @classmethod
    def of(cls, attributes: tuple[str, ...], statistics: Statistics) -> Lattice:
        groups = np.ones(1 << len(attributes))
        for number in range(1, len(groups)):
            some = frozenset(a for i, a in enumerate(attributes) if number >> i & 1)
            groups[number] = statistics.groups(some)
        return cls(np.minimum(groups, statistics.tuples), statistics.tuples)

    @property
    def queries(self) -> Ints:
        bits = (1 << i for i in range(len(self.groups).bit_length() - 1))
        return np.array([a | b for a, b in combinations(bits, 2)], np.int64)

    # ---- trees

    def fed(self, nodes: Ints) -> Floats:
        """What each node is given: the groups of the smallest node that contains it, or tuples."""
        return self.least_above(nodes, nodes)

    def least_above(self, sets: Ints, nodes: Ints) -> Floats:
        inside = (sets[:, None] & ~nodes[None, :]) == 0
        inside &= sets[:, None] != nodes[None, :]
        rows = np.where(inside, self.groups[nodes][None, :], self.tuples)
        return np.asarray(rows.min(axis=1, initial=self.tuples))

    def operations(self, nodes: Iterable[int]) -> float:
        return float(self.fed(np.array(sorted(nodes), np.int64)).sum())

    def searched(self, restarts: int, seed: int = 1) -> float:
        """The fewest operations that a local search finds, begun anew from disturbed trees."""
        chance = np.random.default_rng(seed)
        queries = set(self.queries.tolist())
        best = self.improved(queries, queries)
        least = self.operations(best)
        for _ in range(restarts):
            inner = sorted(best - queries)
            number = min(len(inner), int(chance.integers(2, 8)))
            gone = chance.choice(inner, number, replace=False).tolist() if number else []
            tried = best - set(gone)
            for _ in range(int(chance.integers(0, 4))):
                a, b = chance.choice(sorted(tried), 2).tolist()
                tried.add(a | b)
            tried = self.improved(tried, queries)
            if (cost := self.operations(tried)) < least:
                best, least = tried, cost
        return least

    def improved(self, nodes: set[int], queries: set[int]) -> set[int]:
        """Nodes are added, dropped and exchanged as long as that saves something."""
        nodes, cost = set(nodes), self.operations(nodes)
        while True:
            drops = [nodes - {node} for node in nodes - queries]
            choices = [self.with_best(nodes), *drops]
            best = min(choices, key=self.operations)
            if self.operations(best) >= cost * SURE:
                best = min((self.with_best(some) for some in drops), key=self.operations,
                           default=best)  # fmt: skip
            if (found := self.operations(best)) >= cost * SURE:
                return nodes
            nodes, cost = best, found

    def with_best(self, nodes: set[int]) -> set[int]:
        """One more, the one that saves most."""
        have = np.array(sorted(nodes), np.int64)
        every = np.arange(len(self.groups))
        below = ((have[None, :] & ~every[:, None]) == 0) & (have[None, :] != every[:, None])
        saved = (np.maximum(0.0, self.fed(have)[None, :] - self.groups[:, None]) * below).sum(
            axis=1
        )
        gain = saved - self.least_above(every, have)
        gain[have] = gain[0] = -np.inf
        return nodes | {int(gain.argmax())}

    # ---- what no tree is below

    def bound(self, rounds: int) -> float:
        """No tree takes fewer operations.

        Let every query have some value. A node that is fed by P pays the groups of P of what it
        has, and gives the rest to P; so P never has more than the rests of all sets within it, in
        whatever tree. One that is fed by the stream pays the tuples. If nobody has more than those,
        all values are paid, and what is paid is no more than what the tree costs. The values are
        moved to where there is room, with a price for every set that would have too much.
        """
        queries, is_query = self.queries, np.zeros(len(self.groups), np.bool_)
        is_query[queries] = True
        values = 1.2 * self.least_above(queries, np.arange(len(self.groups)))
        prices, best = np.zeros(len(self.groups)), 0.0
        for number in range(1, rounds + 1):
            have = self.given(values, is_query)
            excess = np.where(is_query, 0.0, have / self.tuples - 1)
            prices = np.maximum(0.0, prices + 0.3 / np.sqrt(number) * excess)
            weights = prices.copy()
            hand_back(have, is_query, self.groups, weights)
            direction = np.clip(1 - weights[queries], -2.0, 1.0)
            values = values * np.exp(STEP / np.sqrt(1 + number / 50) * direction)
            values = np.clip(values, 1.0, self.tuples)
            if number % 25 == 0 or number == rounds:
                best = max(best, self.allowed(values, is_query))
        return best

    def given(self, values: Floats, is_query: Flags) -> Floats:
        """What every set has at most."""
        have = np.zeros(len(self.groups))
        have[self.queries] = values
        hand_on(have, is_query, self.groups)
        return have

    def allowed(self, values: Floats, is_query: Flags) -> float:
        """The sum of the values, made so small that nobody has too much."""
        low, high = 0.0, 1.5
        for _ in range(20):
            middle = (low + high) / 2
            if self.given(values * middle, is_query).max() <= self.tuples:
                low = middle
            else:
                high = middle
        return low * float(values.sum())


@compiled_for(output(np.float64), column(np.bool_), column(np.float64))
def hand_on(have: Floats, is_query: Flags, groups: Floats) -> None:
    for parent in range(1, len(have)):
        if is_query[parent]:
            continue
        total = 0.0
        child = (parent - 1) & parent
        while child != 0:
            rest = have[child] - groups[parent]
            if rest > 0:
                total += rest
            child = (child - 1) & parent
        have[parent] = total


@compiled_for(column(np.float64), column(np.bool_), column(np.float64), output(np.float64))
def hand_back(have: Floats, is_query: Flags, groups: Floats, weights: Floats) -> None:
    """What one unit more of a set would cost all that contain it."""
    for parent in range(len(have) - 1, 0, -1):
        if is_query[parent] or weights[parent] == 0:
            continue
        child = (parent - 1) & parent
        while child != 0:
            if have[child] > groups[parent]:
                weights[child] += weights[parent]
            child = (child - 1) & parent
