"""Memory for all candidate trees by prices: allocations, and a proof of how good they are.

In: trees of the same queries, curves, an accounting, eps. Out: for each tree a `Frontier`
(allocations, each cheaper and larger than the one before) and lower bounds: no allocation of a tree
costs less than the bound for the memory it takes. The aim is that the best of all frontiers within
a budget costs at most (1 + eps) times the least bound; where it does not, the two show the gap.

Idea: at a price of memory a tree has one best allocation, found bottom-up. It is best
for the memory it takes, and total - price * memory is a lower bound for every other memory: the
frontier is the lower hull of all (memory, cost) pairs. Prices are added between two others until
allocations and bounds are near enough. Where the cost of a tree is not convex, its best allocation
jumps at a price; between the two allocations the tables grow one by one.

Cost: Algorithm 2 (fptas.py) is exact between the jumps, too, and takes a hundred times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from terascope.machine_code import compiled
from terascope.sharing.cost import (
    Accounting,
    TreeArrays,
    costs_of,
    interpolated,
    leaving,
    located,
    tree_arrays,
)
from terascope.sharing.curves import Curves, Floats
from terascope.sharing.fptas import Frontier
from terascope.sharing.greedy import prices
from terascope.sharing.model import Tree

BOUND_ERROR: Final = 0.003
"""The largest assumed error of the lower bound of a tree; 0.00002 was measured."""
NEARER: Final = 0.25
"""The share of eps within which prices approach the bounds."""
SAME: Final = 1e-6
"""Allocations whose memory differs by less than this are one."""
DEARER: Final = 16.0
"""The factor by which prices rise until a tree takes no memory at all."""
ROUNDS: Final = 24
PARTS: Final = np.array([0.25, 0.5, 1.0])
"""The number of parts in which the growth of a table is tried."""


@compiled
def worths(price: float, tree: TreeArrays) -> tuple[Floats, float]:
    """For each node the cost of its leaving rows, memory below it paid; and the total.

    Intermediate nodes are left out where that is cheaper: rows then do not pass through them.
    """
    grids, weight, buckets = tree.grids, tree.weight, tree.buckets
    count, points = grids.shape
    sizes = buckets.shape[1]
    below = np.empty((count, points))
    for at in range(count):
        below[at] = weight[at] * grids[at]
    total = 0.0
    value = np.empty(points)
    for at in range(count - 1, -1, -1):
        if weight[at] == 0:
            value[:] = 0.0
        else:
            first = sizes - 1 if tree.free[at] else 0
            for r in range(points):
                best = np.inf if tree.is_query[at] else below[at, r] - grids[at, r]
                for k in range(first, sizes):
                    cell = tree.cells[at, r, k]
                    low = below[at, cell]
                    worth = low + tree.shares[at, r, k] * (below[at, cell + 1] - low)
                    best = min(best, worth + price * tree.size[at] * buckets[at, k])
                value[r] = best
        up = tree.parent[at]
        if up < 0:
            total += tree.tuples + interpolated(value, grids[at], tree.tuples)
        else:
            for r in range(points):
                below[up, r] += interpolated(value, grids[at], grids[up, r])
    return below, total


@compiled
def placed(price: float, tree: TreeArrays, below: Floats) -> Floats:
    """The buckets of each node."""
    grids, buckets, parent = tree.grids, tree.buckets, tree.parent
    count, sizes = buckets.shape
    chosen, out = np.zeros(count), np.zeros(count)
    for at in range(count):
        rows = tree.tuples if parent[at] < 0 else out[parent[at]]
        out[at] = rows
        low, part = located(grids[at], rows)
        if tree.free[at]:
            chosen[at] = grids[at, 0]
            out[at] = min(rows, leaving(tree.log_out[at], sizes - 1, low, part))
        elif tree.weight[at] > 0:
            best = np.inf
            if not tree.is_query[at]:
                best = interpolated(below[at], grids[at], rows) - rows
            for k in range(sizes):
                rows_out = min(rows, leaving(tree.log_out[at], k, low, part))
                worth = interpolated(below[at], grids[at], rows_out)
                worth += price * tree.size[at] * buckets[at, k]
                if worth < best:
                    best, out[at], chosen[at] = worth, rows_out, buckets[at, k]
    return chosen


class Allocated(NamedTuple):
    """An allocation and its cost."""

    memory: float
    cost: float
    buckets: Floats


@dataclass
class PricedTree:
    """The allocations of one tree at the prices that were tried."""

    arrays: TreeArrays
    asked: dict[float, tuple[float, Allocated]] = field(default_factory=dict)
    """For each price tried: the total and the allocation."""
    between: list[Allocated] = field(default_factory=list)

    def ask(self, price: float) -> None:
        if price not in self.asked:
            below, total = worths(price, self.arrays)
            (made,) = self.measured(placed(price, self.arrays, below)[None, :])
            self.asked[price] = total, made

    def measured(self, allocations: Floats) -> list[Allocated]:
        memory, cost = allocations @ self.arrays.size, costs_of(allocations, self.arrays)
        return list(map(Allocated, memory.tolist(), cost.tolist(), allocations))

    def least(self, memory: Floats) -> Floats:
        """For each memory: a lower bound of the cost of all allocations that take it."""
        prices = np.array(list(self.asked))
        total = np.array([total for total, _ in self.asked.values()]) * (1 - BOUND_ERROR)
        return np.asarray((total - np.outer(memory, prices)).max(axis=1))

    @property
    def frontier(self) -> Frontier:
        points = [*(made for _, made in self.asked.values()), *self.between]
        memory, cost, sizes = map(np.array, zip(*points, strict=True))
        return Frontier.of(memory, cost, sizes)

    def part(self, dear: float, cheap: float) -> bool:
        """Try the price at which two neighbours cost the same; whether it has a third one."""
        few, many = self.asked[dear][1], self.asked[cheap][1]
        if many.memory - few.memory <= SAME * many.memory or few.cost <= many.cost:
            return False
        price = (few.cost - many.cost) / (many.memory - few.memory)
        if not cheap < price < dear:
            return False
        self.ask(price)
        found = self.asked[price][1].memory
        return few.memory * (1 + SAME) < found < many.memory * (1 - SAME)

    def walk(self, dear: float, cheap: float) -> None:
        """Allocations between two others: one table after the other, or a part of its growth, where
        a byte saves most.
        """
        few, many = self.asked[dear][1], self.asked[cheap][1]
        sizes = few.buckets + np.outer(PARTS, many.buckets - few.buckets)
        sizes[-1] = many.buckets
        taken = np.zeros(len(few.buckets), np.int64)
        taken[few.buckets == many.buckets] = len(PARTS)
        now = few
        while (taken < len(PARTS)).any():
            left = [int(at) for at in np.flatnonzero(taken < len(PARTS))]
            steps = [(part, at) for at in left for part in range(taken[at], len(PARTS))]
            tried = np.repeat(now.buckets[None, :], len(steps), axis=0)
            for row, (part, at) in enumerate(steps):
                tried[row, at] = sizes[part, at]
            made = self.measured(tried)
            rate = [(now.cost - one.cost) / max(one.memory - now.memory, 1e-9) for one in made]
            best = int(np.argmax(rate))
            part, at = steps[best]
            now, taken[at] = made[best], part + 1
            self.between.append(now)


def best_of(frontiers: tuple[Frontier, ...]) -> tuple[Floats, Floats]:
    """Every memory at which an allocation begins to fit, and the least cost just below it: between
    two of these the cost is constant, and bounds fall.
    """
    memory = np.concatenate([frontier.memory for frontier in frontiers])
    cost = np.concatenate([frontier.cost for frontier in frontiers])
    order = np.argsort(memory, kind="stable")
    least = np.minimum.accumulate(cost[order])
    after = memory[order] > 0
    return memory[order][after], np.append(least[0], least[:-1])[after]


def priced(
    trees: list[Tree], curves: Curves, accounting: Accounting, eps: float
) -> list[PricedTree]:
    """All trees with their allocations. The first tree, the flat one, is refined by itself as well:
    explain shows its cost beside that of the chosen tree.
    """
    made = [PricedTree(tree_arrays(tree, curves, accounting)) for tree in trees]
    ladder = prices(trees[0], curves.statistics.tuples)
    for one in made:
        for price in ladder:
            one.ask(price)
        dear = ladder[0]
        while one.asked[dear][1].memory > 0:
            dear *= DEARER
            one.ask(dear)
    refine(made[:1], NEARER * eps)
    refine(made, NEARER * eps)
    return made


def refine(trees: list[PricedTree], eps: float) -> None:
    """Add prices wherever a tree may be better than all allocations by more than eps."""
    walked: set[tuple[int, float, float]] = set()
    for _ in range(ROUNDS):
        edges, best = best_of(tuple(tree.frontier for tree in trees))
        changed = False
        for at, tree in enumerate(trees):
            bad = edges[best > (1 + eps) * tree.least(edges)]
            for dear, cheap in pairwise(sorted(tree.asked, reverse=True)):
                low, high = tree.asked[dear][1].memory, tree.asked[cheap][1].memory
                if not ((bad > low) & (bad <= high)).any():
                    continue
                if tree.part(dear, cheap):
                    changed = True
                elif (at, dear, cheap) not in walked:
                    walked.add((at, dear, cheap))
                    tree.walk(dear, cheap)
                    changed = True
        if not changed:
            return
