"""From a set of queries to an aggregate tree with its memory (paper 4, all of it).

In: queries, statistics of an epoch, a budget of memory. Out: a `Planned` tree, its cost, and that
of the flat tree in the same memory.

Two searches give candidate trees (greedy.py, union_search.py), two algorithms divide the memory
among the tables of each (hull.py for all trees, fptas.py for small ones), and the cheapest tree
within the budget is taken.

Invariant: the candidates do not depend on the budget, and a larger budget has all allocations of a
smaller one. So the cost never rises with the memory, and a plan in which every table has all it can
use does not change any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Final

import numpy as np

from terascope.sharing.cost import Accounting, HashOperations, evaluate
from terascope.sharing.curves import Curves
from terascope.sharing.fptas import Allocator, Frontier, merged, without_empty
from terascope.sharing.greedy import form_of, grown_trees, prices
from terascope.sharing.hull import PricedTree, priced
from terascope.sharing.model import (
    Query,
    RememberedStatistics,
    Statistics,
    TableModel,
    Tree,
    flat_tree,
)
from terascope.sharing.union_search import union_trees

COARSE: Final = 0.2
MOST_FINE, MOST_COARSE, MOST_BOUNDED = 12, 20, 1
"""The number of tables with children up to which Algorithm 2 allocates the memory of a tree, too:
with the requested eps, with the coarse eps, and coarsely where the tables of queries are bounded.
Algorithm 2 takes seconds for larger trees. Prices allocate the memory of every tree, with a bound
on the error."""
SMALL: Final = 20
"""The nodes of a tree up to which Algorithm 2 always allocates with the requested eps."""


@dataclass(frozen=True)
class Planned:
    """A tree and its cost in an epoch."""

    tree: Tree
    cost: HashOperations
    flat_cost: HashOperations
    """The cost of the flat tree, within the same memory."""
    memory_bytes: float
    """Bytes of the budget that the tree takes."""
    flat: Tree
    """The tree without intermediate aggregates, with its memory."""
    seconds: float = 0.0
    """The time that planning took."""


class Planner:
    """Plans trees for any memory; parts that do not depend on it are computed once."""

    def __init__(
        self,
        queries: tuple[Query, ...],
        statistics: Statistics,
        table: TableModel = "lru",
        accounting: Accounting | None = None,
        eps: float = 0.05,
    ) -> None:
        self._statistics = RememberedStatistics(statistics)
        self._curves = Curves(self._statistics, table)
        self._accounting = accounting or Accounting(table)
        self._eps = eps
        self._flat = flat_tree(queries)

    def plan(self, memory_bytes: float) -> Planned:
        """The cheapest candidate within the memory, beside the flat tree."""
        began = perf_counter()
        points = [frontier.best(memory_bytes) for frontier in self._frontiers]
        costs = [
            (float(frontier.cost[point]), float(frontier.memory[point]), at)
            for at, (frontier, point) in enumerate(zip(self._frontiers, points, strict=True))
        ]
        best = min(costs)[2]
        tree, flat = self._with_sizes(best, points[best]), self._with_sizes(0, points[0])
        return Planned(
            tree,
            evaluate(tree, self._curves, self._accounting),
            evaluate(flat, self._curves, self._accounting),
            self._accounting.memory(tree),
            flat,
            perf_counter() - began,
        )

    @cached_property
    def trees(self) -> list[Tree]:
        """The candidate trees, each once; the first is the flat tree."""
        flat, accounting = self._flat, self._accounting
        ladder = prices(flat, self._statistics.tuples)
        different = {form_of(flat): flat}
        for tree in (
            *grown_trees(flat, self._curves, accounting, ladder),
            *union_trees(flat, self._statistics, accounting, ladder),
            *union_trees(flat, self._statistics, accounting, ladder[-1:]),
        ):
            different.setdefault(form_of(tree), tree)
        return list(different.values())

    @cached_property
    def _priced(self) -> list[PricedTree]:
        return priced(self.trees, self._curves, self._accounting, self._eps)

    @cached_property
    def _frontiers(self) -> list[Frontier]:
        """The allocations of each candidate, by prices and, where that is fast, by Algorithm 2."""
        found: list[Frontier] = []
        for tree, by_price in zip(self.trees, self._priced, strict=True):
            allocations = by_price.frontier
            eps = fineness(tree, self._accounting, self._eps)
            if eps is not None:
                made = Allocator(tree, self._curves, self._accounting, eps).frontier()
                allocations = merged(allocations, made)
            found.append(allocations)
        return found

    def _with_sizes(self, at: int, point: int) -> Tree:
        sizes = tuple(float(size) for size in self._frontiers[at].allocations[point])
        return without_empty(self.trees[at].with_buckets(sizes))

    def least(self, memory_bytes: float) -> float:
        """A lower bound: no allocation of any candidate costs less."""
        memory = np.array([memory_bytes])
        return float(min(tree.least(memory)[0] for tree in self._priced))


def fineness(tree: Tree, accounting: Accounting, eps: float) -> float | None:
    """The eps with which Algorithm 2 allocates the memory of a tree; None where it would take too
    long. It depends on the tree alone, so that more memory cannot cost more.
    """
    inner = sum(degree > 0 for degree in tree.degrees())
    if len(tree.nodes) <= SMALL or (inner <= MOST_FINE and not accounting.bounded_leaves):
        return eps
    most = MOST_BOUNDED if accounting.bounded_leaves else MOST_COARSE
    return max(eps, COARSE) if inner <= most else None
