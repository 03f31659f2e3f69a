"""The sharing in force in a running set, and low-level plans with it.

In: low-level plans in which every query has a table of its own, and the chosen tables and trees,
and the traffic by which strategies of states are chosen (terascope.streaming.replan.strategies).
Out: low-level plans with them; `trees.json` in the folder of the run, put in place by rename, which
is read when batches are planned and when a run resumes.

Aggregations that could share something are a family, identified by its source and epochs; an
aggregation is identified by its conditions and keys. So a changed set finds the sharing of
unchanged aggregations.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from pydantic import ConfigDict, TypeAdapter

from terascope.kernels.merge.groups import Block
from terascope.kernels.tables.slots import Shape
from terascope.physical.low_plan import LowAggregate, LowOutput, LowPlan, Where
from terascope.physical.rules.choose_strategies import has_choice
from terascope.physical.rules.grow_trees import LEAST_QUERIES, Grafting, attributes_of, growing
from terascope.physical.rules.share_tables import Table
from terascope.physical.split.drafts import Names
from terascope.plan.show import show_expr
from terascope.sharing.model import Query, Tree
from terascope.sketches.base import Levels, Traffic
from terascope.streaming.state.runs import write_whole


@dataclass(frozen=True)
class AggregateFamily:
    """Aggregations of a read with the same epochs, which could share tables and trees."""

    key: str
    members: tuple[LowAggregate, ...]
    conditions: tuple[str, ...]
    """A digest of the condition of each member, equal for equal tuples."""

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """A digest of the keys and the condition of each member, not of its name."""
        names = Names()
        pairs = zip(self.members, self.conditions, strict=True)
        return tuple(names.take(digest([sorted(attributes_of(q)), one])) for q, one in pairs)

    @property
    def is_mixed(self) -> bool:
        """Whether members take different tuples."""
        return len(set(self.conditions)) > 1

    @property
    def has_rivals(self) -> bool:
        """Whether some members have the same keys and different tuples."""
        keys = [attributes_of(query) for query in self.members]
        return len(set(keys)) < len(set(zip(keys, self.conditions, strict=True)))

    def units(self, tables: Sequence[Collection[str]] = ()) -> list[Unit]:
        """The tables that take tuples if some members share tables. A shared table with a missing
        member is left out.
        """
        of = {name: ids for ids in tables if set(ids) <= set(self.ids) for name in ids}
        together: dict[object, list[int]] = {}
        for place, name in enumerate(self.ids):
            own = frozenset(of[name]) if name in of else place
            together.setdefault(own, []).append(place)
        return [self.unit(places) for places in together.values()]

    def unit(self, places: Sequence[int]) -> Unit:
        """The table of some members, by their places."""
        members = tuple(self.members[place] for place in places)
        asking = tuple(self.conditions[place] for place in places)
        return Unit(tuple(self.ids[place] for place in places), members, asking)


@dataclass(frozen=True)
class Unit:
    """A table that takes tuples, of one aggregation or of several with the same keys."""

    ids: tuple[str, ...]
    """The digests of its members."""
    members: tuple[LowAggregate, ...]
    asking: tuple[str, ...]
    """The condition of each member."""

    @property
    def id(self) -> str:
        return min(self.ids)

    @property
    def conditions(self) -> frozenset[str]:
        return frozenset(self.asking)

    @property
    def is_shared(self) -> bool:
        return len(self.members) > 1

    @cached_property
    def query(self) -> LowAggregate:
        """The aggregation that has the table."""
        first = self.members[0]
        return together(self.members).shared_query(first, READ) if self.is_shared else first

    @property
    def asked(self) -> Query:
        return Query(attributes_of(self.query), len(self.query.slots))


READ: Final = "read"
"""The name of the read in units, which do not depend on its real name."""


def together(members: Sequence[LowAggregate]) -> Table:
    """One table for aggregations with the same keys."""
    return Table(output_of(members[0]), {query.name: {READ: query} for query in members})


def output_of(query: LowAggregate) -> LowOutput:
    return LowOutput(query.name, query.fields, query.groups)


def families_of(read: str, low: LowPlan) -> list[AggregateFamily]:
    """The families of a read whose plan has neither shared tables nor trees."""
    found: dict[object, list[LowAggregate]] = {}
    for query in growing(low):
        assert query.epoch is not None
        epoch = show_expr(query.keys[query.epoch][1])
        same = read, tuple(sorted(query.interfaces)), epoch, query.epoch_in_key
        found.setdefault(same, []).append(query)
    families = (
        AggregateFamily(
            digest(same), tuple(some), tuple(condition_of(low, query) for query in some)
        )
        for same, some in found.items()
    )
    return [one for one in families if one.has_rivals or len(one.members) >= LEAST_QUERIES]


def choices_of(read: str, low: LowPlan) -> list[AggregateFamily]:
    """The aggregations of a read whose states leave a choice of strategy, each by itself."""
    found = []
    for query in low.aggregations:
        if query.epoch is None or not has_choice(query):
            continue
        epoch, condition = show_expr(query.keys[query.epoch][1]), condition_of(low, query)
        states = sorted(slot.kind.name for slot in query.slots if slot.kind.state is not None)
        same = [read, sorted(query.interfaces), epoch, sorted(attributes_of(query)), states]
        found.append(AggregateFamily(digest([*same, condition]), (query,), (condition,)))
    return found


def condition_of(low: LowPlan, query: LowAggregate) -> str:
    """A digest of a condition, equal for equal tuples."""

    def parts(where: Where) -> list[str]:
        exprs = (*(low.predicates[bit] for bit in where.signature), *where.rest)
        return sorted(show_expr(expr) for expr in exprs)

    own = parts(Where(query.signature, query.rest))
    return digest([own, sorted(parts(where) for where in query.anyof)])


def digest(what: object) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]


TREES: Final = "trees.json"


@dataclass(frozen=True)
class PlannedTree:
    """A tree of some tables of a family."""

    units: tuple[str, ...]
    """The ids of its tables."""
    tree: Tree
    whole: tuple[bool, ...]
    """The nodes whose tables hold all of their groups, and may grow."""


@dataclass(frozen=True)
class PlannedSharing:
    """The tables and trees that a family shares, and their expected savings."""

    tables: tuple[tuple[str, ...], ...] = ()
    """The members of each shared table, by their ids."""
    trees: tuple[PlannedTree, ...] = ()
    gain: float = 0.0
    """The predicted gain over the earlier sharing."""
    since: float = 0.0
    """The time since which it is in force, in Unix seconds."""

    def of(self, family: AggregateFamily) -> PlannedSharing:
        """The part of the sharing whose members a family has."""
        known = set(family.ids)
        tables = tuple(ids for ids in self.tables if known.issuperset(ids))
        units = {unit.id for unit in family.units(tables)}
        trees = tuple(one for one in self.trees if units.issuperset(one.units))
        return replace(self, tables=tables, trees=trees)

    @property
    def is_nothing(self) -> bool:
        return not self.tables and not self.trees

    def parts(self, family: AggregateFamily) -> list[frozenset[str]]:
        """The members that share something with each other, by their ids."""
        ids = {unit.id: unit.ids for unit in family.units(self.tables)}
        trees = (frozenset(i for name in one.units for i in ids[name]) for one in self.trees)
        return [*map(frozenset, self.tables), *trees]

    def among(self, members: Container[str]) -> PlannedSharing:
        """The sharing of some members that share nothing with other members."""
        return replace(
            self,
            tables=tuple(ids for ids in self.tables if ids[0] in members),
            trees=tuple(one for one in self.trees if one.units[0] in members),
        )


@dataclass(frozen=True)
class PlannedTraffic:
    """The measured traffic of an aggregation (terascope.sketches.base.Traffic)."""

    tuples: float
    groups: float
    exponent: float
    since: float = 0.0
    """The time since which it is in force, in Unix seconds."""

    def on(self, levels: Levels) -> Traffic:
        return Traffic(self.tuples, self.groups, self.exponent, levels)


@dataclass(frozen=True)
class TreesInForce:
    """The sharing that tasks use. A file with other fields is of another version."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    number: int = 0
    """The number of changes; 0: every query takes tuples."""
    since: float = 0.0
    """The time of the last change, or of the start of the run, in Unix seconds."""
    shared: Mapping[str, PlannedSharing] = field(default_factory=dict)
    """The sharing of each family, by its key; a family that is missing shares nothing."""
    traffic: Mapping[str, PlannedTraffic] = field(default_factory=dict)
    """The traffic by which the states of aggregations have their strategies; tasks choose for
    themselves where it is missing."""

    def changed(
        self,
        shared: Mapping[str, PlannedSharing],
        now: float,
        traffic: Mapping[str, PlannedTraffic] | None = None,
    ) -> TreesInForce:
        return TreesInForce(
            self.number + 1, now, {**self.shared, **shared}, {**self.traffic, **(traffic or {})}
        )


@cache
def adapter() -> TypeAdapter[TreesInForce]:
    return TypeAdapter(TreesInForce)


def put_in_force(folder: Path, trees: TreesInForce) -> None:
    write_whole(folder / TREES, adapter().dump_json(trees).decode())


def in_force(folder: Path) -> TreesInForce | None:
    """The trees of a folder; None: none were ever chosen, or the file cannot be understood."""
    try:
        return adapter().validate_json((folder / TREES).read_bytes())
    except (OSError, ValueError):
        return None


# ---- low-level plans -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Grafted:
    low: LowPlan
    nodes: Mapping[str, tuple[str, ...]]
    """The names of the queries and of the intermediate nodes of each family, by its key."""


def grafted(read: str, low: LowPlan, shared: Mapping[str, PlannedSharing], leaves: str) -> Grafted:
    """The plan of a read with the sharing of its families. A tree that needs more slots than a
    table has is left out.
    """
    made, nodes = low, dict[str, tuple[str, ...]]()
    for family in families_of(read, low):
        before = len(made.inner)
        planned = shared.get(family.key)
        if planned is not None:
            made = with_sharing(made, family, planned.of(family), leaves)
        inner = (node.name for node in made.inner[before:])
        nodes[family.key] = (*(query.name for query in family.members), *inner)
    return Grafted(made, nodes)


def with_sharing(
    low: LowPlan, family: AggregateFamily, planned: PlannedSharing, leaves: str
) -> LowPlan:
    made, tables = low, dict[str, LowAggregate]()
    for unit in family.units(planned.tables):
        made, tables[unit.id] = with_table(made, unit)
    for one in planned.trees:
        members = [tables[name] for name in one.units]
        made = with_tree(made, members, one, leaves) or made
    return made


def with_table(low: LowPlan, unit: Unit) -> tuple[LowPlan, LowAggregate]:
    """An internal table: only the queries that share it read it, each its own groups."""
    if not unit.is_shared:
        return low, unit.query
    names = Names({query.name for query in (*low.queries, *low.inner)})
    table = replace(unit.query, name=names.take("table"))
    mine = {query.name for query in unit.members}
    queries = tuple(
        replace(q, parent=table.name) if isinstance(q, LowAggregate) and q.name in mine else q
        for q in low.queries
    )
    return replace(low, queries=queries, inner=(*low.inner, table)), table


def with_tree(
    low: LowPlan, members: Sequence[LowAggregate], planned: PlannedTree, leaves: str
) -> LowPlan | None:
    """The plan with a tree; None when a node would need more slots than a table has."""
    pairs = zip(planned.tree.nodes, planned.whole, strict=True)
    bounded = {node.attributes for node, whole in pairs if not whole}

    def wanted(attributes: frozenset[str]) -> float:
        return float("inf") if attributes in bounded else 0.0

    return Grafting(low, members, planned.tree, leaves, wanted).plan()


def widened_places(flat: LowPlan, low: LowPlan) -> dict[int, Shape]:
    """The queries that keep more than their own slots, for their children: by place, the rows that
    the operators above read.
    """
    found: dict[int, Shape] = {}
    for place, (own, now) in enumerate(zip(flat.queries, low.queries, strict=True)):
        if not isinstance(own, LowAggregate) or not isinstance(now, LowAggregate):
            continue
        if len(now.slots) > len(own.slots):
            found[place] = own.group_shape
    return found


def narrowed(block: Block, shape: Shape) -> Block:
    """Groups with their own slots only, which are the first slots in their rows."""
    rows = block.rows[:, : shape.stride].copy()
    rows[:, 0] &= (1 << (1 + len(shape.slots))) - 1
    return replace(block, rows=rows)
