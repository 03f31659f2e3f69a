"""What the aggregations of a running set should share, and when it is time to change to that.

In: statistics of the slices of a family of aggregations, and what it shares now. Out: the tables
and trees that are best, and what they would save; and whether that has been so for long enough.
They are found as for a batch: first those with the same keys are put into one table where
conditions had better ride along, then trees are made of the tables. Costs are those that plans are
made with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from terascope.low.plan import LowPlan
from terascope.physical.riding import VIEW_NS, Taking, masked_ns, together_ns
from terascope.physical.share_tables import Queries, tables_of
from terascope.physical.trees import LEAST_QUERIES, TreeSettings, decided, families
from terascope.sharing.cost import accounting_for, evaluate
from terascope.sharing.curves import Curves
from terascope.sharing.model import Query, RememberedStatistics, Statistics, Tree, flat_tree
from terascope.sharing.timed import time_of
from terascope.stream.tree_plans import (
    READ,
    Family,
    PlannedSharing,
    PlannedTree,
    Unit,
    output_of,
    with_tree,
)


@dataclass(frozen=True)
class ReplanSettings:
    """When tables and trees are changed, and what for."""

    trees: TreeSettings = field(default_factory=TreeSettings)
    tables: bool = True
    """Whether aggregations with the same keys and different conditions may have one table."""
    gain: float = 0.15
    """More than this part of what the present trees cost must be saved."""
    slices: int = 3
    """For so many slices, one after the other."""
    seconds: float = 60.0
    """From one change to the next, at least."""
    sample_tuples: int = 4096
    """Of a micro-batch, by all of its tasks."""
    sample_seconds: float = 2.0
    """From one sample to the next, at least."""
    least_tuples: int = 256
    """A slice of which fewer are known tells nothing."""
    share: float = 0.05
    """Of one core, for planning, at most."""

    def watches(self, family: Family) -> bool:
        """Whether a family could share anything."""
        grows = self.trees.mode != "never" and len(family.members) >= LEAST_QUERIES
        return grows or (self.tables and family.has_rivals)

    def allowed(self, shared: PlannedSharing) -> PlannedSharing:
        """Of what a run shared before."""
        return replace(
            shared,
            tables=shared.tables if self.tables else (),
            trees=shared.trees if self.trees.mode != "never" else (),
        )


class Patience:
    """Whether it is time for a change."""

    def __init__(self, settings: ReplanSettings, changed: float) -> None:
        """`changed`: when anything was changed last, or the run began."""
        self._settings = settings
        self._changed = changed
        self._slices: dict[str, int] = {}

    def note(self, name: str, gain: float, slices: int = 1) -> None:
        """What something would have saved for slices that follow each other."""
        enough = gain > self._settings.gain
        self._slices[name] = self._slices.get(name, 0) + slices if enough else 0

    def due(self, now: float) -> list[str]:
        """What had better be changed now."""
        if now - self._changed < self._settings.seconds:
            return []
        return [name for name, number in self._slices.items() if number >= self._settings.slices]

    def change(self, names: Iterable[str], now: float) -> None:
        self._changed = now
        for name in names:
            self._slices[name] = 0


class Traffic(Protocol):
    """What some slices are like."""

    def of(self, conditions: frozenset[str]) -> tuple[Statistics, float]:
        """Of the tuples that meet one of some conditions: statistics of a piece, and how many
        pieces there are.
        """


@dataclass(frozen=True)
class Choosing:
    """What a family had better share, and what anything that it could share costs."""

    read: str
    family: Family
    traffic: Traffic
    settings: ReplanSettings

    def tuples(self, conditions: frozenset[str]) -> float:
        statistics, pieces = self.traffic.of(conditions)
        return statistics.tuples * pieces

    # ---- costs

    def cost(self, shared: PlannedSharing, members: Container[str]) -> float:
        """Of members who share nothing with others, in the unit in which plans are compared."""
        every = self.family.units(shared.tables)
        units = {unit.id: unit for unit in every if unit.id in members}
        shared, found = shared.among(members), 0.0
        for one in shared.trees:
            some = [units.pop(name) for name in one.units]
            found += self.tree_cost(one.tree, some) + sum(map(self.riding_cost, some))
        return found + sum(map(self.alone_cost, units.values()))

    def alone_cost(self, unit: Unit) -> float:
        """Of a table that is made of tuples, and of which no other is made."""
        return self.tree_cost(flat_tree((unit.asked,)), [unit]) + self.riding_cost(unit)

    def tree_cost(self, tree: Tree, units: Sequence[Unit]) -> float:
        """Of look-ups. A table that was given all the room it wanted is taken to be as large as it
        was planned: one that grew beyond that uses memory that it was not given.
        """
        statistics, pieces = self.traffic.of(conditions_of(units))
        settings = self.settings.trees
        if settings.mode == "operations":
            return pieces * operations_of(
                tree, [unit.asked for unit in units], statistics, settings
            )
        return pieces * time_of(tree, [unit.asked for unit in units], statistics)

    def riding_cost(self, unit: Unit) -> float:
        """What it takes more, beside look-ups, if conditions ride along."""
        if len(unit.conditions) == 1 or self.settings.trees.mode == "operations":
            return 0.0
        takings = self.takings(unit)
        own = sum(taking.slots_ns for taking in takings)
        views = VIEW_NS * sum(self.groups(unit.asked.attributes, one) for one in unit.asking)
        return masked_ns(self.tuples(unit.conditions), takings) + views - own

    def groups(self, attributes: frozenset[str], condition: str) -> float:
        """Of one who takes the tuples that meet a condition, in all pieces."""
        statistics, pieces = self.traffic.of(frozenset({condition}))
        return statistics.groups(attributes) * pieces

    def takings(self, unit: Unit) -> list[Taking]:
        pairs = zip(unit.members, unit.asking, strict=True)
        return [Taking(self.tuples(frozenset({one})), len(q.slots)) for q, one in pairs]

    # ---- choices

    def best(self) -> PlannedSharing:
        """The cheapest of what is found if tables are shared or not, and conditions ride along in
        trees or not.
        """
        tables = self.tables() if self.settings.tables and self.family.has_rivals else ()
        found = [
            PlannedSharing(some, self.trees(some, riding))
            for some in dict.fromkeys((tables, ()))
            for riding in dict.fromkeys((self.family.is_mixed, False))
        ]
        return min(found, key=lambda one: self.cost(one, self.family.ids))

    def tables(self) -> tuple[tuple[str, ...], ...]:
        """Which members have a table together."""
        places = {query.name: place for place, query in enumerate(self.family.members)}

        def rides(members: Sequence[Queries]) -> bool:
            return self.rides([places[queries[READ].name] for queries in members])

        rows = [(output_of(query), {READ: query}) for query in self.family.members]
        several = [table for table in tables_of(rows, rides) if len(table.members) > 1]
        ids = self.family.ids
        return tuple(tuple(sorted(ids[places[n]] for n in table.members)) for table in several)

    def rides(self, places: Sequence[int]) -> bool:
        """As in batches; and it must pay by the number of groups, too, for which these do not ask:
        a look-up among few takes no longer than the conditions of some slots, and each of many is
        given to everybody.
        """
        unit = self.family.unit(places)
        takings = self.takings(unit)
        apart = sum(taking.apart_ns for taking in takings)
        if not 0.0 < together_ns(self.tuples(unit.conditions), takings) < apart:
            return False
        alone = sum(self.alone_cost(self.family.unit([place])) for place in places)
        return self.alone_cost(unit) < alone

    def trees(self, tables: Sequence[Sequence[str]], riding: bool) -> tuple[PlannedTree, ...]:
        """`riding`: whether those who take different tuples may be in one."""
        if self.settings.trees.mode == "never":
            return ()
        units = {unit.query.name: unit for unit in self.family.units(tables)}
        total = max(1.0, self.tuples(conditions_of(units.values())))
        shares = {name: self.tuples(unit.conditions) / total for name, unit in units.items()}
        shares = shares if riding else {}
        found = []
        for members in families([unit.query for unit in units.values()], shares).values():
            if len(members) >= LEAST_QUERIES:
                tree = self.tree([units[query.name] for query in members])
                found += [] if tree is None else [tree]
        return tuple(found)

    def tree(self, units: Sequence[Unit]) -> PlannedTree | None:
        """The best one, if it saves anything."""
        statistics, _ = self.traffic.of(conditions_of(units))
        queries = [unit.query for unit in units]
        tree = decided(self.read, queries, statistics, self.settings.trees).tree
        alone = sum(self.alone_cost(unit) for unit in units)
        cost = self.tree_cost(tree, units) + sum(map(self.riding_cost, units))
        if cost >= alone:
            return None
        whole = tuple(node.buckets >= statistics.groups(node.attributes) for node in tree.nodes)
        made = PlannedTree(tuple(unit.id for unit in units), tree, whole)
        low = LowPlan((), (), tuple(queries))
        return None if with_tree(low, queries, made, self.settings.trees) is None else made


def operations_of(
    tree: Tree, queries: Sequence[Query], statistics: Statistics, settings: TreeSettings
) -> float:
    """Hash operations; queries with the same attributes have a table each."""
    known = RememberedStatistics(statistics)
    cost = evaluate(tree, Curves(known, settings.table), accounting_for(settings.table))
    tables = Counter(query.attributes for query in queries)
    entering = (known.tuples if n.parent is None else cost.out[n.parent] for n in tree.nodes)
    pairs = zip(tree.nodes, entering, strict=True)
    return cost.total + sum(max(0, tables[n.attributes] - 1) * rows for n, rows in pairs)


def conditions_of(units: Iterable[Unit]) -> frozenset[str]:
    return frozenset[str]().union(*(unit.conditions for unit in units))


@dataclass(frozen=True)
class Cost:
    """Of some members, now and with the best that they could share."""

    now: float
    best: float

    @property
    def gain(self) -> float:
        return 1 - self.best / max(1.0, self.now)

    @staticmethod
    def of_all(costs: Iterable[Cost]) -> Cost:
        some = list(costs)
        return Cost(sum(one.now for one in some), sum(one.best for one in some))


@dataclass(frozen=True)
class Comparison:
    """What is in force against the best there is, for some slices."""

    present: PlannedSharing
    best: PlannedSharing
    parts: Mapping[frozenset[str], Cost]
    """Members that share nothing with those of other parts, neither now nor then."""

    @property
    def gain(self) -> float:
        """Of all of them together."""
        return Cost.of_all(self.parts.values()).gain

    def changed(self, parts: Collection[frozenset[str]], now: float) -> PlannedSharing:
        """Some parts as they are best, and the others as they are."""
        change = frozenset[str]().union(*parts)
        stay = frozenset[str]().union(*self.parts) - change
        old, new = self.present.among(stay), self.best.among(change)
        gain = Cost.of_all(self.parts[part] for part in parts).gain
        return PlannedSharing((*old.tables, *new.tables), (*old.trees, *new.trees), gain, now)


def compared(
    read: str,
    family: Family,
    present: PlannedSharing | None,
    traffic: Traffic,
    settings: ReplanSettings,
) -> Comparison:
    choosing = Choosing(read, family, traffic, settings)
    before, best = (present or PlannedSharing()).of(family), choosing.best()
    parts = connected(family.ids, [*before.parts(family), *best.parts(family)])
    costs = {part: Cost(choosing.cost(before, part), choosing.cost(best, part)) for part in parts}
    return Comparison(before, best, costs)


def connected(members: Iterable[str], parts: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Members that are together in a part, or by way of others."""
    found = [frozenset({one}) for one in members]
    for part in parts:
        touched = [some for some in found if some & part]
        found = [some for some in found if not some & part]
        found.append(frozenset[str]().union(*touched))
    return found
