from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.sharing.cost import Accounting, evaluate, least_cost
from terascope.sharing.curves import Curves
from terascope.sharing.fptas import Allocator, without_empty
from terascope.sharing.model import Attributes, Node, TableModel, Tree, entry_bytes
from tests.sharing.known_statistics import KnownStatistics

EPS = 0.05
TUPLES = 100_000.0


def keys(text: str) -> Attributes:
    return frozenset(text)


def small_tree(shape: int) -> Tree:
    """Up to three intermediate nodes: side by side, below each other, and a query among them."""
    chain = (
        Node(keys("abcd"), None, False, 0),
        Node(keys("abc"), 0, False, 0),
        Node(keys("ab"), 1, shape == 2, 0),
        Node(keys("a"), 2, True, 0),
        Node(keys("b"), 2, True, 0),
        Node(keys("ac"), 1, True, 0),
        Node(keys("cd"), 0, True, 0),
        Node(keys("ad"), 0, True, 0),
    )
    beside = (
        Node(keys("abcd"), None, False, 0),
        Node(keys("abc"), 0, False, 0),
        Node(keys("bcd"), 0, False, 0, 2),
        Node(keys("ab"), 1, True, 0),
        Node(keys("ac"), 1, True, 0),
        Node(keys("bd"), 2, True, 0, 2),
        Node(keys("cd"), 2, True, 0),
    )
    return Tree(beside if shape == 0 else chain)


@st.composite
def known(draw: st.DrawFn) -> KnownStatistics:
    sizes = {name: draw(st.floats(3, 40)) for name in "abcd"}
    exponents = {frozenset([name]): draw(st.floats(0, 1.3)) for name in "abcd"}
    return KnownStatistics(
        TUPLES, {frozenset([name]): size for name, size in sizes.items()}, exponents
    )


def exhaustive(tree: Tree, curves: Curves, accounting: Accounting, memory: float) -> float:
    """The least cost over a grid of sizes; what is left over goes to one node. All nodes of the
    tree are kept, as the paper has it.
    """
    open_ = [at for at, node in enumerate(tree.nodes) if not accounting.is_free(node.is_query)]
    made = [curves.of(node.attributes) for node in tree.nodes]
    best = float("inf")
    parts = [0.0, *np.geomspace(0.002, 1, 15)]
    for rest in open_:
        others = [at for at in open_ if at != rest]
        for chosen in product(parts, repeat=len(others)):
            sizes = [0.0] * len(tree.nodes)
            for at, part in zip(others, chosen, strict=True):
                sizes[at] = part * made[at].most
            left = memory - accounting.memory(tree.with_buckets(tuple(sizes)))
            if left < 0:
                continue
            width = accounting.entry_bytes(len(tree.nodes[rest].attributes), tree.nodes[rest].slots)
            sizes[rest] = min(made[rest].most, left / width)
            cost = evaluate(tree.with_buckets(tuple(sizes)), curves, accounting).total
            best = min(best, cost)
    return best


@given(known(), st.integers(0, 2), st.floats(0.01, 1.2), st.sampled_from(["lru", "uniform"]))
@settings(max_examples=8, deadline=None)
def test_within_eps_of_all_allocations(
    statistics: KnownStatistics, shape: int, part: float, model: TableModel
) -> None:
    tree, curves, accounting = small_tree(shape), Curves(statistics, model), Accounting("lru")
    full = tuple(curves.of(node.attributes).most for node in tree.nodes)
    memory = part * accounting.memory(tree.with_buckets(full))
    found = Allocator(tree, curves, accounting, EPS).frontier()
    point = found.best(memory)
    assert found.memory[point] <= memory * (1 + 1e-9)
    assert found.cost[point] <= (1 + EPS) * exhaustive(tree, curves, accounting, memory)


@given(known(), st.integers(0, 2), st.booleans())
@settings(max_examples=5, deadline=None)
def test_a_frontier_is_what_it_says(statistics: KnownStatistics, shape: int, bounded: bool) -> None:
    tree, curves = small_tree(shape), Curves(statistics, "lru")
    accounting = Accounting("lru", 4.0, bounded)
    found = Allocator(tree, curves, accounting, 0.25).frontier()
    assert (np.diff(found.memory) > 0).all()
    assert (np.diff(found.cost) < 0).all()
    assert found.memory[0] == 0
    for point in range(0, len(found.cost), max(1, len(found.cost) // 5)):
        sizes = tuple(float(size) for size in found.allocations[point])
        kept = without_empty(tree.with_buckets(sizes))
        assert accounting.memory(kept) == pytest.approx(found.memory[point])
        assert evaluate(kept, curves, accounting).total == pytest.approx(found.cost[point])
    assert found.cost[-1] <= least_cost(tree, curves, accounting) * (1 + 1e-9)


def test_leaves_share_a_budget() -> None:
    """Ours: what leaves a query's table is exchanged, and memory goes where that is saved."""
    statistics = KnownStatistics(
        TUPLES, {keys("a"): 100.0, keys("b"): 5000.0}, {keys("a"): 0.0, keys("b"): 0.0}
    )
    tree = Tree((Node(keys("a"), None, True, 0), Node(keys("b"), None, True, 0)))
    accounting, curves = Accounting("lru", 3.0, True), Curves(statistics, "uniform")
    found = Allocator(tree, curves, accounting, EPS).frontier()
    width = entry_bytes(len(tree.nodes[0].attributes), tree.nodes[0].slots, 20)
    sizes = found.allocations[found.best(100 * width)]
    assert sizes[0] == pytest.approx(100, rel=0.05)
    assert found.cost[found.best(100 * width)] <= 1.05 * (2 * TUPLES + 3 * (100 + TUPLES))
