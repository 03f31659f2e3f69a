"""The tables and trees that the aggregations of a running set should share, and when to change.

In: statistics of the slices of a family of aggregations, and its present sharing. Out: the cheapest
tables and trees, with their savings; and whether these savings have lasted long enough. They are
found as for a batch: first aggregations with the same keys share a table where that is cheaper,
then trees are made of the tables (terascope.physical.rules.grow_trees). Costs are in the unit in
which plans are compared: nanoseconds, or hash operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from terascope.config import Config
from terascope.physical.low_plan import LowAggregate, LowPlan, Queries
from terascope.physical.rules.grow_trees import LEAST_QUERIES, decide_trees
from terascope.physical.rules.share_tables import tables_of
from terascope.physical.settings import TREE_TABLE, tree_accounting
from terascope.physical.statistics.prospects import VIEW_NS, Taking, masked_ns, saves_lookups
from terascope.sharing.cost import evaluate
from terascope.sharing.curves import Curves
from terascope.sharing.model import Query, RememberedStatistics, Statistics, Tree, flat_tree
from terascope.sharing.timed import time_of
from terascope.streaming.replan.samples import TrafficStatistics
from terascope.streaming.replan.tree_plans import (
    READ,
    AggregateFamily,
    PlannedSharing,
    PlannedTree,
    Unit,
    output_of,
    with_tree,
)


def watches(config: Config, family: AggregateFamily) -> bool:
    """Whether a family could share anything."""
    grows = config.share_trees != "never" and len(family.members) >= LEAST_QUERIES
    return grows or (config.share_tables == "cost" and family.has_rivals)


def allowed(config: Config, shared: PlannedSharing) -> PlannedSharing:
    """The part of an earlier run's sharing that the settings allow."""
    return replace(
        shared,
        tables=shared.tables if config.share_tables == "cost" else (),
        trees=shared.trees if config.share_trees != "never" else (),
    )


class Patience:
    """Decides when a change is due."""

    def __init__(self, config: Config, changed: float) -> None:
        """`changed`: the time of the last change, or of the start of the run."""
        self._config = config
        self._changed = changed
        self._slices: dict[str, int] = {}

    def note(self, name: str, gain: float, slices: int = 1) -> None:
        """Note the gain of a change for some slices in a row."""
        enough = gain > self._config.replan_gain
        self._slices[name] = self._slices.get(name, 0) + slices if enough else 0

    def due(self, now: float) -> list[str]:
        if now - self._changed < self._config.replan_seconds:
            return []
        return [
            name for name, number in self._slices.items() if number >= self._config.replan_slices
        ]

    def change(self, names: Iterable[str], now: float) -> None:
        self._changed = now
        for name in names:
            self._slices[name] = 0


@dataclass(frozen=True)
class Choosing:
    read: str
    family: AggregateFamily
    traffic: TrafficStatistics
    config: Config

    def compared(self, present: PlannedSharing | None) -> Comparison:
        """The present sharing against the best one."""
        before, best = (present or PlannedSharing()).of(self.family), self.best()
        parts = connected(self.family.ids, [*before.parts(self.family), *best.parts(self.family)])
        costs = {part: (self.cost(before, part), self.cost(best, part)) for part in parts}
        return Comparison(before, best, costs)

    def best(self) -> PlannedSharing:
        """The cheapest sharing, with and without shared tables, with and without admission
        predicates in trees.
        """
        tables = (
            self.tables() if self.config.share_tables == "cost" and self.family.has_rivals else ()
        )
        found = [
            PlannedSharing(some, self.trees(some, mixed))
            for some in dict.fromkeys((tables, ()))
            for mixed in dict.fromkeys((self.family.is_mixed, False))
        ]
        return min(found, key=lambda one: self.cost(one, self.family.ids))

    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The members that share each table."""
        places = {query.name: place for place, query in enumerate(self.family.members)}

        def pays_to_share(members: Sequence[Queries]) -> bool:
            return self.pays_to_share([places[queries[READ].name] for queries in members])

        rows = [(output_of(query), {READ: query}) for query in self.family.members]
        several = [table for table in tables_of(rows, pays_to_share) if len(table.members) > 1]
        ids = self.family.ids
        return tuple(tuple(sorted(ids[places[n]] for n in table.members)) for table in several)

    def pays_to_share(self, places: Sequence[int]) -> bool:
        """Whether some members should share a table. It must save look-ups, as in a batch; and it
        must pay by the number of groups, too: a look-up among few groups is as cheap as the
        admission predicates of some slots, and each of many groups is copied to every member.
        """
        unit = self.family.unit(places)
        if not saves_lookups([(self.tuples(unit.conditions), self.takings(unit))]):
            return False
        alone = sum(self.alone_cost(self.family.unit([place])) for place in places)
        return self.alone_cost(unit) < alone

    def trees(self, tables: Sequence[Sequence[str]], mixed: bool) -> tuple[PlannedTree, ...]:
        """The trees that save anything. `mixed`: whether aggregations of different tuples may be
        in one tree.
        """
        units = {unit.query.name: unit for unit in self.family.units(tables)}
        queries = [unit.query for unit in units.values()]
        statistics = UnitStatistics(units, self, mixed)
        decided = decide_trees(self.read, queries, statistics.shares, statistics.of, self.config)
        made = (self.tree([units[q.name] for q in some], one.tree) for some, one, _ in decided)
        return tuple(one for one in made if one is not None)

    def tree(self, units: Sequence[Unit], tree: Tree) -> PlannedTree | None:
        """A tree of some tables; None: it saves nothing, or a node would have too many slots."""
        statistics, _ = self.traffic(conditions_of(units))
        alone = sum(self.alone_cost(unit) for unit in units)
        cost = self.tree_cost(tree, units) + sum(map(self.slots_cost, units))
        if cost >= alone:
            return None
        whole = tuple(node.buckets >= statistics.groups(node.attributes) for node in tree.nodes)
        made = PlannedTree(tuple(unit.id for unit in units), tree, whole)
        queries = tuple(unit.query for unit in units)
        low = LowPlan((), (), queries)
        return None if with_tree(low, queries, made, self.config.tree_leaves) is None else made

    # ---- costs

    def tuples(self, conditions: frozenset[str]) -> float:
        statistics, pieces = self.traffic(conditions)
        return statistics.tuples * pieces

    def cost(self, shared: PlannedSharing, members: Container[str]) -> float:
        """The cost of members that share nothing with other members."""
        every = self.family.units(shared.tables)
        units = {unit.id: unit for unit in every if unit.id in members}
        shared, found = shared.among(members), 0.0
        for one in shared.trees:
            some = [units.pop(name) for name in one.units]
            found += self.tree_cost(one.tree, some) + sum(map(self.slots_cost, some))
        return found + sum(map(self.alone_cost, units.values()))

    def alone_cost(self, unit: Unit) -> float:
        """The cost of a table of tuples without children; it grows as needed."""
        statistics, _ = self.traffic(conditions_of([unit]))
        alone = flat_tree((unit.asked,))
        alone = alone.with_buckets(tuple(statistics.groups(n.attributes) for n in alone.nodes))
        return self.tree_cost(alone, [unit]) + self.slots_cost(unit)

    def tree_cost(self, tree: Tree, units: Sequence[Unit]) -> float:
        """The cost of the look-ups of a tree. A table is assumed to have its planned size, although
        a table with all the memory it needs may grow beyond that.
        """
        statistics, pieces = self.traffic(conditions_of(units))
        queries = [unit.asked for unit in units]
        if self.config.share_trees == "operations":
            return pieces * operations_of(tree, queries, statistics, self.config)
        return pieces * time_of(tree, queries, statistics)

    def slots_cost(self, unit: Unit) -> float:
        """The cost of the slots beyond look-ups, where slots have admission predicates."""
        if len(unit.conditions) == 1 or self.config.share_trees == "operations":
            return 0.0
        takings = self.takings(unit)
        own = sum(taking.slots_ns for taking in takings)
        views = VIEW_NS * sum(self.groups(unit.asked.attributes, one) for one in unit.asking)
        return masked_ns(self.tuples(unit.conditions), takings) + views - own

    def groups(self, attributes: frozenset[str], condition: str) -> float:
        """The groups of the tuples that meet a condition, in all pieces."""
        statistics, pieces = self.traffic(frozenset({condition}))
        return statistics.groups(attributes) * pieces

    def takings(self, unit: Unit) -> list[Taking]:
        pairs = zip(unit.members, unit.asking, strict=True)
        return [Taking(self.tuples(frozenset({one})), len(q.slots)) for q, one in pairs]


@dataclass(frozen=True)
class UnitStatistics:
    """Statistics of the tables of a family, from the samples that tasks report."""

    units: Mapping[str, Unit]
    """The tables, by the name of the aggregation that has the table."""
    choosing: Choosing
    mixed: bool

    def shares(self, queries: Sequence[LowAggregate]) -> Mapping[str, float]:
        if not self.mixed:
            return {}
        units = {query.name: self.units[query.name] for query in queries}
        total = max(1.0, self.choosing.tuples(conditions_of(units.values())))
        return {n: self.choosing.tuples(unit.conditions) / total for n, unit in units.items()}

    def of(self, queries: Sequence[LowAggregate]) -> Statistics | None:
        units = [self.units[query.name] for query in queries]
        return self.choosing.traffic(conditions_of(units))[0]


def gain_of(costs: Iterable[tuple[float, float]]) -> float:
    """The share of a cost that is saved; `costs`: of some members, now and with other sharing."""
    pairs = list(costs)
    return 1 - sum(best for _, best in pairs) / max(1.0, sum(now for now, _ in pairs))


@dataclass(frozen=True)
class Comparison:
    """The sharing in force against the best one, for some slices."""

    present: PlannedSharing
    best: PlannedSharing
    parts: Mapping[frozenset[str], tuple[float, float]]
    """The cost now, and with the best sharing, of sets of members that share nothing with members
    of other sets, now or after a change."""

    @property
    def gain(self) -> float:
        return gain_of(self.parts.values())

    def changed(self, parts: Collection[frozenset[str]], now: float) -> PlannedSharing:
        """The sharing in which some parts are changed to the best one."""
        change = frozenset[str]().union(*parts)
        stay = frozenset[str]().union(*self.parts) - change
        old, new = self.present.among(stay), self.best.among(change)
        gain = gain_of(self.parts[part] for part in parts)
        return PlannedSharing((*old.tables, *new.tables), (*old.trees, *new.trees), gain, now)


def connected(members: Iterable[str], parts: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Members that are connected, directly or through others."""
    found = [frozenset({one}) for one in members]
    for part in parts:
        touched = [some for some in found if some & part]
        found = [some for some in found if not some & part]
        found.append(frozenset[str]().union(*touched))
    return found


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
