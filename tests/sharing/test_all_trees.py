"""Algorithm 1 is a heuristic: how far from the best of all trees, where they can be enumerated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest

from terascope.sharing.cost import Accounting
from terascope.sharing.curves import Curves
from terascope.sharing.fptas import Allocator
from terascope.sharing.model import Attributes, Node, Query, Tree
from terascope.sharing.plan import Planner
from tests.sharing.test_plan import Correlated, correlated

EPS = 0.05
MOST_INTERMEDIATE = 3
CASES = (
    (("ab", "bc", "cd"), 1),
    (("ab", "bc", "cd"), 3),
    (("ab", "cd", "ac"), 6),
    (("ab", "bc", "cd", "ad"), 5),
    (("a", "ab", "bc", "cd"), 0),
)
"""Queries, and the seed of what their attributes are like."""
MEMORY = (2e3, 2e4, 2e5, 1e9)
"""From next to nothing to all that can be used."""
FURTHEST = 1.001
"""Of 27 sets and seeds that were tried, all four budgets, none was further away."""


def all_trees(queries: Sequence[Attributes]) -> Iterator[Tree]:
    """Every tree whose intermediate nodes are unions of queries, up to three of them; every node
    below any node that has more keys, or takes the stream.
    """
    unions = {
        frozenset().union(*some)
        for size in range(2, len(queries) + 1)
        for some in combinations(queries, size)
    }
    others = sorted(unions - set(queries), key=sorted)
    for count in range(min(MOST_INTERMEDIATE, len(others)) + 1):
        for inner in combinations(others, count):
            sets = sorted((*queries, *inner), key=lambda keys: (-len(keys), sorted(keys)))
            for parents in homes(sets):
                if {at for at, keys in enumerate(sets) if keys in inner} <= set(parents):
                    yield tree_of(sets, parents, queries)


def homes(sets: Sequence[Attributes]) -> Iterator[tuple[int | None, ...]]:
    """All ways to give every set a parent."""
    if not sets:
        yield ()
        return
    *before, last = sets
    choices = [None, *(at for at, keys in enumerate(before) if last < keys)]
    for parents in homes(before):
        for choice in choices:
            yield (*parents, choice)


def tree_of(
    sets: Sequence[Attributes], parents: Sequence[int | None], queries: Sequence[Attributes]
) -> Tree:
    nodes = [
        Node(keys, parent, keys in queries, 0.0) for keys, parent in zip(sets, parents, strict=True)
    ]
    return Tree(tuple(nodes))


def test_all_trees_of_two_queries() -> None:
    """Flat, or below their union."""
    found = list(all_trees([frozenset("ab"), frozenset("bc")]))
    assert len(found) == 4  # one of the two below the union, the other not, counts as a tree
    assert len(set(found)) == 4


@pytest.mark.parametrize(("texts", "seed"), CASES)
def test_greedy_is_near_the_best_of_all_trees(texts: tuple[str, ...], seed: int) -> None:
    names = sorted({name for text in texts for name in text})
    statistics: Correlated = correlated(names, seed)
    sets = [frozenset(text) for text in texts]
    curves, accounting = Curves(statistics, "lru"), Accounting("lru")
    frontiers = [Allocator(tree, curves, accounting, EPS).frontier() for tree in all_trees(sets)]
    planner = Planner(tuple(Query(keys) for keys in sets), statistics, eps=EPS)
    for size in MEMORY:
        best = min(float(found.cost[found.best(size)]) for found in frontiers)
        assert planner.plan(size).cost.total <= best * FURTHEST
