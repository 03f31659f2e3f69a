"""Aggregations of a running set that could share tables and trees.

In: the low-level plan of a read, in which every query has a table of its own. Out: families of
aggregations; and, given the members that share tables, the tables that take tuples.

A family is identified by its source and epochs, an aggregation by its conditions and keys. So a
changed set finds the sharing of unchanged aggregations.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from terascope.execute.grouping.aggregator import group_fields
from terascope.physical.job import LowOutput
from terascope.physical.low_plan import LowAggregate, LowPlan, Where
from terascope.physical.rules.grow_trees import LEAST_QUERIES, attributes_of, growing
from terascope.physical.rules.share_tables import Table
from terascope.physical.split.drafts import Names
from terascope.plan.show import show_expr
from terascope.sharing.model import Query


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

    @property
    def is_worth_a_look(self) -> bool:
        return self.has_rivals or len(self.members) >= LEAST_QUERIES

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
    made = Table(output_of(members[0]), {READ: members[0]})
    for query in members:
        made.add(output_of(query), {READ: query})
    return made


def output_of(query: LowAggregate) -> LowOutput:
    return LowOutput(query.name, query.fields, group_fields(query))


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
    return [family for family in families if family.is_worth_a_look]


def condition_of(low: LowPlan, query: LowAggregate) -> str:
    """A digest of a condition, equal for equal tuples."""

    def parts(where: Where) -> list[str]:
        exprs = (*(low.predicates[bit] for bit in where.signature), *where.rest)
        return sorted(show_expr(expr) for expr in exprs)

    own = parts(Where(query.signature, query.rest))
    return digest([own, sorted(parts(where) for where in query.anyof)])


def digest(what: object) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]
