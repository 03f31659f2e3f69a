"""The other allocations: all or nothing, and the baseline SLC."""

from __future__ import annotations

from math import expm1, inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.trees.all_or_nothing import all_or_nothing
from bench.trees.slc import (
    NeighbourCosts,
    SlcPlanner,
    Tuned,
    collision_rate,
    cost_during,
    grown_by_slc,
    merges,
    shares,
    with_node,
)
from terascope.sharing.cost import Accounting, evaluate
from terascope.sharing.curves import Curves
from terascope.sharing.fptas import Allocator, without_empty
from terascope.sharing.model import Tree, flat_tree
from terascope.sharing.plan import Planner
from tests.sharing.known_statistics import KnownStatistics
from tests.sharing.test_fptas import EPS, known, small_tree
from tests.sharing.test_plan import correlated, pairs

pytestmark = pytest.mark.bench


@given(known(), st.integers(0, 2), st.floats(0.01, 1.2))
@settings(max_examples=12, deadline=None)
def test_all_or_nothing_is_best_on_uniform_input(
    statistics: KnownStatistics, shape: int, part: float
) -> None:
    """Theorem 3, against Algorithm 2; nodes that get nothing are left out in both."""
    tree, curves, accounting = small_tree(shape), Curves(statistics, "uniform"), Accounting("lru")
    full = tuple(curves.of(node.attributes).most for node in tree.nodes)
    memory = part * accounting.memory(tree.with_buckets(full))
    sizes, cost = all_or_nothing(tree, curves, accounting, memory)
    given_ = tree.with_buckets(sizes)
    assert accounting.memory(given_) <= memory * (1 + 1e-9)
    assert evaluate(without_empty(given_), curves, accounting).total == pytest.approx(cost)
    partial = [
        at
        for at, node in enumerate(tree.nodes)
        if 1e-9 < node_part(sizes[at], curves.of(node.attributes).most) < 1 - 1e-9
    ]
    assert len(partial) <= 1
    whole = Allocator(tree, curves, accounting, EPS).frontier()
    assert cost <= whole.cost[whole.best(memory)] * (1 + 1e-9)
    kept = Allocator(without_empty(given_), curves, accounting, EPS).frontier()
    assert kept.cost[kept.best(memory)] <= cost * (1 + EPS)


def node_part(size: float, most: float) -> float:
    return size / most


def test_slc_divides_by_the_root_of_groups_and_bytes() -> None:
    statistics = KnownStatistics(1e6, {frozenset("a"): 100.0, frozenset("b"): 400.0})
    tree = small_tree(0)
    for name in "cd":
        statistics = KnownStatistics(1e6, {**statistics.known_groups, frozenset(name): 10.0})
    curves, accounting = Curves(statistics, "direct_mapped"), Accounting("direct_mapped")
    given_ = shares(tree, curves, accounting, 1e6)
    assert accounting.memory(given_) == pytest.approx(1e6)
    assert all(node.buckets > 0 for node in given_.nodes)
    assert collision_rate(0, 10) == 1
    assert collision_rate(1e6, 10) < 1e-4
    assert collision_rate(1000, 1000) == pytest.approx(0.368, abs=0.01)


def test_slc_adds_what_pays_in_its_own_model() -> None:
    names, queries = pairs(6)
    statistics = correlated(names, 8)
    curves, accounting = Curves(statistics, "direct_mapped"), Accounting("direct_mapped")
    flat = flat_tree(queries)
    grown = grown_by_slc(flat, curves, accounting, 4e6)
    assert len(grown.nodes) > len(flat.nodes)
    assert cost_during(grown, curves, accounting) < cost_during(flat, curves, accounting)


def test_a_tuned_peak_load_never_costs_more() -> None:
    names, queries = pairs(6)
    curves = Curves(correlated(names, 8), "direct_mapped")
    accounting = Accounting("direct_mapped")
    tuned = Tuned(flat_tree(queries), curves, accounting)
    limited = 0
    for memory in (1e5, 1e6, 1e8):
        tree, peak_load = tuned.best(memory)
        assert accounting.memory(tree) <= memory * (1 + 1e-9)
        assert evaluate(tree, curves, accounting).total <= tuned.untuned(memory)
        limited += peak_load < inf
    assert limited


@given(st.integers(0, 1000), st.floats(0.05, 0.9))
@settings(max_examples=10, deadline=None)
def test_slc_keeps_to_its_peak_load(seed: int, part: float) -> None:
    """By its own model, in which groups are equally frequent."""
    names, queries = pairs(5)
    curves = Curves(correlated(names, seed), "direct_mapped")
    accounting, flat, memory = Accounting("direct_mapped"), flat_tree(queries), 4e6
    free = grown_by_slc(flat, curves, accounting, memory)
    limit = part * flushed(free, curves)
    tree = grown_by_slc(flat, curves, accounting, memory, limit)
    assert flushed(tree, curves) <= limit * (1 + 1e-6)
    assert accounting.memory(tree) <= memory * (1 + 1e-9)


def flushed(tree: Tree, curves: Curves) -> float:
    """Hash operations when all tables are emptied, from the top down."""
    rows: list[float] = []
    for node in tree.nodes:
        groups = curves.of(node.attributes).groups
        above = 0.0 if node.parent is None else rows[node.parent]
        held = -node.buckets * expm1(-groups / node.buckets)
        rows.append(held + collision_rate(node.buckets, groups) * above)
    return sum(rows[node.parent] for node in tree.nodes if node.parent is not None)


@given(st.integers(0, 1000), st.floats(4, 8), st.booleans())
@settings(max_examples=15, deadline=None)
def test_slc_is_judged_as_its_shares_cost(seed: int, digits: float, bounded: bool) -> None:
    """Step by step, also for trees that were not made yet."""
    names, queries = pairs(4)
    curves = Curves(correlated(names, seed), "direct_mapped")
    accounting = Accounting("direct_mapped", 1.0, bounded)
    memory = 10**digits
    tree = flat_tree(queries)
    for _ in range(3):
        judge = NeighbourCosts(tree, curves, accounting, memory)
        own = cost_during(shares(tree, curves, accounting, memory), curves, accounting)
        cost, used = judge.cost()
        assert cost == pytest.approx(own)
        assert used == memory
        steps = list(merges(tree))
        if not steps:
            return
        step = steps[seed % len(steps)]
        tree = with_node(tree, step)
        then = shares(tree, curves, accounting, memory)
        assert judge.cost_of(step) == pytest.approx(cost_during(then, curves, accounting))


def test_the_baseline_takes_more_hash_operations() -> None:
    names, queries = pairs(6)
    statistics = correlated(names, 8)
    ours = Planner(queries, statistics).plan(4e6)
    slc = SlcPlanner(queries, statistics, Accounting("direct_mapped")).plan(4e6)
    assert ours.cost.total < slc.cost.total <= slc.flat_cost.total
    assert slc.memory_bytes <= 4e6 * (1 + 1e-9)
