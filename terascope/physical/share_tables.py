"""One table for all aggregations that differ in nothing but what they aggregate.

In: the reads of a job with their low-level plans, and the low-level streams. Out: the same with
fewer streams: the first of those with the same tuples and the same keys has the slots of all of
them, and whoever reads another one reads that, under its own names. One more query with the keys
of a set then costs its slots, and no grouping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from terascope.low.groups import GroupFields
from terascope.low.plan import LowAggregate, Slot
from terascope.low.slots import MOST_SLOTS, Shape
from terascope.physical.job import LowOutput, SourceRead
from terascope.plan.expr import Col
from terascope.plan.rel import Field, Named, Project, Read, Rel, inputs, with_inputs

Queries: TypeAlias = Mapping[str, LowAggregate]
"""An aggregation, in each read that has tuples for it."""


Some = TypeVar("Some")


@dataclass(frozen=True)
class Shared:
    """Low-level streams with tables of their own, and how the others are read."""

    reads: tuple[SourceRead, ...]
    low: tuple[LowOutput, ...]
    views: Mapping[str, Project]
    """For each stream that has a table with others: that table's columns under its own names."""

    def read(self, rel: Rel) -> Rel:
        """A tree over the streams that are left."""
        if isinstance(rel, Read):
            return self.views.get(rel.stream, rel)
        parts = inputs(rel)
        return with_inputs(rel, tuple(self.read(part) for part in parts)) if parts else rel


@dataclass
class Table:
    """The table of one stream and of those that join it."""

    output: LowOutput
    queries: Queries
    members: list[LowOutput] = field(default_factory=list)
    slots: dict[object, dict[str, Slot]] = field(default_factory=dict)
    """What is kept -> its slot in each read."""

    def has_room(self, queries: Queries) -> bool:
        return len(self.slots) + len(any_of(queries).slots) <= MOST_SLOTS

    def add(self, output: LowOutput, queries: Queries) -> None:
        used = {f.name for f in self.output.fields}
        used |= {slot.name for slots in self.slots.values() for slot in slots.values()}
        for place, slot in enumerate(any_of(queries).slots):
            kept = kept_in(queries, place)
            if kept not in self.slots:
                own = output is self.output
                name = slot.name if own or slot.name not in used else free_name(slot.name, used)
                used.add(name)
                self.slots[kept] = {
                    read: replace(q.slots[place], name=name) for read, q in queries.items()
                }
        self.members.append(output)

    def shared_slots(self, read: str) -> tuple[Slot, ...]:
        return tuple(slots[read] for slots in self.slots.values())

    @property
    def shared_output(self) -> LowOutput:
        groups = self.output.groups
        assert groups is not None
        slots = self.shared_slots(next(iter(self.queries)))
        wide = GroupFields(
            groups.keys,
            tuple(Field(slot.name, slot.type) for slot in slots),
            Shape(groups.shape.keys, tuple(slot.kind for slot in slots)),
            groups.epoch,
        )
        return LowOutput(self.output.name, wide.fields, wide)

    def view(self, output: LowOutput, queries: Queries) -> Project:
        """The table as one of its members has it."""
        query = any_of(queries)
        keys = {expr: name for name, expr in reversed(any_of(self.queries).keys)}
        items: list[Named] = [(name, Col(keys[expr], expr.type)) for name, expr in query.keys]
        for place, slot in enumerate(query.slots):
            kept = any_of(self.slots[kept_in(queries, place)])
            items.append((slot.name, Col(kept.name, slot.type)))
        return Project(Read(self.output.name, self.shared_output.fields), tuple(items))


def any_of(by_read: Mapping[str, Some]) -> Some:
    """In one of the reads: but for the columns of the connector all are alike."""
    return next(iter(by_read.values()))


def kept_in(queries: Queries, place: int) -> object:
    """What a slot keeps, whatever its name is."""
    return tuple((q.slots[place].kind, q.slots[place].argument) for q in queries.values())


def free_name(name: str, used: set[str]) -> str:
    number = 2
    while f"{name}#{number}" in used:
        number += 1
    return f"{name}#{number}"


def share_tables(reads: Sequence[SourceRead], low: Sequence[LowOutput]) -> Shared:
    queries = {output.name: aggregations(output.name, reads) for output in low}
    tables: dict[object, list[Table]] = {}
    homes: dict[str, Table] = {}
    for output in low:
        own = queries[output.name]
        if own:
            rivals = tables.setdefault(tuples_and_keys(own), [])
            table = next((t for t in rivals if t.has_room(own)), None)
            if table is None:
                table = Table(output, own)
                rivals.append(table)
            table.add(output, own)
            homes[output.name] = table
    several = {name: t for name, t in homes.items() if len(t.members) > 1}
    views = {o.name: t.view(o, queries[o.name]) for o in low if (t := several.get(o.name))}
    gone = {name for name, table in several.items() if table.output.name != name}
    left = tuple(
        several[o.name].shared_output if o.name in several else o for o in low if o.name not in gone
    )
    return Shared(tuple(with_tables(read, several, gone) for read in reads), left, views)


def aggregations(name: str, reads: Sequence[SourceRead]) -> Queries:
    """The aggregation of a low-level stream, in each read that has it."""
    return {
        read.name: query
        for read in reads
        if read.low is not None
        for query in read.low.queries
        if query.name == name and isinstance(query, LowAggregate)
    }


def tuples_and_keys(queries: Queries) -> object:
    """What aggregations with one table have in common."""
    return tuple(
        (
            q.interfaces,
            q.signature,
            q.rest,
            frozenset(expr for _, expr in q.keys),
            len(q.keys),
            None if q.epoch is None else q.keys[q.epoch][1],
        )
        for q in queries.values()
    )


def with_tables(read: SourceRead, tables: Mapping[str, Table], gone: set[str]) -> SourceRead:
    if read.low is None:
        return read
    kept = []
    for query in read.low.queries:
        if query.name in gone:
            continue
        table = tables.get(query.name)
        if table is not None and isinstance(query, LowAggregate):
            query = replace(query, slots=table.shared_slots(read.name))
        kept.append(query)
    return replace(read, low=replace(read.low, queries=tuple(kept)))
