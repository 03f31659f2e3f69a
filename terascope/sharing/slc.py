"""SLC, the allocation that the paper compares itself with (paper 4, section VIII; its [14]).

In: a tree or queries, curves of direct-mapped tables, the memory. Out: buckets of each node.

Its model: one entry a place, every collision evicts, all groups equally frequent, only the cost
during the epoch counts. Its rule: shares in proportion to sqrt(g s), which is best for one level of
tables; below, each child's subtree counts as one supernode with the sum of its groups, whose share
is divided in the same way again. What is flushed at the end is not part of its cost; a limit on it,
the peak load, is tuned instead: several are tried, and the best total is kept.
"""

from __future__ import annotations

from math import expm1, log1p, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from terascope.sharing.cost import Accounting, evaluate
from terascope.sharing.curves import Curves
from terascope.sharing.fptas import without_empty
from terascope.sharing.greedy import unions_of
from terascope.sharing.model import Attributes, Node, Tree

PEAK_LOADS: Final = (1.0, 0.5, 0.2, 0.1, 0.03)
"""Parts of the memory that may be in use when an epoch ends."""


def collision_rate(buckets: float, groups: float) -> float:
    """Of equally frequent groups in places of their own: 1 - b/g (1 - (1 - 1/b)^g)."""
    if buckets <= 1:
        return 1.0 if buckets <= 0 or groups > 1 else 0.0
    return min(1.0, max(0.0, 1 + buckets / groups * expm1(groups * log1p(-1 / buckets))))


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
        weights = [sqrt(whole[at] * (size[at] or accounting.overhead or 8)) for at in children]
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


def grown_by_slc(flat: Tree, curves: Curves, accounting: Accounting, memory: float) -> Tree:
    """Algorithm 1 with SLC's allocation and SLC's cost."""
    best = shares(flat, curves, accounting, memory)
    cost = cost_during(best, curves, accounting)
    while True:
        found = best
        for tree in (*_merged(best), *_deleted(best)):
            tried = shares(tree, curves, accounting, memory)
            price = cost_during(tried, curves, accounting)
            if price < cost * (1 - 1e-6):
                found, cost = tried, price
        if found is best:
            return best
        best = found


def slc(
    flat: Tree, curves: Curves, accounting: Accounting, memory_bytes: float
) -> tuple[Tree, float]:
    """The best total over several peak loads, in which both costs count; and its part."""
    best: tuple[float, Tree, float] | None = None
    for part in PEAK_LOADS:
        tree = without_empty(grown_by_slc(flat, curves, accounting, part * memory_bytes))
        total = evaluate(tree, curves, accounting).total
        if best is None or total < best[0]:
            best = (total, tree, part)
    assert best is not None
    return best[1], best[2]


def _merged(tree: Tree) -> list[Tree]:
    """Every tree with one more node: the union of two siblings, above all siblings within it."""
    names = sorted({name for node in tree.nodes for name in node.attributes})
    bit = {name: 1 << at for at, name in enumerate(names)}
    found: list[Tree] = []
    for parent in (None, *range(len(tree.nodes))):
        siblings = tree.children(parent)
        sets = [sum(bit[name] for name in tree.nodes[at].attributes) for at in siblings]
        bits: npt.NDArray[np.int64] = np.array(sets, np.int64)
        above = -1 if parent is None else sum(bit[n] for n in tree.nodes[parent].attributes)
        for union in unions_of(bits) if len(bits) > 1 else ():
            if int(union) == above or (bits == union).any():
                continue
            inside = {siblings[s] for s in np.flatnonzero(bits & ~union == 0)}
            keys = frozenset(name for name in names if int(union) & bit[name])
            found.append(_with_node(tree, parent, keys, inside))
    return found


def _with_node(tree: Tree, parent: int | None, keys: Attributes, inside: set[int]) -> Tree:
    """The new node stands right after its parent, or first of all."""
    where = 0 if parent is None else parent + 1
    slots = max(tree.nodes[at].slots for at in inside)
    nodes: list[Node] = []
    for at, node in enumerate(tree.nodes):
        up = node.parent if node.parent is None or node.parent < where else node.parent + 1
        up = where if at in inside else up
        nodes.append(Node(node.attributes, up, node.is_query, node.buckets, node.slots))
    nodes.insert(where, Node(keys, parent, False, 0.0, slots))
    return Tree(tuple(nodes))


def _deleted(tree: Tree) -> list[Tree]:
    """Every tree with one intermediate node less."""
    some = tree.with_buckets(tuple(1.0 for _ in tree.nodes))
    return [
        without_empty(some.with_buckets(tuple(float(k != at) for k in range(len(tree.nodes)))))
        for at, node in enumerate(tree.nodes)
        if not node.is_query
    ]
