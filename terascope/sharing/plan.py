"""From a set of queries to an aggregate tree with its memory (paper 4, all of it).

In: queries, statistics of an epoch, a budget of memory. Out: a `Planned` tree, what it costs, and
what the flat one would.

The trees that are tried do not depend on the budget, and those of a larger budget are all
allocations of a smaller one and more: the cost of the plan never rises with the memory, and a plan
in which every table has all it wants stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import isinf
from time import perf_counter
from typing import Final, Literal, TypeAlias, assert_never

import numpy as np

from terascope.sharing.cost import Accounting, HashOperations, accounting_for, evaluate
from terascope.sharing.curves import Curves
from terascope.sharing.fptas import Frontier, frontier, merged, without_empty
from terascope.sharing.gathering import gathered_trees
from terascope.sharing.greedy import form_of, grown_trees, prices
from terascope.sharing.hull import Priced, priced
from terascope.sharing.model import (
    Query,
    RememberedStatistics,
    Statistics,
    TableModel,
    Tree,
    flat_tree,
)
from terascope.sharing.slc import Tuned, shares
from terascope.sharing.uniform import all_or_nothing

Allocation: TypeAlias = Literal["fptas", "uniform", "slc"]

COARSE: Final = 0.2
MOST_FINE, MOST_COARSE, MOST_BOUNDED = 12, 20, 1
"""Tables with children up to which Algorithm 2 allocates a tree's memory, too: with the eps asked
for, with the coarse one, and, coarsely, where the tables of queries are bounded. It takes seconds
for more. Prices allocate the memory of every tree, and prove how near that is."""
SMALL: Final = 20
"""Nodes of a tree that Algorithm 2 always allocates with the eps asked for."""


@dataclass(frozen=True)
class Planned:
    """A tree, and what it costs in an epoch."""

    tree: Tree
    cost: HashOperations
    flat_cost: HashOperations
    """Of all queries from the stream itself, within the same memory."""
    memory_bytes: float
    """What the tree takes of the budget."""
    seconds: float
    notes: tuple[str, ...] = ()
    flat: Tree | None = None
    """All queries from the stream itself, with the memory of each."""


def plan_tree(
    queries: tuple[Query, ...],
    statistics: Statistics,
    memory_bytes: float,
    *,
    table: TableModel = "lru",
    eps: float = 0.05,
    exchange: float = 0.0,
    bounded_leaves: bool = False,
    allocation: Allocation = "fptas",
) -> Planned:
    """The tree that answers all queries with the fewest hash operations."""
    began = perf_counter()
    accounting = accounting_for(table, exchange, bounded_leaves)
    planner = Planner(queries, statistics, table, accounting, eps)
    return replace(planner.plan(memory_bytes, allocation), seconds=perf_counter() - began)


class Planner:
    """Plans for any memory: what does not depend on it is found once."""

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
        self._accounting = accounting or accounting_for(table)
        self._eps = eps
        self._flat = flat_tree(queries)
        self._slc = Tuned(self._flat, self._curves, self._accounting)

    def plan(self, memory_bytes: float, allocation: Allocation = "fptas") -> Planned:
        began = perf_counter()
        curves, accounting, flat = self._curves, self._accounting, self._flat
        notes = []
        match allocation:
            case "fptas":
                tree, alone = self._cheapest(memory_bytes), self._alone(memory_bytes)
                notes.append(f"{len(self._grown)} trees")
                least, found = self.least(memory_bytes), self.cost_of(tree)
                if found > least > 0:
                    notes.append(f"no allocation of them saves more than {1 - least / found:.1%}")
            case "uniform":
                tree = all_or_nothing_of(self._grown, curves, accounting, memory_bytes)
                alone = all_or_nothing_of([flat], curves, accounting, memory_bytes)
                notes.append(f"{len(self._grown)} trees, all or nothing")
            case "slc":
                tree, peak_load = self._slc.best(memory_bytes)
                alone = shares(flat, curves, accounting, memory_bytes)
                limit = "none" if isinf(peak_load) else f"{peak_load:,.0f} hash operations"
                notes.append(f"peak load: {limit}")
            case _:
                assert_never(allocation)
        notes.append(f"statistics asked for {self._statistics.questions} sets of attributes")
        return Planned(
            tree,
            evaluate(tree, curves, accounting),
            evaluate(alone, curves, accounting),
            accounting.memory(tree),
            perf_counter() - began,
            tuple(notes),
            alone,
        )

    @cached_property
    def _grown(self) -> list[Tree]:
        """The flat one is the first; those that are alike once."""
        flat, accounting = self._flat, self._accounting
        ladder = prices(flat, self._statistics.tuples)
        different = {form_of(flat): flat}
        for tree in (
            *grown_trees(flat, self._curves, accounting, ladder),
            *gathered_trees(flat, self._statistics, accounting, ladder),
            *gathered_trees(flat, self._statistics, accounting, ladder[-1:]),
        ):
            different.setdefault(form_of(tree), tree)
        return list(different.values())

    @cached_property
    def _priced(self) -> Priced:
        return priced(self._grown, self._curves, self._accounting, self._eps)

    @cached_property
    def _frontiers(self) -> list[Frontier]:
        """Of prices, and of Algorithm 2 where it is quick: which does not depend on the memory."""
        found: list[Frontier] = []
        for tree, by_price in zip(self._grown, self._priced.frontiers, strict=True):
            eps = fineness(tree, self._accounting, self._eps)
            if eps is not None:
                made = frontier(tree, self._curves, self._accounting, eps)
                by_price = merged(by_price, made)
            found.append(by_price)
        return found

    def _cheapest(self, memory_bytes: float) -> Tree:
        """The best of the trees within the memory."""
        found = self._frontiers
        points = [frontier.best(memory_bytes) for frontier in found]
        keys = [
            (float(frontier.cost[point]), float(frontier.memory[point]), at)
            for at, (frontier, point) in enumerate(zip(found, points, strict=True))
        ]
        best = min(keys)[2]
        return self._with_sizes(best, points[best])

    def _alone(self, memory_bytes: float) -> Tree:
        return self._with_sizes(0, self._frontiers[0].best(memory_bytes))

    def _with_sizes(self, at: int, point: int) -> Tree:
        sizes = tuple(float(size) for size in self._frontiers[at].allocations[point])
        return without_empty(self._grown[at].with_buckets(sizes))

    def cost_of(self, tree: Tree) -> float:
        return evaluate(tree, self._curves, self._accounting).total

    def untuned(self, memory_bytes: float) -> float:
        """What SLC costs if its peak load is not tuned."""
        return self._slc.untuned(memory_bytes)

    def least(self, memory_bytes: float) -> float:
        """No allocation of any of the trees costs less."""
        memory = np.array([memory_bytes])
        return float(min(bounds.at(memory)[0] for bounds in self._priced.bounds))


def fineness(tree: Tree, accounting: Accounting, eps: float) -> float | None:
    """With which eps Algorithm 2 allocates a tree's memory, if at all: it depends on the tree
    alone, so that more memory cannot cost more.
    """
    inner = sum(degree > 0 for degree in tree.degrees())
    if len(tree.nodes) <= SMALL or (inner <= MOST_FINE and not accounting.bounded_leaves):
        return eps
    most = MOST_BOUNDED if accounting.bounded_leaves else MOST_COARSE
    return max(eps, COARSE) if inner <= most else None


def all_or_nothing_of(
    trees: list[Tree], curves: Curves, accounting: Accounting, memory_bytes: float
) -> Tree:
    """The best of the trees if tables get all they want or nothing, all but one."""
    found = [all_or_nothing(tree, curves, accounting, memory_bytes) for tree in trees]
    best = min(range(len(trees)), key=lambda at: (found[at][1], at))
    return without_empty(trees[best].with_buckets(found[best][0]))
