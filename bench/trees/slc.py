"""SLC, the allocation that the paper compares itself with (paper 4, section VIII; its [14]).

In: a tree or queries, curves of direct-mapped tables, the memory. Out: buckets of each node.

Its model: one entry a place, every collision evicts, all groups equally frequent, only the cost
during the epoch counts. Its rule: shares in proportion to sqrt(g s), which is best for one level of
tables; below, each child's subtree counts as one supernode with the sum of its groups, whose share
is divided in the same way again. What is flushed at the end is not part of its cost, but limited:
where a tree's tables would flush more than the peak load, their memory is shrunk until they do not.
The paper tunes the peak load for each memory by trying which makes the total least; so do we.
Trees are grown by Algorithm 1 as printed: siblings merged, nodes deleted, judged by SLC's own cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt
from time import perf_counter
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from terascope.machine_code import compiled
from terascope.sharing.cost import Accounting, evaluate
from terascope.sharing.curves import Curves, Floats
from terascope.sharing.fptas import without_empty
from terascope.sharing.greedy import unions_of
from terascope.sharing.model import (
    OVERHEAD,
    WORD_BYTES,
    Attributes,
    Node,
    Query,
    RememberedStatistics,
    Statistics,
    Tree,
    flat_tree,
)
from terascope.sharing.plan import Planned

Places: TypeAlias = npt.NDArray[np.int64]

PEAK_LOADS: Final = 15
PEAK_LOAD_STEP: Final = 2 ** (1 / 3)
"""So many limits are tried, each by this factor below the one before; the first is what the tree
flushes that is grown without a limit."""
SHRINKINGS: Final = 12
"""How often the memory is halved, or what is left of it, to find what keeps to a limit."""


@compiled
def collision_rate(buckets: float, groups: float) -> float:
    """Of equally frequent groups in places of their own: 1 - b/g (1 - (1 - 1/b)^g)."""
    if buckets <= 1:
        return 1.0 if buckets <= 0 or groups > 1 else 0.0
    kept = -buckets / groups * np.expm1(groups * np.log1p(-1 / buckets))
    return float(min(1.0, max(0.0, 1 - kept)))


def shares(tree: Tree, curves: Curves, accounting: Accounting, memory: float) -> Tree:
    """The tree with its memory divided by sqrt(g s), level by level."""
    nodes = tree.nodes
    size = [float(accounting.bytes_of(node)) for node in nodes]
    groups = [curves.of(node.attributes).groups for node in nodes]
    whole = [g if s else 0.0 for g, s in zip(groups, size, strict=True)]
    for at in range(len(nodes) - 1, -1, -1):
        parent = nodes[at].parent
        if parent is not None:
            whole[parent] += whole[at]
    below: dict[int | None, list[int]] = {}
    for at, node in enumerate(nodes):
        below.setdefault(node.parent, []).append(at)
    buckets = [0.0 if s else g for g, s in zip(groups, size, strict=True)]

    def divide(given: float, own: int | None) -> None:
        children = [at for at in below.get(own, ()) if whole[at] > 0]
        weights = [
            sqrt(whole[at] * (size[at] or OVERHEAD[accounting.model] or WORD_BYTES))
            for at in children
        ]
        at_home = 0.0 if own is None or not size[own] else sqrt(groups[own] * size[own])
        total = at_home + sum(weights)
        if total == 0:
            return
        if own is not None and size[own]:
            buckets[own] = given * at_home / total / size[own]
        for at, weight in zip(children, weights, strict=True):
            divide(given * weight / total, at)

    divide(memory, None)
    return tree.with_buckets(tuple(buckets))


def cost_during(tree: Tree, curves: Curves, accounting: Accounting) -> float:
    """What SLC minimises: hash operations during the epoch, in its own model."""
    tuples = curves.statistics.tuples
    degrees = tree.degrees()
    early: list[float] = []
    total = len(tree.children(None)) * tuples
    for node, degree in zip(tree.nodes, degrees, strict=True):
        rows = tuples if node.parent is None else early[node.parent]
        free = accounting.is_free(node.is_query)
        rate = 0.0 if free else collision_rate(node.buckets, curves.of(node.attributes).groups)
        early.append(rows * rate)
        total += early[-1] * degree
    return total


@compiled
def divided_cost(
    parent: Places, size: Floats, groups: Floats, tuples: float, memory: float, entry: float
) -> tuple[float, float]:
    """What `cost_during` says of `shares`, for nodes after their parents; -1: of the stream. Nodes
    of no size have all the memory they want. `entry` is the size of one where it is asked for. And
    hash operations at the end: what is in a table, and what its parent's rows then drive out of it.
    """
    count = len(parent)
    whole = np.where(size > 0, groups, 0.0)
    degree = np.zeros(count + 1)
    for at in range(count - 1, -1, -1):
        degree[parent[at] + 1] += 1
        if parent[at] >= 0:
            whole[parent[at]] += whole[at]
    weight = np.sqrt(whole * np.where(size > 0, size, entry))
    at_home = np.sqrt(groups * size)
    total = np.append(0.0, at_home)
    for at in range(count):
        total[parent[at] + 1] += weight[at]
    given, early, flushed = np.zeros(count + 1), np.zeros(count + 1), np.zeros(count + 1)
    given[0], early[0] = memory, tuples
    cost, end = degree[0] * tuples, 0.0
    for at in range(count):
        above = parent[at] + 1
        if total[above] > 0:
            given[at + 1] = given[above] * weight[at] / total[above]
        if size[at] > 0:
            buckets = given[at + 1] * at_home[at] / total[at + 1] / size[at]
            rate = collision_rate(buckets, groups[at])
            early[at + 1] = early[above] * rate
            held = -buckets * np.expm1(-groups[at] / max(buckets, 1e-9))
            flushed[at + 1] = held + rate * flushed[above]
        else:
            flushed[at + 1] = groups[at]
        cost += early[at + 1] * degree[at + 1]
        end += flushed[at + 1] * degree[at + 1]
    return float(cost), float(end)


@compiled
def limited_cost(
    parent: Places,
    size: Floats,
    groups: Floats,
    tuples: float,
    memory: float,
    entry: float,
    peak_load: float,
) -> tuple[float, float]:
    """During the epoch, with no more flushed at the end than the peak load; and with which memory.
    Infinite where that is not possible.
    """
    cost, end = divided_cost(parent, size, groups, tuples, memory, entry)
    if end <= peak_load:
        return cost, memory
    low, high = 0.0, memory
    for _ in range(SHRINKINGS):
        middle = (low + high) / 2
        _, end = divided_cost(parent, size, groups, tuples, middle, entry)
        if end <= peak_load:
            low = middle
        else:
            high = middle
    cost, end = divided_cost(parent, size, groups, tuples, low, entry)
    return (cost if end <= peak_load else np.inf), low


@compiled
def cost_with(
    parent: Places,
    size: Floats,
    groups: Floats,
    tuples: float,
    memory: float,
    entry: float,
    peak_load: float,
    above: int,
    gathered: Places,
    own_size: float,
    own_groups: float,
) -> float:
    """With one more node below `above`, whose children the gathered come to be."""
    count = len(parent)
    new_parent = np.empty(count + 1, np.int64)
    new_size, new_groups = np.empty(count + 1), np.empty(count + 1)
    where = above + 1
    new_parent[where], new_size[where], new_groups[where] = above, own_size, own_groups
    for at in range(count):
        to = at if at < where else at + 1
        up = parent[at]
        new_parent[to] = up if up < where else up + 1
        new_size[to], new_groups[to] = size[at], groups[at]
    for at in gathered:
        new_parent[at if at < where else at + 1] = where
    found = limited_cost(new_parent, new_size, new_groups, tuples, memory, entry, peak_load)
    return float(found[0])


def grown_by_slc(
    flat: Tree, curves: Curves, accounting: Accounting, memory: float, peak_load: float = inf
) -> Tree:
    """Algorithm 1 with SLC's allocation and SLC's cost."""
    best = flat
    cost, given = NeighbourCosts(flat, curves, accounting, memory, peak_load).cost()
    while True:
        judge = NeighbourCosts(best, curves, accounting, memory, peak_load)
        found: tuple[float, Tree | SiblingMerge] = (cost * (1 - 1e-6), best)
        for merge in all_merges(best):
            price = judge.cost_of(merge)
            if price < found[0]:
                found = price, merge
        for tree in _deleted(best):
            price, _ = NeighbourCosts(tree, curves, accounting, memory, peak_load).cost()
            if price < found[0]:
                found = price, tree
        if found[1] is best:
            return shares(best, curves, accounting, given)
        step = found[1]
        best = step if isinstance(step, Tree) else with_node(best, step)
        cost, given = NeighbourCosts(best, curves, accounting, memory, peak_load).cost()


@dataclass(frozen=True)
class SiblingMerge:
    """Some children of a node come to stand below a new one, which has all their keys."""

    parent: int | None
    keys: Attributes
    gathered: tuple[int, ...]


class NeighbourCosts:
    """What trees near a given one cost, for SLC."""

    def __init__(
        self,
        tree: Tree,
        curves: Curves,
        accounting: Accounting,
        memory: float,
        peak_load: float = inf,
    ) -> None:
        self._tree, self._curves, self._accounting = tree, curves, accounting
        parents = [-1 if node.parent is None else node.parent for node in tree.nodes]
        self._parent = np.array(parents, np.int64)
        self._size = np.array([float(accounting.bytes_of(node)) for node in tree.nodes])
        self._groups = np.array([self._groups_of(node.attributes) for node in tree.nodes])
        entry = float(OVERHEAD[accounting.model] or WORD_BYTES)
        self._rest = (curves.statistics.tuples, memory, entry, float(peak_load))

    def _groups_of(self, keys: Attributes) -> float:
        statistics = self._curves.statistics
        return min(max(1.0, statistics.groups(keys)), statistics.tuples)

    def cost(self) -> tuple[float, float]:
        """And the memory it is for."""
        return limited_cost(self._parent, self._size, self._groups, *self._rest)

    def cost_of(self, merge: SiblingMerge) -> float:
        above = -1 if merge.parent is None else merge.parent
        node = Node(merge.keys, merge.parent, False, 0.0, _slots(self._tree, merge))
        return cost_with(
            self._parent,
            self._size,
            self._groups,
            *self._rest,
            above,
            np.array(merge.gathered, np.int64),
            float(self._accounting.bytes_of(node)),
            self._groups_of(merge.keys),
        )


@dataclass
class Tuned:
    """SLC with its peak load tuned for each memory: the one with the best total is kept, in which
    both costs count.
    """

    flat: Tree
    curves: Curves
    accounting: Accounting

    def best(self, memory_bytes: float) -> tuple[Tree, float]:
        """And the peak load; infinite: none."""
        total, end, tree = self._grown(memory_bytes, inf)
        tried = [(total, inf, tree)]
        for step in range(1, PEAK_LOADS + 1):
            limit = end / PEAK_LOAD_STEP**step
            total, _, tree = self._grown(memory_bytes, limit)
            tried.append((total, limit, tree))
        _, limit, tree = min(tried, key=lambda one: one[0])
        return tree, limit

    def _grown(self, memory_bytes: float, peak_load: float) -> tuple[float, float, Tree]:
        """The total, what of it is at the end of the epoch, and the tree."""
        grown = grown_by_slc(self.flat, self.curves, self.accounting, memory_bytes, peak_load)
        tree = without_empty(grown)
        cost = evaluate(tree, self.curves, self.accounting)
        return cost.total, cost.end, tree

    def untuned(self, memory_bytes: float) -> float:
        """What it costs without a peak load."""
        return self._grown(memory_bytes, inf)[0]


class SlcPlanner:
    """Plans trees as SLC does, with its peak load tuned for each memory."""

    def __init__(
        self, queries: tuple[Query, ...], statistics: Statistics, accounting: Accounting
    ) -> None:
        self._curves = Curves(RememberedStatistics(statistics), "direct_mapped")
        self._accounting = accounting
        self._flat = flat_tree(queries)
        self._tuned = Tuned(self._flat, self._curves, accounting)

    def plan(self, memory_bytes: float) -> Planned:
        began = perf_counter()
        tree, _ = self._tuned.best(memory_bytes)
        flat = shares(self._flat, self._curves, self._accounting, memory_bytes)
        return Planned(
            tree,
            evaluate(tree, self._curves, self._accounting),
            evaluate(flat, self._curves, self._accounting),
            self._accounting.memory(tree),
            flat,
            perf_counter() - began,
        )

    def untuned(self, memory_bytes: float) -> float:
        """The cost of the plan without a peak load."""
        return self._tuned.untuned(memory_bytes)


@lru_cache(maxsize=512)
def all_merges(tree: Tree) -> tuple[SiblingMerge, ...]:
    """Trees are grown for many peak loads, with the same first steps."""
    return tuple(merges(tree))


def merges(tree: Tree) -> Iterator[SiblingMerge]:
    """Every way to add the union of two siblings, above all siblings within it."""
    names = sorted({name for node in tree.nodes for name in node.attributes})
    bit = {name: 1 << at for at, name in enumerate(names)}
    for parent in (None, *range(len(tree.nodes))):
        siblings = tree.children(parent)
        sets = [sum(bit[name] for name in tree.nodes[at].attributes) for at in siblings]
        bits: Places = np.array(sets, np.int64)
        above = -1 if parent is None else sum(bit[n] for n in tree.nodes[parent].attributes)
        for union in unions_of(bits) if len(bits) > 1 else ():
            if int(union) == above or (bits == union).any():
                continue
            inside = tuple(siblings[s] for s in np.flatnonzero(bits & ~union == 0))
            keys = frozenset(name for name in names if int(union) & bit[name])
            yield SiblingMerge(parent, keys, inside)


def _slots(tree: Tree, merge: SiblingMerge) -> int:
    return max(tree.nodes[at].slots for at in merge.gathered)


def with_node(tree: Tree, merge: SiblingMerge) -> Tree:
    """The new node stands right after its parent, or first of all."""
    where = 0 if merge.parent is None else merge.parent + 1
    nodes: list[Node] = []
    for at, node in enumerate(tree.nodes):
        up = node.parent if node.parent is None or node.parent < where else node.parent + 1
        up = where if at in merge.gathered else up
        nodes.append(Node(node.attributes, up, node.is_query, node.buckets, node.slots))
    nodes.insert(where, Node(merge.keys, merge.parent, False, 0.0, _slots(tree, merge)))
    return Tree(tuple(nodes))


def _deleted(tree: Tree) -> list[Tree]:
    """Every tree with one intermediate node less."""
    some = tree.with_buckets(tuple(1.0 for _ in tree.nodes))
    return [
        without_empty(some.with_buckets(tuple(float(k != at) for k in range(len(tree.nodes)))))
        for at, node in enumerate(tree.nodes)
        if not node.is_query
    ]
