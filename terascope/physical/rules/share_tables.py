"""One table for all aggregations with the same keys.

In: the reads of a job with their low-level plans, and the low-level streams. Out: the same with
fewer streams: the first stream of a shared table has the slots of all of them, and readers of
another stream read the first under the other's names. One more query with the keys of a set then
costs its slots, and no grouping.

Aggregations with different conditions may share a table, too: a tuple that meets any condition is
looked up once, and every slot takes the tuples of its own condition (an admission predicate, tested
by bits of the prefilter). A group of the table belongs to a query when it has a tuple of that
query; a count beside the query's slots records that. Costs decide (`pays_to_share`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeAlias, TypeVar

from terascope.functions.slots import COUNT
from terascope.kernels.tables.slots import MOST_SLOTS
from terascope.physical.draft import JobDraft
from terascope.physical.job import SourceRead
from terascope.physical.low_plan import AdmissionPredicate, LowAggregate, LowOutput, Queries, Slot
from terascope.physical.rules.low_planner import low_groups
from terascope.physical.statistics.measured import Measured
from terascope.plan.build import call
from terascope.plan.expr import Col, Lit
from terascope.plan.plan import Stream
from terascope.plan.rel import Aggregate, Filter, Named, Project, Read, Rel
from terascope.types import Type

PaysToShare: TypeAlias = Callable[[Sequence[Queries]], bool]
"""Whether aggregations with the same keys and different conditions should share a table."""

Size: TypeAlias = Callable[[Queries], float]
"""The number of tuples that an aggregation takes."""

Some = TypeVar("Some")

MOST_RIVALS: Final = 8
"""The most tables that are tried for an aggregation, those with the most tuples first: planning
time then grows with the number of queries, and not with the number of pairs."""

SEEN: Final = "#seen"
"""The count of a query's own tuples, in a table that other queries share."""


def share_tables(draft: JobDraft) -> JobDraft:
    """Before: a table for each aggregation      After: one for those with the same keys."""
    if not draft.is_native:
        return draft
    # What else a stream could share is found while it runs.
    measured = Measured(None) if draft.is_live else draft.measured
    outputs = [low_output(stream) for stream in draft.hosted]
    low = [output for output in outputs if output.name not in draft.in_spark]
    queries = aggregations(draft.reads)
    tables = tables_of(
        [(output, queries.get(output.name, {})) for output in low],
        pays_to_share(draft.config.share_tables, measured, draft.reads),
        measured.size,
    )
    several = {name: t for t in tables if len(t.members) > 1 for name in t.members}
    views = {o.name: t.view(o.name) for o in low if (t := several.get(o.name))}
    gone = {name for name, table in several.items() if table.output.name != name}
    left = tuple(
        several[o.name].shared_output if o.name in several else o for o in low if o.name not in gone
    )
    reads = tuple(with_tables(read, several, gone) for read in draft.reads)
    return replace(draft, unshared=draft.reads, reads=reads, low=left, views=views)


def pays_to_share(mode: str, measured: Measured, reads: Sequence[SourceRead]) -> PaysToShare:
    """Whether aggregations with the same keys and different conditions share a table."""
    if mode == "cost":
        return lambda members: measured.pays_to_share(members, reads)
    return (lambda _: True) if mode == "always" else never


def low_output(stream: Stream) -> LowOutput:
    groups = low_groups(stream.rel) if isinstance(stream.rel, Aggregate) else None
    return LowOutput(stream.name, stream.rel.fields, groups)


def never(_: Sequence[Queries]) -> bool:
    return False


def unknown(_: Queries) -> float:
    return 0.0


@dataclass
class Table:
    """The table of one stream and of the streams that join it."""

    output: LowOutput
    members: dict[str, Queries]
    """By stream: its aggregation, in each read."""
    too_many: int = MOST_SLOTS + 1
    """The number of further slots for which there was no room."""
    size: float = 0.0
    """The most tuples that a member takes."""

    @property
    def queries(self) -> Queries:
        return self.members[self.output.name]

    def has_room(self, name: str, queries: Queries) -> bool:
        """Whether the slots of another member fit into the table."""
        made = replace(self, members={**self.members, name: queries})
        most = sum(len(any_of(member).slots) + 1 for member in made.members.values())
        return most <= MOST_SLOTS or len(made.slots) <= MOST_SLOTS

    @cached_property
    def entries(self) -> dict[str, AdmissionPredicate]:
        """The admission predicate in each read, when all members have joined the table."""
        members = self.members.values()
        return {read: AdmissionPredicate.of([m[read] for m in members]) for read in self.queries}

    @cached_property
    def slots(self) -> dict[object, dict[str, Slot]]:
        """Kept state, when all members have joined the table -> its slot in each read."""
        found: dict[object, dict[str, Slot]] = {}
        used = {f.name for f in self.output.fields}
        for member in self.members:
            for name, by_read in self.wanted(member):
                kept = kept_in(by_read)
                if kept not in found:
                    own = member == self.output.name and name != SEEN
                    fresh = name if own or name not in used else free_name(name, used)
                    used.add(fresh)
                    found[kept] = {r: replace(s, name=fresh) for r, s in by_read.items()}
        return found

    def wanted(self, member: str) -> list[tuple[str, dict[str, Slot]]]:
        """The slots of a member: its own and, if it needs one, the count that marks its groups."""
        queries = self.members[member]
        wheres = {read: self.entries[read].where(query) for read, query in queries.items()}
        found = [
            (slot.name, {r: replace(q.slots[i], where=wheres[r]) for r, q in queries.items()})
            for i, slot in enumerate(any_of(queries).slots)
        ]
        if any(where is not None for where in wheres.values()):
            present = {r: Slot(SEEN, COUNT, None, Type.ULLONG, w) for r, w in wheres.items()}
            found.append((SEEN, present))
        return found

    def shared_slots(self, read: str) -> tuple[Slot, ...]:
        return tuple(slots[read] for slots in self.slots.values())

    def shared_query(self, query: LowAggregate, read: str) -> LowAggregate:
        """The aggregation that has the table."""
        return self.entries[read].admitting(query, self.shared_slots(read))

    @cached_property
    def shared_output(self) -> LowOutput:
        return self.output.with_slots(self.shared_slots(next(iter(self.queries))))

    def view(self, member: str) -> Project:
        """The table as one of its members reads it."""
        query = any_of(self.members[member])
        keys = {expr: name for name, expr in reversed(any_of(self.queries).keys)}
        items: list[Named] = [(name, Col(keys[expr], expr.type)) for name, expr in query.keys]
        source: Rel = Read(self.output.name, self.shared_output.fields)
        for name, by_read in self.wanted(member):
            kept = any_of(self.slots[kept_in(by_read)])
            column = Col(kept.name, kept.type)
            if name == SEEN:
                source = Filter(source, call(">", column, Lit(0, Type.ULLONG)))
            else:
                items.append((name, column))
        return Project(source, tuple(items))


def any_of(by_read: Mapping[str, Some]) -> Some:
    """The aggregation of one of the reads: all are alike except for columns of the connector."""
    return next(iter(by_read.values()))


def kept_in(slots: Mapping[str, Slot]) -> object:
    """The state that a slot keeps in each read, whatever its name."""
    return tuple(slot.state for slot in slots.values())


def free_name(name: str, used: set[str]) -> str:
    number = 2
    while f"{name}#{number}" in used:
        number += 1
    return f"{name}#{number}"


@dataclass
class Rivals:
    """The tables of aggregations with the same keys."""

    pays_to_share: PaysToShare
    size: Size
    tables: list[Table] = field(default_factory=list)
    _by_tuples: dict[object, Table] = field(default_factory=dict)
    """The last table with a member of these tuples."""

    def home(self, output: LowOutput, queries: Queries) -> Table:
        """The table of an aggregation with the same tuples, else the first table that it may join,
        else a new one.
        """
        name = output.name
        found = alike = self._by_tuples.get(tuples_of(queries))
        if alike is None or not alike.has_room(name, queries):
            open_ = (t for t in self.nearest(len(any_of(queries).slots)) if t is not alike)
            found = next((t for t in open_ if self.joins(t, name, queries)), None)
        if found is None:
            found = Table(output, {})
            self.tables.append(found)
        found.members[name] = queries
        found.size = max(found.size, self.size(queries))
        self._by_tuples[tuples_of(queries)] = found
        return found

    def nearest(self, slots: int) -> list[Table]:
        """The tables worth trying for this many slots."""
        some = [table for table in self.tables if slots < table.too_many]
        if len(some) <= MOST_RIVALS:
            return some
        order = sorted(range(len(some)), key=lambda i: -some[i].size)
        return [some[i] for i in sorted(order[:MOST_RIVALS])]

    def joins(self, table: Table, name: str, queries: Queries) -> bool:
        """Whether an aggregation joins a table of other tuples."""
        if not self.pays_to_share([*table.members.values(), queries]):
            return False
        if table.has_room(name, queries):
            return True
        table.too_many = min(table.too_many, len(any_of(queries).slots))
        return False


def tables_of(
    queries: Iterable[tuple[LowOutput, Queries]], pays_to_share: PaysToShare, size: Size = unknown
) -> list[Table]:
    """The table of each aggregation: one with its keys that it may join, or one of its own."""
    rivals: dict[object, Rivals] = {}
    for output, own in queries:
        if own:
            rivals.setdefault(keys_of(own), Rivals(pays_to_share, size)).home(output, own)
    return [table for some in rivals.values() for table in some.tables]


def aggregations(reads: Sequence[SourceRead]) -> dict[str, dict[str, LowAggregate]]:
    """By low-level stream its aggregation, in each read that has it."""
    found: dict[str, dict[str, LowAggregate]] = {}
    for read in reads:
        for query in read.aggregations:
            found.setdefault(query.name, {})[read.name] = query
    return found


def tuples_of(queries: Queries) -> object:
    """A key that is equal for aggregations with the same tuples."""
    return tuple((frozenset(q.signature), frozenset(q.rest)) for q in queries.values())


def keys_of(queries: Queries) -> object:
    """A key that is equal for aggregations that may share a table. Groups with states and groups
    with a row for each range of FLOATs do not.
    """
    return tuple(
        (
            name,
            q.interfaces,
            frozenset(expr for _, expr in q.keys),
            len(q.keys),
            q.epoch_expr,
            "ranges" if q.shape.ranges else "states" if q.shape.states else "",
        )
        for name, q in queries.items()
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
            query = table.shared_query(query, read.name)
        kept.append(query)
    return replace(read, low=replace(read.low, queries=tuple(kept)))
