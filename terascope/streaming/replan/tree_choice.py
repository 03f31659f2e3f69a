"""The tables and trees that the aggregations of a running set should share, and when to change.

In: statistics of the slices of a family of aggregations, and its present sharing. Out: the cheapest
tables and trees, with their savings; and whether these savings have lasted long enough. They are
found as for a batch: first aggregations with the same keys share a table where that is cheaper,
then trees are made of the tables (terascope.physical.rules.grow_trees).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from terascope.config import Config
from terascope.physical.low_plan import LowAggregate, LowPlan, Queries
from terascope.physical.rules.grow_trees import LEAST_QUERIES, decide_trees
from terascope.physical.rules.share_tables import tables_of
from terascope.physical.statistics.prospects import saves_lookups
from terascope.sharing.model import Statistics, Tree
from terascope.streaming.replan.families import READ, AggregateFamily, Unit, output_of
from terascope.streaming.replan.sharing_costs import SharingCosts, TrafficStatistics, conditions_of
from terascope.streaming.replan.tree_plans import PlannedSharing, PlannedTree, with_tree


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
        """The names of the changes that are due."""
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
    """Chooses the tables and trees that a family shares."""

    read: str
    family: AggregateFamily
    traffic: TrafficStatistics
    config: Config

    @cached_property
    def costs(self) -> SharingCosts:
        return SharingCosts(self.family, self.traffic, self.config)

    def best(self) -> PlannedSharing:
        """The cheapest sharing, with and without shared tables, with and without admission
        predicates in trees.
        """
        tables = (
            self.tables() if self.config.share_tables == "cost" and self.family.has_rivals else ()
        )
        found = [
            PlannedSharing(some, self.trees(some, riding))
            for some in dict.fromkeys((tables, ()))
            for riding in dict.fromkeys((self.family.is_mixed, False))
        ]
        return min(found, key=lambda one: self.costs.cost(one, self.family.ids))

    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The members that share each table."""
        places = {query.name: place for place, query in enumerate(self.family.members)}

        def rides(members: Sequence[Queries]) -> bool:
            return self.rides([places[queries[READ].name] for queries in members])

        rows = [(output_of(query), {READ: query}) for query in self.family.members]
        several = [table for table in tables_of(rows, rides) if len(table.members) > 1]
        ids = self.family.ids
        return tuple(tuple(sorted(ids[places[n]] for n in table.members)) for table in several)

    def rides(self, places: Sequence[int]) -> bool:
        """Whether some members should share a table. It must save look-ups, as in a batch; and it
        must pay by the number of groups, too: a look-up among few groups is as cheap as the
        admission predicates of some slots, and each of many groups is copied to every member.
        """
        unit = self.family.unit(places)
        if not saves_lookups([(self.costs.tuples(unit.conditions), self.costs.takings(unit))]):
            return False
        alone = sum(self.costs.alone_cost(self.family.unit([place])) for place in places)
        return self.costs.alone_cost(unit) < alone

    def trees(self, tables: Sequence[Sequence[str]], riding: bool) -> tuple[PlannedTree, ...]:
        """The trees that save anything. `riding`: whether aggregations of different tuples may be
        in one tree.
        """
        units = {unit.query.name: unit for unit in self.family.units(tables)}
        queries = [unit.query for unit in units.values()]
        statistics = UnitStatistics(units, self.costs, riding)
        decided = decide_trees(self.read, queries, statistics, self.config)
        made = (self.tree([units[q.name] for q in some], one.tree) for some, one, _ in decided)
        return tuple(one for one in made if one is not None)

    def tree(self, units: Sequence[Unit], tree: Tree) -> PlannedTree | None:
        """A tree of some tables; None: it saves nothing, or a node would have too many slots."""
        statistics, _ = self.traffic.of(conditions_of(units))
        alone = sum(self.costs.alone_cost(unit) for unit in units)
        cost = self.costs.tree_cost(tree, units) + sum(map(self.costs.riding_cost, units))
        if cost >= alone:
            return None
        whole = tuple(node.buckets >= statistics.groups(node.attributes) for node in tree.nodes)
        made = PlannedTree(tuple(unit.id for unit in units), tree, whole)
        queries = tuple(unit.query for unit in units)
        low = LowPlan((), (), queries)
        return None if with_tree(low, queries, made, self.config.tree_leaves) is None else made


@dataclass(frozen=True)
class UnitStatistics:
    """Statistics of the tables of a family, from the samples that tasks report."""

    units: Mapping[str, Unit]
    """The tables, by the name of the aggregation that has the table."""
    costs: SharingCosts
    riding: bool

    def shares(self, queries: Sequence[LowAggregate]) -> Mapping[str, float]:
        if not self.riding:
            return {}
        units = {query.name: self.units[query.name] for query in queries}
        total = max(1.0, self.costs.tuples(conditions_of(units.values())))
        return {n: self.costs.tuples(unit.conditions) / total for n, unit in units.items()}

    def of(self, queries: Sequence[LowAggregate]) -> Statistics | None:
        units = [self.units[query.name] for query in queries]
        return self.costs.traffic.of(conditions_of(units))[0]


@dataclass(frozen=True)
class CostChange:
    """The cost of some members, now and with the best sharing."""

    now: float
    best: float

    @property
    def gain(self) -> float:
        return 1 - self.best / max(1.0, self.now)

    @staticmethod
    def of_all(costs: Iterable[CostChange]) -> CostChange:
        some = list(costs)
        return CostChange(sum(one.now for one in some), sum(one.best for one in some))


@dataclass(frozen=True)
class Comparison:
    """The sharing in force against the best one, for some slices."""

    present: PlannedSharing
    best: PlannedSharing
    parts: Mapping[frozenset[str], CostChange]
    """Sets of members that share nothing with members of other sets, now or after a change."""

    @property
    def gain(self) -> float:
        """The gain of all parts together."""
        return CostChange.of_all(self.parts.values()).gain

    def changed(self, parts: Collection[frozenset[str]], now: float) -> PlannedSharing:
        """The sharing in which some parts are changed to the best one."""
        change = frozenset[str]().union(*parts)
        stay = frozenset[str]().union(*self.parts) - change
        old, new = self.present.among(stay), self.best.among(change)
        gain = CostChange.of_all(self.parts[part] for part in parts).gain
        return PlannedSharing((*old.tables, *new.tables), (*old.trees, *new.trees), gain, now)


def compared(
    read: str,
    family: AggregateFamily,
    present: PlannedSharing | None,
    traffic: TrafficStatistics,
    config: Config,
) -> Comparison:
    choosing = Choosing(read, family, traffic, config)
    before, best = (present or PlannedSharing()).of(family), choosing.best()
    parts = connected(family.ids, [*before.parts(family), *best.parts(family)])
    costs = {
        part: CostChange(choosing.costs.cost(before, part), choosing.costs.cost(best, part))
        for part in parts
    }
    return Comparison(before, best, costs)


def connected(members: Iterable[str], parts: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Members that are connected, directly or through others."""
    found = [frozenset({one}) for one in members]
    for part in parts:
        touched = [some for some in found if some & part]
        found = [some for some in found if not some & part]
        found.append(frozenset[str]().union(*touched))
    return found
