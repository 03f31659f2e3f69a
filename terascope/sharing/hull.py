"""Memory for all candidate trees by prices: allocations, and a proof of how good they are.

In: trees of the same queries, curves, an accounting, eps. Out: a `Frontier` (allocations, each
cheaper and larger than the one before) and lower `Bounds` for each tree: no allocation of a tree
costs less than its bound for the memory it takes. The aim is that the best of all frontiers within
a budget costs at most (1 + eps) times the least bound; where it does not, the two show the gap.

Idea: at a price of memory a tree has one best allocation, found bottom-up (priced.py). It is best
for the memory it takes, and total - price * memory is a lower bound for every other memory: the
frontier is the lower hull of all (memory, cost) pairs. Prices are added between two others until
allocations and bounds are near enough. Where the cost of a tree is not convex, its best allocation
jumps at a price; between the two allocations the tables grow one by one.

Cost: Algorithm 2 (fptas.py) is exact between the jumps, too, and takes a hundred times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from terascope.machine_code import compiled
from terascope.sharing.cost import Accounting
from terascope.sharing.curves import INPUTS, SIZES, Curve, Curves
from terascope.sharing.evictions import Floats
from terascope.sharing.fptas import Allocator, Frontier, unbeaten
from terascope.sharing.greedy import prices
from terascope.sharing.model import Attributes, Tree
from terascope.sharing.priced import interpolated

Cells: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

GRID: Final = 4 * (INPUTS - 1) + 1
"""Every size of a curve, and three between each two of them."""
SPREAD: Final = 1.001
"""The least ratio between the ends of a grid."""

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


@dataclass(frozen=True)
class Bounds:
    """Lower bounds of a tree: for each price, hash operations and their reduction for each byte."""

    total: Floats
    price: Floats

    def at(self, memory: Floats) -> Floats:
        """The largest bound for each memory."""
        return np.asarray((self.total - np.outer(memory, self.price)).max(axis=1))


@dataclass(frozen=True)
class Form:
    """The rows that leave the table of an attribute set, for every input between its groups and all
    tuples: the input is never smaller.
    """

    grid: Floats
    cell: Cells
    """By [rows, size]: the cell of the grid in which the number of leaving rows is."""
    share: Floats
    """By [rows, size]: the position within that cell, from 0 to 1."""
    buckets: Floats
    log_out: Floats
    """By [rows, size]: the logarithm of the rows that leave."""


def rows_leaving(made: Curve, tuples: float) -> Form:
    most = max(tuples, made.groups * SPREAD)
    grid = np.geomspace(made.groups, most, GRID)
    grid[0] = made.groups
    rows = np.array([made.row(float(rows)) for rows in grid])
    rows = np.clip(rows, grid[0], grid[:, None])
    cell = np.clip(np.searchsorted(grid, rows, "right") - 1, 0, GRID - 2)
    share = (rows - grid[cell]) / (grid[cell + 1] - grid[cell])
    return Form(grid, cell, share, made.buckets, np.log(rows))


@compiled
def leaving(grid: Floats, log_out: Floats, size: int, rows: float) -> float:
    """The rows that leave a table of one of the sizes of its form."""
    place = np.log(max(rows / grid[0], 1.0)) / np.log(grid[1] / grid[0])
    low = min(int(place), len(grid) - 2)
    part = min(place - low, 1.0)
    return float(np.exp((1 - part) * log_out[low, size] + part * log_out[low + 1, size]))


class TreeArrays(NamedTuple):
    """A tree as the kernels read it: a row for each node."""

    parent: Cells
    """-1: the node takes the tuples of the stream."""
    weight: Floats
    size: Floats
    """Bytes of a bucket."""
    free: Flags
    is_query: Flags
    tuples: float
    grids: Floats
    cells: Cells
    shares: Floats
    buckets: Floats
    log_out: Floats


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
def placed(price: float, tree: TreeArrays, below: Floats) -> tuple[Floats, float]:
    """The buckets of each node, and the cost without the price of memory."""
    grids, weight, buckets, log_out = tree.grids, tree.weight, tree.buckets, tree.log_out
    parent, is_query, tuples = tree.parent, tree.is_query, tree.tuples
    count, points = grids.shape
    sizes = buckets.shape[1]
    chosen, out = np.zeros(count), np.zeros(count)
    cost = 0.0
    for at in range(count):
        rows = tuples if parent[at] < 0 else out[parent[at]]
        cost += tuples if parent[at] < 0 else 0.0
        if tree.free[at]:
            chosen[at] = grids[at, 0]
            out[at] = min(rows, leaving(grids[at], log_out[at], sizes - 1, rows))
        elif weight[at] == 0:
            out[at] = rows
        else:
            place = np.log(max(rows / grids[at, 0], 1.0)) / np.log(grids[at, 1] / grids[at, 0])
            low = min(int(place), points - 2)
            part = min(place - low, 1.0)
            best, leaves = np.inf, rows
            if not is_query[at]:
                best = interpolated(below[at], grids[at], rows) - rows
            for k in range(sizes):
                left = (1 - part) * log_out[at, low, k] + part * log_out[at, low + 1, k]
                rows_out = min(np.exp(left), rows)
                worth = interpolated(below[at], grids[at], rows_out)
                worth += price * tree.size[at] * buckets[at, k]
                if worth < best:
                    best, leaves, chosen[at] = worth, rows_out, buckets[at, k]
            out[at] = leaves
            if chosen[at] == 0 and not is_query[at]:
                cost -= rows
        cost += weight[at] * out[at]
    return chosen, cost


@compiled
def costs_of(allocations: Floats, tree: TreeArrays) -> Floats:
    """The cost of each allocation, as `Allocator.costs` defines it, on the forms of the tables."""
    grids, weight, buckets, log_out = tree.grids, tree.weight, tree.buckets, tree.log_out
    parent, tuples = tree.parent, tree.tuples
    count, sizes = buckets.shape
    found = np.zeros(len(allocations))
    out = np.zeros(count)
    for one in range(len(allocations)):
        cost = 0.0
        for at in range(count):
            rows = tuples if parent[at] < 0 else out[parent[at]]
            cost += tuples if parent[at] < 0 else 0.0
            given = allocations[one, at]
            if tree.free[at] or (weight[at] > 0 and given >= buckets[at, sizes - 1]):
                out[at] = min(rows, leaving(grids[at], log_out[at], sizes - 1, rows))
            elif weight[at] == 0 or given <= 0:
                out[at] = rows
                cost -= 0.0 if tree.is_query[at] else rows
            else:
                right = max(1, np.searchsorted(buckets[at], given, "right"))
                low, high = buckets[at, right - 1], buckets[at, right]
                near = leaving(grids[at], log_out[at], right - 1, rows)
                far = leaving(grids[at], log_out[at], right, rows)
                out[at] = min(rows, near + (given - low) / (high - low) * (far - near))
            cost += weight[at] * out[at]
        found[one] = cost
    return found


@dataclass(frozen=True)
class Allocated:
    """An allocation and its cost."""

    memory: float
    cost: float
    buckets: Floats


@dataclass
class PricedTree:
    """The allocations of one tree at the prices that were tried."""

    tree: Tree
    curves: Curves
    accounting: Accounting
    forms: dict[Attributes, Form]
    """The forms of attribute sets, shared by all trees."""
    asked: dict[float, tuple[float, Allocated]] = field(default_factory=dict)
    """For each price tried: the total and the allocation."""
    between: list[Allocated] = field(default_factory=list)

    def __post_init__(self) -> None:
        allocator = Allocator(self.tree, self.curves, self.accounting, 1.0)
        nodes, tuples = self.tree.nodes, self.curves.statistics.tuples
        for node, made in zip(nodes, allocator.made, strict=True):
            if node.attributes not in self.forms:
                self.forms[node.attributes] = rows_leaving(made, tuples)
        forms = [self.forms[node.attributes] for node in nodes]
        self._arrays = TreeArrays(
            np.array([-1 if node.parent is None else node.parent for node in nodes], np.int64),
            np.array(allocator.weight),
            np.array(allocator.size),
            np.array(allocator.free, np.bool_),
            np.array([node.is_query for node in nodes], np.bool_),
            tuples,
            np.array([form.grid for form in forms]).reshape(-1, GRID),
            np.array([form.cell for form in forms], np.int64).reshape(-1, GRID, SIZES),
            np.array([form.share for form in forms]).reshape(-1, GRID, SIZES),
            np.array([form.buckets for form in forms]).reshape(-1, SIZES),
            np.array([form.log_out for form in forms]).reshape(-1, GRID, SIZES),
        )

    def ask(self, price: float) -> None:
        if price in self.asked:
            return
        below, total = worths(price, self._arrays)
        buckets, cost = placed(price, self._arrays, below)
        self.asked[price] = total, self._allocated(buckets, cost)

    def measured(self, allocations: Floats) -> list[Allocated]:
        costs = costs_of(allocations, self._arrays)
        return list(map(self._allocated, allocations, costs))

    def _allocated(self, buckets: Floats, cost: float) -> Allocated:
        return Allocated(float(buckets @ self._arrays.size), float(cost), buckets)

    @property
    def bounds(self) -> Bounds:
        ladder = sorted(self.asked)
        total = np.array([self.asked[price][0] for price in ladder])
        return Bounds(total * (1 - BOUND_ERROR), np.array(ladder))

    @property
    def frontier(self) -> Frontier:
        points = [*(made for _, made in self.asked.values()), *self.between]
        memory = np.array([made.memory for made in points])
        cost = np.array([made.cost for made in points])
        kept = unbeaten(memory, cost)
        sizes = np.array([points[at].buckets for at in kept])
        return Frontier(memory[kept], cost[kept], sizes)

    def gaps(self) -> list[tuple[float, float]]:
        """Neighbouring prices, the higher first."""
        return list(pairwise(sorted(self.asked, reverse=True)))

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


@dataclass(frozen=True)
class Priced:
    """The frontiers and bounds of some trees."""

    frontiers: tuple[Frontier, ...]
    bounds: tuple[Bounds, ...]


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


def priced(trees: list[Tree], curves: Curves, accounting: Accounting, eps: float) -> Priced:
    """The frontiers and bounds of all trees. The first tree, the flat one, is refined by itself as
    well: explain shows its cost beside that of the chosen tree.
    """
    forms: dict[Attributes, Form] = {}
    made = [PricedTree(tree, curves, accounting, forms) for tree in trees]
    ladder = prices(trees[0], curves.statistics.tuples)
    for one in made:
        for price in ladder:
            one.ask(price)
        dear = ladder[0]
        while one.asked[dear][1].memory > 0:
            dear *= DEARER
            one.ask(dear)
    if made:
        refine(made[:1], NEARER * eps)
    refine(made, NEARER * eps)
    return Priced(tuple(one.frontier for one in made), tuple(one.bounds for one in made))


def refine(trees: list[PricedTree], eps: float) -> None:
    """Add prices wherever a tree may be better than all allocations by more than eps."""
    walked: set[tuple[int, float, float]] = set()
    for _ in range(ROUNDS):
        edges, best = best_of(tuple(tree.frontier for tree in trees))
        changed = False
        for at, tree in enumerate(trees):
            bad = edges[best > (1 + eps) * tree.bounds.at(edges)]
            for dear, cheap in tree.gaps():
                if not within(bad, tree.asked[dear][1].memory, tree.asked[cheap][1].memory):
                    continue
                if tree.part(dear, cheap):
                    changed = True
                elif (at, dear, cheap) not in walked:
                    walked.add((at, dear, cheap))
                    tree.walk(dear, cheap)
                    changed = True
        if not changed:
            return


def within(edges: npt.NDArray[np.float64], low: float, high: float) -> bool:
    return bool(((edges > low) & (edges <= high)).any())
