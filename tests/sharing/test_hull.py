"""Allocations by prices: what they cost, what they prove, and that Algorithm 2 agrees."""

from __future__ import annotations

import random
from collections.abc import Iterable
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.sharing.cost import Accounting, evaluate, tree_arrays
from terascope.sharing.curves import Curves
from terascope.sharing.fptas import Allocator, merged, without_empty
from terascope.sharing.hull import PricedTree, best_of, priced
from terascope.sharing.model import TableModel, flat_tree
from terascope.sharing.plan import Planner
from tests.settings import SOAK
from tests.sharing.known_statistics import KnownStatistics
from tests.sharing.test_fptas import known, small_tree
from tests.sharing.test_plan import correlated, pairs

EPS = 0.05
MODELS: tuple[TableModel, ...] = ("lru", "second_chance", "uniform")


def accountings(bounded: bool) -> Accounting:
    return Accounting("lru", 3.0 if bounded else 0.0, bounded)


@given(known(), st.integers(0, 2), st.sampled_from(MODELS), st.booleans(), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_costs_are_those_of_the_tree(
    statistics: KnownStatistics, shape: int, model: TableModel, bounded: bool, seed: int
) -> None:
    """Of any sizes; and at a price the total is cost and memory, as far as grids go."""
    tree, curves, accounting = small_tree(shape), Curves(statistics, model), accountings(bounded)
    made = PricedTree(tree_arrays(tree, curves, accounting))

    def cost(sizes: Iterable[float]) -> float:
        kept = without_empty(tree.with_buckets(tuple(map(float, sizes))))
        return evaluate(kept, curves, accounting).total

    dice = np.random.default_rng(seed)
    most = np.array([curves.of(node.attributes).most for node in tree.nodes])
    sizes = most * dice.choice([0, 1e-3, 0.2, 0.77, 1], (10, len(most)))
    ours = [one.cost for one in made.measured(sizes)]
    assert ours == pytest.approx([cost(some) for some in sizes], rel=1e-9)
    price = float(10 ** dice.uniform(-2, 3))
    made.ask(price)
    total, found = made.asked[price]
    assert found.cost == pytest.approx(cost(found.buckets), rel=1e-9)
    assert total == pytest.approx(found.cost + price * found.memory, rel=3e-3)


@given(known(), st.integers(0, 2), st.booleans(), st.floats(0.001, 1.2))
@settings(max_examples=20 if SOAK else 8, deadline=None)
def test_bounds_are_below_what_algorithm_2_finds(
    statistics: KnownStatistics, shape: int, bounded: bool, part: float
) -> None:
    tree, curves, accounting = small_tree(shape), Curves(statistics, "lru"), accountings(bounded)
    (by_price,) = priced([tree], curves, accounting, EPS)
    found = by_price.frontier
    fine = Allocator(tree, curves, accounting, 0.4 if bounded else 0.02).frontier()
    memory = part * fine.memory[-1]
    least = by_price.least(np.array([memory]))[0]
    assert least <= fine.cost[fine.best(memory)]
    assert least <= found.cost[found.best(memory)]
    assert (np.diff(found.memory) > 0).all()
    assert (np.diff(found.cost) < 0).all()
    best = found.best(memory)
    sizes = tuple(float(size) for size in found.allocations[best])
    chosen = without_empty(tree.with_buckets(sizes))
    assert accounting.memory(chosen) <= memory * (1 + 1e-9)
    assert evaluate(chosen, curves, accounting).total == pytest.approx(found.cost[best], rel=1e-6)
    both = merged(found, fine)
    assert both.cost[both.best(memory)] == min(found.cost[best], fine.cost[fine.best(memory)])


@pytest.mark.parametrize("bounded", [False, True])
def test_prices_alone_come_near_the_bounds(bounded: bool) -> None:
    """Whatever the memory. A few queries have greater jumps; there Algorithm 2 is quick."""
    names, queries = pairs(10)
    statistics, accounting = correlated(names, 2), accountings(bounded)
    trees = Planner(queries, statistics, accounting=accounting).trees
    found = priced(trees, Curves(statistics, "lru"), accounting, EPS)
    edges, best = best_of(tuple(tree.frontier for tree in found))
    least = np.min([tree.least(edges) for tree in found], axis=0)
    assert len(edges) > 20
    assert (best >= least).all()
    roomy = edges > 1e4
    assert (best[roomy] <= (1 + EPS) * least[roomy]).all()


@pytest.mark.parametrize("bounded", [False, True])
def test_78_pairs_with_the_exchange(bounded: bool) -> None:
    """The limit of time is generous; the aim is 10 s."""
    names, queries = pairs(13)
    accounting = Accounting("lru", 8.0 if bounded else 0.0, bounded)
    began = process_time()
    planner = Planner(queries, correlated(names, 2), accounting=accounting)
    for size in (1e5, 1e6, 1e7, 1e9):
        plan = planner.plan(size)
        assert plan.memory_bytes <= size * (1 + 1e-9)
        assert plan.cost.total <= plan.flat_cost.total * (1 + 1e-9)
        assert planner.least(size) <= plan.cost.total <= (1 + EPS) * planner.least(size)
    assert process_time() - began < 40


def test_a_flat_tree_with_bounded_queries_is_divided_well() -> None:
    """What is saved is told beside it: it has its own proof, whatever the trees do."""
    names, queries = pairs(6)
    curves, accounting = Curves(correlated(names, 4), "lru"), accountings(bounded=True)
    flat = flat_tree(queries)
    (found,) = priced([flat], curves, accounting, EPS)
    fine = Allocator(flat, curves, accounting, 0.02).frontier()
    dice = random.Random(1)
    for _ in range(20):
        memory = fine.memory[-1] * 10 ** dice.uniform(-2, 0)
        ours, best = found.frontier, fine.cost[fine.best(memory)]
        assert ours.cost[ours.best(memory)] <= best * (1 + EPS)
