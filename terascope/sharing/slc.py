"""SLC, the allocation that the paper compares itself with (paper 4, section VIII; its [14]).

In: a tree or queries, curves of direct-mapped tables, the memory. Out: buckets of each node.

Its model: one entry a place, every collision evicts, all groups equally frequent, only the cost
during the epoch counts. Its rule: shares in proportion to sqrt(g s), which is best for one level of
tables; below, each child's subtree counts as one supernode with the sum of its groups, whose share
is divided in the same way again. What is flushed at the end is not part of its cost; a limit on it,
the peak load, is tuned instead: several are tried, and the best total is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor, log2, sqrt
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from terascope.sharing.cost import Accounting, evaluate
from terascope.sharing.curves import Curves
from terascope.sharing.evictions import Floats
from terascope.sharing.fptas import without_empty
from terascope.sharing.greedy import unions_of
from terascope.sharing.model import WORD_BYTES, Attributes, Node, Tree
from terascope.sharing.priced import compiled

Places: TypeAlias = npt.NDArray[np.int64]

PEAK_LOADS: Final = 5
"""So many powers of two below the memory are tried as what may be in use when an epoch ends."""


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
            sqrt(whole[at] * (size[at] or accounting.overhead or WORD_BYTES)) for at in children
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
        free = accounting.is_free(node)
        rate = 0.0 if free else collision_rate(node.buckets, curves.of(node.attributes).groups)
        early.append(rows * rate)
        total += early[-1] * degree
    return total


@compiled
def divided_cost(
    parent: Places, size: Floats, groups: Floats, tuples: float, memory: float, entry: float
) -> float:
    """What `cost_during` says of `shares`, for nodes after their parents; -1: of the stream. Nodes
    of no size have all the memory they want. `entry` is the size of one where it is asked for.
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
    given, early = np.zeros(count + 1), np.zeros(count + 1)
    given[0], early[0] = memory, tuples
    cost = degree[0] * tuples
    for at in range(count):
        above = parent[at] + 1
        if total[above] > 0:
            given[at + 1] = given[above] * weight[at] / total[above]
        if size[at] > 0:
            buckets = given[at + 1] * at_home[at] / total[at + 1] / size[at]
            early[at + 1] = early[above] * collision_rate(buckets, groups[at])
        cost += early[at + 1] * degree[at + 1]
    return float(cost)


@compiled
def cost_with(
    parent: Places,
    size: Floats,
    groups: Floats,
    tuples: float,
    memory: float,
    entry: float,
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
    return float(divided_cost(new_parent, new_size, new_groups, tuples, memory, entry))


def grown_by_slc(flat: Tree, curves: Curves, accounting: Accounting, memory: float) -> Tree:
    """Algorithm 1 with SLC's allocation and SLC's cost."""
    best = flat
    cost = Judge(flat, curves, accounting, memory).cost()
    while True:
        judge = Judge(best, curves, accounting, memory)
        found: tuple[float, Tree | Merge] = (cost * (1 - 1e-6), best)
        for merge in merges(best):
            price = judge.cost_of(merge)
            if price < found[0]:
                found = price, merge
        for tree in _deleted(best):
            price = Judge(tree, curves, accounting, memory).cost()
            if price < found[0]:
                found = price, tree
        if found[1] is best:
            return shares(best, curves, accounting, memory)
        cost, step = found
        best = step if isinstance(step, Tree) else with_node(best, step)


@dataclass(frozen=True)
class Merge:
    """Some children of a node come to stand below a new one, which has all their keys."""

    parent: int | None
    keys: Attributes
    gathered: tuple[int, ...]


class Judge:
    """What trees near a given one cost, for SLC."""

    def __init__(self, tree: Tree, curves: Curves, accounting: Accounting, memory: float) -> None:
        self._tree, self._curves, self._accounting = tree, curves, accounting
        self._memory = memory
        parents = [-1 if node.parent is None else node.parent for node in tree.nodes]
        self._parent = np.array(parents, np.int64)
        self._size = np.array([float(accounting.bytes_of(node)) for node in tree.nodes])
        self._groups = np.array([self._groups_of(node.attributes) for node in tree.nodes])
        self._rest = (curves.statistics.tuples, memory, float(accounting.overhead or WORD_BYTES))

    def _groups_of(self, keys: Attributes) -> float:
        statistics = self._curves.statistics
        return min(max(1.0, statistics.groups(keys)), statistics.tuples)

    def cost(self) -> float:
        return divided_cost(self._parent, self._size, self._groups, *self._rest)

    def cost_of(self, merge: Merge) -> float:
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
    """SLC with its peak load tuned: grown for several parts of the memory, those that were grown
    before among them, the one with the best total is kept, in which both costs count.
    """

    flat: Tree
    curves: Curves
    accounting: Accounting
    grown: dict[float, tuple[float, Tree]] = field(default_factory=dict)
    """For each memory: the total, and the tree."""

    def best(self, memory_bytes: float) -> tuple[Tree, float]:
        """And the part of the memory that it is grown for."""
        power = 2.0 ** floor(log2(max(memory_bytes, 1.0)))
        for size in (memory_bytes, *(power / 2**step for step in range(PEAK_LOADS))):
            self._grow(size)
        tried = [(*self.grown[size], size) for size in self.grown if size <= memory_bytes]
        _, tree, size = min(tried, key=lambda one: (one[0], one[2]))
        return tree, size / memory_bytes if memory_bytes else 1.0

    def _grow(self, memory_bytes: float) -> None:
        if memory_bytes not in self.grown:
            grown = grown_by_slc(self.flat, self.curves, self.accounting, memory_bytes)
            tree = without_empty(grown)
            total = evaluate(tree, self.curves, self.accounting).total
            self.grown[memory_bytes] = total, tree

    def untuned(self, memory_bytes: float) -> float:
        """What it costs with all of the memory."""
        self._grow(memory_bytes)
        return self.grown[memory_bytes][0]


def merges(tree: Tree) -> Iterator[Merge]:
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
            yield Merge(parent, keys, inside)


def _slots(tree: Tree, merge: Merge) -> int:
    return max(tree.nodes[at].slots for at in merge.gathered)


def with_node(tree: Tree, merge: Merge) -> Tree:
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
