"""The cost of the aggregations of a family, with shared tables and trees or without.

In: statistics of the tuples of some slices. Out: the cost of every possible sharing of a family, in
the unit in which plans are compared: nanoseconds, or hash operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from terascope.config import Config
from terascope.physical.settings import TREE_TABLE, tree_accounting
from terascope.physical.statistics.prospects import VIEW_NS, Taking, masked_ns
from terascope.sharing.cost import evaluate
from terascope.sharing.curves import Curves
from terascope.sharing.model import Query, RememberedStatistics, Statistics, Tree, flat_tree
from terascope.sharing.timed import time_of
from terascope.streaming.replan.families import AggregateFamily, Unit
from terascope.streaming.replan.tree_plans import PlannedSharing


class TrafficStatistics(Protocol):
    """Statistics of the tuples of some slices."""

    def of(self, conditions: frozenset[str]) -> tuple[Statistics, float]:
        """Statistics of a piece for the tuples that meet one of some conditions, and the number of
        pieces.
        """


@dataclass(frozen=True)
class SharingCosts:
    """The costs of one family."""

    family: AggregateFamily
    traffic: TrafficStatistics
    config: Config

    def tuples(self, conditions: frozenset[str]) -> float:
        statistics, pieces = self.traffic.of(conditions)
        return statistics.tuples * pieces

    def cost(self, shared: PlannedSharing, members: Container[str]) -> float:
        """The cost of members that share nothing with other members."""
        every = self.family.units(shared.tables)
        units = {unit.id: unit for unit in every if unit.id in members}
        shared, found = shared.among(members), 0.0
        for one in shared.trees:
            some = [units.pop(name) for name in one.units]
            found += self.tree_cost(one.tree, some) + sum(map(self.riding_cost, some))
        return found + sum(map(self.alone_cost, units.values()))

    def alone_cost(self, unit: Unit) -> float:
        """The cost of a table of tuples without children; it grows as needed."""
        statistics, _ = self.traffic.of(conditions_of([unit]))
        alone = flat_tree((unit.asked,))
        alone = alone.with_buckets(tuple(statistics.groups(n.attributes) for n in alone.nodes))
        return self.tree_cost(alone, [unit]) + self.riding_cost(unit)

    def tree_cost(self, tree: Tree, units: Sequence[Unit]) -> float:
        """The cost of the look-ups of a tree. A table is assumed to have its planned size, although
        a table with all the memory it needs may grow beyond that.
        """
        statistics, pieces = self.traffic.of(conditions_of(units))
        queries = [unit.asked for unit in units]
        if self.config.share_trees == "operations":
            return pieces * operations_of(tree, queries, statistics, self.config)
        return pieces * time_of(tree, queries, statistics)

    def riding_cost(self, unit: Unit) -> float:
        """The cost of the slots beyond look-ups, where slots have admission predicates."""
        if len(unit.conditions) == 1 or self.config.share_trees == "operations":
            return 0.0
        takings = self.takings(unit)
        own = sum(taking.slots_ns for taking in takings)
        views = VIEW_NS * sum(self.groups(unit.asked.attributes, one) for one in unit.asking)
        return masked_ns(self.tuples(unit.conditions), takings) + views - own

    def groups(self, attributes: frozenset[str], condition: str) -> float:
        """The groups of the tuples that meet a condition, in all pieces."""
        statistics, pieces = self.traffic.of(frozenset({condition}))
        return statistics.groups(attributes) * pieces

    def takings(self, unit: Unit) -> list[Taking]:
        pairs = zip(unit.members, unit.asking, strict=True)
        return [Taking(self.tuples(frozenset({one})), len(q.slots)) for q, one in pairs]


def operations_of(
    tree: Tree, queries: Sequence[Query], statistics: Statistics, config: Config
) -> float:
    """The hash operations of a tree; queries with the same attributes have a table each."""
    known = RememberedStatistics(statistics)
    cost = evaluate(tree, Curves(known, TREE_TABLE), tree_accounting(config))
    tables = Counter(query.attributes for query in queries)
    entering = (known.tuples if n.parent is None else cost.out[n.parent] for n in tree.nodes)
    pairs = zip(tree.nodes, entering, strict=True)
    return cost.total + sum(max(0, tables[n.attributes] - 1) * rows for n, rows in pairs)


def conditions_of(units: Iterable[Unit]) -> frozenset[str]:
    return frozenset[str]().union(*(unit.conditions for unit in units))
