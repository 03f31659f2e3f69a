"""How much memory each table gets: Algorithm 2 (paper 4, section VI), within 1 + eps of the best.

In: a tree, curves, an accounting, eps. Out: a `Frontier`: allocations from no memory to all that
can be used, each cheaper and larger than the one before. Whatever the memory, the best of them that
fits costs at most (1 + eps) times as much as any allocation that does.

As in VI-C, P is the memory that a node needs to let so many rows pass, Q what the subtrees below it
need if so many enter them. Three things differ from the printed algorithm, none from its proof:
- Where the algorithm has a table over all costs, we keep the (cost, memory) pairs that are not
  beaten by others. Costs are not rounded to powers of beta but to multiples of `cell`: a sum of
  rounded costs is then a sum, and all roundings of a tree add up to less than a share of its least
  cost.
- A table whose children are all queries needs no grid: what leaves it falls piecewise linearly with
  its memory. Where these curves are convex, siblings share memory by slopes, which is exact.
- Only the rows that enter a subtree with tables are rounded, up to powers of beta =
  (1 + eps)^(1 / (2 L + 1)), where L counts such roundings on the way down. By lemma 9.1 they
  cost a factor of beta^L; the rest of 1 + eps is what the cells may cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil, log
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from terascope.machine_code import compiled
from terascope.sharing.cost import Accounting, costs_of, least_cost, tree_arrays
from terascope.sharing.curves import Curve, Curves, Floats
from terascope.sharing.model import Node, Tree

Places: TypeAlias = npt.NDArray[np.int64]

ROUNDINGS: Final = 4
"""The most roundings of cost at an intermediate node: slopes, two thinnings, one sum per child."""


@dataclass(frozen=True)
class Choices:
    """Allocations of some tables: pairs of cost and bytes, in order of falling cost."""

    cost: Floats
    memory: Floats
    write: Callable[[int, Floats], None]
    """Write the buckets of these tables that belong to one of the pairs."""


@dataclass(frozen=True)
class Frontier:
    """Allocations of a tree, each cheaper and larger than the one before."""

    memory: Floats
    cost: Floats
    allocations: Floats
    """Buckets by [allocation, node]."""

    @classmethod
    def of(cls, memory: Floats, cost: Floats, allocations: Floats) -> Frontier:
        """The allocations that cost less than all smaller ones, the smallest first."""
        order = np.lexsort((cost, memory))
        before = np.minimum.accumulate(np.append(np.inf, cost[order]))[:-1]
        kept = order[cost[order] < before]
        return cls(memory[kept], cost[kept], allocations[kept])

    def best(self, memory_bytes: float) -> int:
        """The cheapest allocation that fits; the first allocation takes no memory."""
        return max(0, int(np.searchsorted(self.memory, memory_bytes * (1 + 1e-12), "right")) - 1)


def merged(one: Frontier, other: Frontier) -> Frontier:
    """The allocations of both frontiers that no other allocation beats."""
    return Frontier.of(
        np.concatenate([one.memory, other.memory]),
        np.concatenate([one.cost, other.cost]),
        np.concatenate([one.allocations, other.allocations]),
    )


@compiled
def hull_segments(
    row: Floats, buckets: Floats, weight: float, size: float, cell: float
) -> tuple[Floats, Floats, Floats, bool]:
    """The cost drops (at most `cell`), bytes and buckets of a curve; and if it is convex.

    `size` is the bytes of a bucket.
    """
    count = len(row)
    kept = np.zeros(count, np.int64)
    top = 0
    for k in range(1, count):
        while top > 0:
            a, b = kept[top - 1], kept[top]
            rise = (row[b] - row[a]) * (buckets[k] - buckets[a])
            if rise >= (row[k] - row[a]) * (buckets[b] - buckets[a]):
                top -= 1
            else:
                break
        top += 1
        kept[top] = k
    total = 0
    for s in range(top):
        total += max(1, int(np.ceil(weight * (row[kept[s]] - row[kept[s + 1]]) / cell)))
    drop, memory, width = np.empty(total), np.empty(total), np.empty(total)
    at = 0
    convex = True
    for s in range(top):
        a, b = kept[s], kept[s + 1]
        fall = weight * (row[a] - row[b])
        parts = max(1, int(np.ceil(fall / cell)))
        if b != a + 1 and fall > cell:
            convex = False
        for _ in range(parts):
            drop[at] = fall / parts
            width[at] = (buckets[b] - buckets[a]) / parts
            memory[at] = width[at] * size
            at += 1
    return drop, memory, width, convex


def subdivided(cost: Floats, buckets: Floats, cell: float) -> Floats:
    """Sizes between which the cost, linear between the given sizes, falls by at most `cell`."""
    counts = np.maximum(1, np.ceil(-np.diff(cost) / cell)).astype(np.int64)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    part = (np.arange(counts.sum()) - first) / np.repeat(counts, counts)
    place = np.repeat(np.arange(len(counts)), counts) + part
    return np.append(np.interp(place, np.arange(len(buckets)), buckets), buckets[-1])


@compiled
def combined_points(
    own_cost: Floats,
    own_memory: Floats,
    starts: Places,
    stops: Places,
    cost: Floats,
    memory: Floats,
    cell: float,
) -> tuple[Floats, Floats, Places, Places]:
    """The best sums of two parts: choice k of the first part costs own_cost[k], needs
    own_memory[k], and goes with each of the points starts[k]..stops[k] of the second.

    Of all sums in one cell of cost the smallest stays, if no cheaper one is as small; and the
    cheapest of all. Costs fall from one to the next. With each sum come the choice, and the point
    counted from starts[k]. Choices of infinite memory are left out; costs of points fall.
    """
    low, high = np.inf, 0.0
    for k in range(len(own_cost)):
        if np.isfinite(own_memory[k]):
            low = min(low, own_cost[k] + cost[stops[k] - 1])
            high = max(high, own_cost[k] + cost[starts[k]])
    cells = int((high - low) / cell) + 2
    best = np.full(cells, np.inf)
    choice, point = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
    least, least_memory, least_choice, least_point = np.inf, np.inf, 0, 0
    for k in range(len(own_cost)):
        if not np.isfinite(own_memory[k]):
            continue
        first, last = starts[k], stops[k] - 1
        for p in range(first, last + 1):
            at = int((own_cost[k] + cost[p] - low) / cell)
            size = own_memory[k] + memory[p]
            if size < best[at]:
                best[at], choice[at], point[at] = size, k, p - first
        total, size = own_cost[k] + cost[last], own_memory[k] + memory[last]
        if total < least or (total == least and size < least_memory):
            least, least_memory, least_choice, least_point = total, size, k, last - first
    kept = np.empty(cells, np.int64)
    count = 0
    smallest = least_memory
    for at in range(cells):
        if best[at] < smallest:
            smallest = best[at]
            kept[count] = at
            count += 1
    out_cost, out_memory = np.empty(count + 1), np.empty(count + 1)
    out_choice, out_point = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
    for k in range(count):
        at = kept[count - 1 - k]
        out_choice[k], out_point[k] = choice[at], point[at]
    out_choice[count], out_point[count] = least_choice, least_point
    for k in range(count + 1):
        p = starts[out_choice[k]] + out_point[k]
        out_cost[k] = own_cost[out_choice[k]] + cost[p]
        out_memory[k] = own_memory[out_choice[k]] + memory[p]
    return out_cost, out_memory, out_choice, out_point


def summed(one: Choices, other: Choices, cell: float) -> Choices:
    """The best sums of a pair of each of two lists."""
    starts = np.zeros(len(one.cost), np.int64)
    stops = np.full(len(one.cost), len(other.cost), np.int64)
    cost, memory, left, right = combined_points(
        one.cost, one.memory, starts, stops, other.cost, other.memory, cell
    )

    def write(point: int, buckets: Floats) -> None:
        one.write(int(left[point]), buckets)
        other.write(int(right[point]), buckets)

    return Choices(cost, memory, write)


NOTHING: Final = Choices(np.zeros(1), np.zeros(1), lambda _point, _buckets: None)


@dataclass
class Allocator:
    """Algorithm 2 for one tree."""

    tree: Tree
    curves: Curves
    accounting: Accounting
    eps: float
    levels: dict[int, Floats] = field(default_factory=dict)
    choices: dict[int, list[Choices]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = self.tree.nodes
        self.tuples = self.curves.statistics.tuples
        self.made: list[Curve] = [self.curves.of(node.attributes) for node in nodes]
        self.arrays = tree_arrays(self.tree, self.curves, self.accounting)
        self.weight, self.size, self.free = self.arrays.weight, self.arrays.size, self.arrays.free
        self.below: dict[int | None, list[int]] = {None: []}
        for at, node in enumerate(nodes):
            if self.weight[at] > 0:
                self.below.setdefault(node.parent, []).append(at)
        self.inner = {at for at in self.below if at is not None}
        depth = self._roundings()
        self.beta = (1 + self.eps) ** (1 / (2 * depth + 1))
        share = (1 + self.eps) / self.beta**depth - 1
        least = least_cost(self.tree, self.curves, self.accounting)
        self.cell = share * least / (ROUNDINGS * (len(self.inner) + 2))

    def _roundings(self) -> int:
        """The most roundings of rows on any path down the tree."""
        count = [0] * len(self.tree.nodes)
        for at, node in enumerate(self.tree.nodes):
            above = 0 if node.parent is None else count[node.parent]
            count[at] = above + (at in self.inner and not self.free[at])
        return max(count, default=0)

    def frontier(self) -> Frontier:
        """The allocations of the whole tree, with their unrounded cost."""
        inner = sorted(self.inner)
        for at in inner:
            self.levels[at] = self._levels(at)
        for at in reversed(inner):
            self.choices[at] = self._subtree(at)
        top = self._children(None, self.tuples, 0)
        groups = np.array([made.groups for made in self.made])
        buckets = np.repeat(np.where(self.free, groups, 0.0)[None, :], len(top.cost), axis=0)
        for point, row in enumerate(buckets):
            top.write(point, row)
        return Frontier.of(buckets @ self.size, costs_of(buckets, self.arrays), buckets)

    def _levels(self, at: int) -> Floats:
        """The numbers of rows that may leave a node; others are rounded up to these."""
        groups = self.made[at].groups
        if self.free[at]:
            return np.array([groups])
        most = max(self._inputs(at))
        count = ceil(log(max(most / groups, 1.0)) / log(self.beta) - 1e-9)
        levels = groups * self.beta ** np.arange(count + 1)
        return np.asarray(np.minimum(levels, max(self.tuples, groups)))

    def _inputs(self, at: int) -> Floats:
        parent = self.tree.nodes[at].parent
        return np.array([self.tuples]) if parent is None else self.levels[parent]

    def _subtree(self, at: int) -> list[Choices]:
        """For each input: the reachable levels, their memory, and the best choice below."""
        levels = self.levels[at]
        below = [self._children(at, float(rows), k) for k, rows in enumerate(levels)]
        starts = np.cumsum([0, *(len(each.cost) for each in below)])
        cost = np.concatenate([each.cost for each in below])
        memory = np.concatenate([each.memory for each in below])

        def choices(rows: float) -> Choices:
            sizes = np.zeros(1) if self.free[at] else self.made[at].buckets_for(levels, rows)
            own = sizes * self.size[at]
            unpaid = np.flatnonzero(own == 0)  # after the first that needs nothing all are worse
            count = len(own) if not len(unpaid) else int(unpaid[0]) + 1
            out_cost, out_memory, level, point_below = combined_points(
                (self.weight[at] * levels)[:count], own[:count], starts[:-1], starts[1:],
                cost, memory, self.cell,
            )  # fmt: skip

            def write(point: int, buckets: Floats) -> None:
                if not self.free[at]:
                    buckets[at] = sizes[level[point]]
                below[level[point]].write(int(point_below[point]), buckets)

            return Choices(out_cost, out_memory, write)

        return [choices(float(rows)) for rows in self._inputs(at)]

    def _children(self, parent: int | None, rows: float, input_at: int) -> Choices:
        """Q: the sums of the choices of the children, for a number of rows that enter them."""
        others: list[Choices] = []
        simple: list[int] = []
        falls: list[tuple[Floats, Floats, Floats]] = []
        fixed = 0.0
        for at in self.below[parent]:
            made, weight = self.made[at], float(self.weight[at])
            if at in self.inner:
                others.append(self.choices[at][input_at])
            elif self.free[at]:
                fixed += weight * min(rows, made.groups)
            else:
                row = made.row(rows)
                *fall, convex = hull_segments(row, made.buckets, weight, self.size[at], self.cell)
                if convex:
                    fixed += weight * float(row[0])
                    simple.append(at)
                    falls.append((fall[0], fall[1], fall[2]))
                else:
                    others.append(self._alone(at, row))
        total = self._by_slope(simple, falls, fixed)
        for other in sorted(others, key=lambda choices: len(choices.cost)):
            total = summed(total, other, self.cell)
        return total

    def _alone(self, at: int, row: Floats) -> Choices:
        """The sizes of a table whose curve is not convex."""
        made = self.made[at]
        sizes = subdivided(self.weight[at] * row, made.buckets, self.cell)

        def write(point: int, buckets: Floats) -> None:
            buckets[at] = sizes[point]

        cost = self.weight[at] * np.interp(sizes, made.buckets, row)
        return Choices(cost, self.size[at] * sizes, write)

    def _by_slope(
        self, tables: list[int], falls: list[tuple[Floats, Floats, Floats]], fixed: float
    ) -> Choices:
        """Tables with convex curves share memory by slope: the steepest segment comes first."""
        if not falls:
            return replace(NOTHING, cost=np.array([fixed]))
        drop, size, width = map(np.concatenate, zip(*falls, strict=True))
        order = np.argsort(-drop / np.maximum(size, 1e-300), kind="stable")
        owner = np.repeat(np.arange(len(falls)), [len(drops) for drops, _, _ in falls])[order]
        width = width[order]

        def write(taken: int, buckets: Floats) -> None:
            buckets[tables] = np.bincount(owner[:taken], width[:taken], len(tables))

        cost = fixed - np.append(0.0, np.cumsum(drop[order]))
        memory = np.append(0.0, np.cumsum(size[order]))
        return summed(Choices(cost, memory, write), NOTHING, self.cell)


def without_empty(tree: Tree) -> Tree:
    """The tree without intermediate nodes that have no buckets; their children move up."""
    nodes: list[Node] = []
    places: dict[int | None, int | None] = {None: None}
    for at, node in enumerate(tree.nodes):
        if node.buckets == 0 and not node.is_query:
            places[at] = places[node.parent]
            continue
        places[at] = len(nodes)
        parent = places[node.parent]
        nodes.append(replace(node, parent=parent))
    return Tree(tuple(nodes))
