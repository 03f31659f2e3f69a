"""Trees whose tables have all they want."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.sharing.cost import Accounting, least_cost
from terascope.sharing.curves import Curves
from terascope.sharing.greedy import grown_trees, prices
from terascope.sharing.model import Query, flat_tree
from terascope.sharing.union_search import UnionSearch, union_trees
from tests.sharing.test_all_trees import all_trees
from tests.sharing.test_plan import correlated, pairs


@given(st.integers(0, 10_000), st.integers(2, 8))
@settings(max_examples=20, deadline=None)
def test_every_node_stands_below_the_smallest_that_contains_it(seed: int, count: int) -> None:
    dice = random.Random(seed)
    names = "abcdef"
    queries = tuple(
        Query(frozenset(dice.sample(names, dice.randint(1, 3))), dice.randint(1, 3))
        for _ in range(count)
    )
    statistics = correlated(list(names), seed)
    flat, accounting = flat_tree(queries), Accounting("lru")
    curves = Curves(statistics, "lru")
    for tree in union_trees(flat, statistics, accounting, prices(flat, statistics.tuples)):
        asked = {node.attributes: node.slots for node in tree.nodes if node.is_query}
        assert asked == {node.attributes: node.slots for node in flat.nodes}
        for at, node in enumerate(tree.nodes):
            above = [n for n in tree.nodes if node.attributes < n.attributes]
            rows = min([statistics.tuples, *(statistics.groups(n.attributes) for n in above)])
            up = None if node.parent is None else tree.nodes[node.parent]
            fed = statistics.tuples if up is None else statistics.groups(up.attributes)
            assert fed == pytest.approx(rows)
            below = [tree.nodes[child].slots for child in tree.children(at)]
            if not node.is_query:
                assert len(below) > 1
                assert node.slots == max(below)
    assert least_cost(tree, curves, accounting) <= least_cost(flat, curves, accounting)


@pytest.mark.parametrize("seed", range(4))
def test_near_the_best_of_all_trees(seed: int) -> None:
    texts = ("ab", "bc", "cd", "ad")
    statistics = correlated(list("abcd"), seed)
    curves, accounting = Curves(statistics, "lru"), Accounting("lru")
    sets = [frozenset(text) for text in texts]
    best = min(least_cost(tree, curves, accounting) for tree in all_trees(sets))
    flat = flat_tree(tuple(Query(keys) for keys in sets))
    (found,) = union_trees(flat, statistics, accounting, [0.0])
    assert least_cost(found, curves, accounting) <= best * 1.001


@pytest.mark.parametrize("seed", range(4))
def test_no_worse_than_merging_siblings(seed: int) -> None:
    """Of pairs of attributes, where there is memory for all."""
    names, queries = pairs(8)
    statistics = correlated(names, seed)
    curves, accounting = Curves(statistics, "lru"), Accounting("lru")
    flat = flat_tree(queries)
    ladder = prices(flat, statistics.tuples)
    merged = grown_trees(flat, curves, accounting, ladder)[-1]
    anywhere = union_trees(flat, statistics, accounting, ladder)[-1]
    ours, theirs = (least_cost(tree, curves, accounting) for tree in (anywhere, merged))
    assert ours <= theirs * (1 + 1e-9)


def test_memory_that_costs_too_much_is_not_taken() -> None:
    names, queries = pairs(5)
    gathering = UnionSearch(flat_tree(queries), correlated(names, 3), Accounting("lru"))
    gathering.improve(0.0)
    assert len(gathering.members) > len(queries)
    gathering.improve(1e12)
    assert len(gathering.members) == len(queries)
