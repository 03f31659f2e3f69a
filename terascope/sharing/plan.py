"""From a set of queries to an aggregate tree with its memory (paper 4, all of it).

In: queries, statistics of an epoch, a budget of memory. Out: a `Planned` tree, what it costs, and
what the flat one would.

The trees that are tried do not depend on the budget, and those of a larger budget are all
allocations of a smaller one and more: the cost of the plan never rises with the memory, and a plan
in which every table has all it wants stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Final, Literal, TypeAlias, assert_never

from terascope.sharing.cost import Accounting, Cost, accounting_for, evaluate
from terascope.sharing.curves import Curves
from terascope.sharing.fptas import frontier, without_empty
from terascope.sharing.greedy import grown_trees, lower_bound, prices
from terascope.sharing.model import (
    Query,
    RememberedStatistics,
    Statistics,
    TableModel,
    Tree,
    flat_tree,
)
from terascope.sharing.slc import shares, slc
from terascope.sharing.uniform import all_or_nothing

Allocation: TypeAlias = Literal["fptas", "uniform", "slc"]

BOUND_ERROR: Final = 0.003
"""How far the lower bound of a tree may be off; 0.0005 was measured."""


@dataclass(frozen=True)
class Planned:
    """A tree, and what it costs in an epoch."""

    tree: Tree
    cost: Cost
    flat_cost: Cost
    """Of all queries from the stream itself, within the same memory."""
    memory_bytes: float
    """What the tree takes of the budget."""
    seconds: float
    notes: tuple[str, ...] = ()


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
    remembered = RememberedStatistics(statistics)
    curves = Curves(remembered, table)
    accounting = accounting_for(table, exchange, bounded_leaves)
    flat = flat_tree(queries)
    notes = []
    match allocation:
        case "fptas":
            trees = grown_trees(flat, curves, accounting)
            tree, tried = cheapest(trees, curves, accounting, memory_bytes, eps)
            alone, _ = cheapest([flat], curves, accounting, memory_bytes, eps)
            notes.append(f"{len(trees)} trees, memory allocated in {tried} of them")
        case "uniform":
            trees = grown_trees(flat, curves, accounting)
            tree = all_or_nothing_of(trees, curves, accounting, memory_bytes)
            alone = all_or_nothing_of([flat], curves, accounting, memory_bytes)
            notes.append(f"{len(trees)} trees, all or nothing")
        case "slc":
            tree, part = slc(flat, curves, accounting, memory_bytes)
            alone = shares(flat, curves, accounting, memory_bytes)
            notes.append(f"peak load {part:.0%} of the memory")
        case _:
            assert_never(allocation)
    notes.append(f"statistics asked for {remembered.questions} sets of attributes")
    return Planned(
        tree,
        evaluate(tree, curves, accounting),
        evaluate(alone, curves, accounting),
        accounting.memory(tree),
        perf_counter() - began,
        tuple(notes),
    )


def cheapest(
    trees: list[Tree], curves: Curves, accounting: Accounting, memory_bytes: float, eps: float
) -> tuple[Tree, int]:
    """The best of the trees within the memory; and for how many that had to be found out."""
    ladder = prices(trees[0], curves.statistics.tuples)
    bounds = [
        lower_bound(tree, curves, accounting, memory_bytes, ladder) * (1 - BOUND_ERROR)
        for tree in trees
    ]
    best: tuple[float, float, int, Tree] | None = None
    tried = 0
    for at in sorted(range(len(trees)), key=lambda at: (bounds[at], at)):
        if best is not None and bounds[at] > best[0]:
            break
        tried += 1
        found = frontier(trees[at], curves, accounting, eps)
        point = found.best(memory_bytes)
        key = (float(found.cost[point]), float(found.memory[point]), at)
        if best is None or key < best[:3]:
            sizes = tuple(float(size) for size in found.allocations[point])
            best = (*key, without_empty(trees[at].with_buckets(sizes)))
    assert best is not None
    return best[3], tried


def all_or_nothing_of(
    trees: list[Tree], curves: Curves, accounting: Accounting, memory_bytes: float
) -> Tree:
    """The best of the trees if tables get all they want or nothing, all but one."""
    found = [all_or_nothing(tree, curves, accounting, memory_bytes) for tree in trees]
    best = min(range(len(trees)), key=lambda at: (found[at][1], at))
    return without_empty(trees[best].with_buckets(found[best][0]))
