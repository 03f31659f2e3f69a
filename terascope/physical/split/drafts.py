"""Low-level streams under construction, so that queries can share them.

In: the part of each query next to a source. Out: one stream for all selections with the same scan
and predicate, with the union of their columns; one for all aggregations that also have the same
keys, with the union of their sub-aggregates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from terascope.plan.build import conjunction
from terascope.plan.expr import AggCall, Col, Expr, columns_of, transform
from terascope.plan.rel import (
    Aggregate,
    Field,
    Filter,
    Named,
    NamedAgg,
    Project,
    Read,
    Rel,
    Scan,
    SourceField,
    aggregation_fields,
)
from terascope.plan.show import show_expr

LowKind: TypeAlias = Literal["selection", "aggregation"]


@dataclass
class Names:
    """Generates names, each once."""

    taken: set[str] = field(default_factory=set)

    def take(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}{number}"
        self.taken.add(name)
        return name


@dataclass
class LowDraft:
    """A low-level stream under construction: conditions on the tuples of one scan."""

    name: str
    scan: Scan
    conditions: tuple[Expr, ...]
    names: Names = field(default_factory=Names)
    sources: dict[str, SourceField] = field(default_factory=dict)

    def join(self, scan: Scan) -> bool:
        """Read the columns of another scan as well; False when equal names mean other columns."""
        columns = {c.name: c for c in scan.columns}
        if any(self.sources.get(name, column) != column for name, column in columns.items()):
            return False
        self.sources |= columns
        return True

    @property
    def source(self) -> Rel:
        """The scan with its columns so far, and the filter on it."""
        scan = replace(self.scan, columns=tuple(self.sources.values()))
        return Filter(scan, conjunction(self.conditions)) if self.conditions else scan

    @property
    def rel(self) -> Rel:
        return self.source

    @property
    def read(self) -> Read:
        """The relation by which a query reads this stream, with the columns it has so far."""
        return Read(self.name, self.fields)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.rel.fields


@dataclass
class SelectionDraft(LowDraft):
    columns: dict[Expr, str] = field(default_factory=dict)

    @property
    def rel(self) -> Project:
        return Project(self.source, tuple((name, expr) for expr, name in self.columns.items()))

    def column(self, expr: Expr, wanted: str) -> Col:
        """The column that holds an expression over the scan."""
        if expr not in self.columns:
            # A column of the source keeps its name, hidden ones above all.
            name = expr.name if isinstance(expr, Col) else plain_name(wanted)
            self.columns[expr] = self.names.take(name)
        return Col(self.columns[expr], expr.type)

    def carried(self, expr: Expr) -> Expr:
        """The expression over columns that the stream carries."""
        return transform(expr, lambda e: self.column(e, e.name) if isinstance(e, Col) else e)


@dataclass
class AggregationDraft(LowDraft):
    keys: dict[Expr, str] = field(default_factory=dict)
    aggs: dict[AggCall, str] = field(default_factory=dict)
    sorted: bool = False
    """The keys in an order that does not depend on which query came first."""

    @property
    def named_keys(self) -> tuple[Named, ...]:
        keys = tuple((name, expr) for expr, name in self.keys.items())
        if self.sorted:
            keys = tuple(sorted(keys, key=lambda key: show_expr(key[1])))
        return keys

    @property
    def named_aggs(self) -> tuple[NamedAgg, ...]:
        return tuple((name, call) for call, name in self.aggs.items())

    @property
    def rel(self) -> Aggregate:
        return Aggregate(self.source, self.named_keys, self.named_aggs)

    @property
    def fields(self) -> tuple[Field, ...]:
        return aggregation_fields(self.named_keys, self.named_aggs)

    def key(self, expr: Expr, wanted: str) -> Col:
        if expr not in self.keys:
            name = expr.name if isinstance(expr, Col) else self.own_name(plain_name(wanted))
            self.keys[expr] = self.names.take(name)
        return Col(self.keys[expr], expr.type)

    def sub_aggregate(self, call: AggCall) -> Col:
        if call not in self.aggs:
            self.aggs[call] = self.names.take(self.own_name(sub_aggregate_name(call)))
        return Col(self.aggs[call], call.type)

    def own_name(self, wanted: str) -> str:
        """A name that no column of the source has: in the query it would mean that column."""
        return f"{wanted}_" if wanted in self.sources else wanted


def plain_name(wanted: str) -> str:
    """A name without the alias of a join's input; a generated name becomes `value`."""
    name = wanted.rpartition(".")[2]
    return name if name.isidentifier() else "value"


def sub_aggregate_name(call: AggCall) -> str:
    """A readable name of a sub-aggregate: `cnt`, `sum_len`, `max_value`."""
    if not call.args:
        return "cnt"
    names = sorted(columns_of(call.args[0]))
    plain = names[0].lstrip("#") if len(names) == 1 else "value"
    return f"{call.function.name}_{plain}"


ScanKey: TypeAlias = tuple[tuple[str, ...], str, int | None, tuple[SourceField, ...]]


def scan_key(scan: Scan) -> ScanKey:
    """The identity of a scan without the columns that it reads."""
    return scan.interfaces, scan.protocol, scan.layer, scan.checked


@dataclass
class Drafts:
    """All low-level streams of a query set."""

    names: Names
    live: bool = False
    """Whether the set runs as a stream: its queries may change while groups are stored."""
    made: list[SelectionDraft | AggregationDraft] = field(default_factory=list)
    _alike: dict[object, list[SelectionDraft | AggregationDraft]] = field(default_factory=dict)
    """The drafts with the same tuples and, for aggregations, the same keys."""

    def selection(self, query: str, scan: Scan, conditions: Iterable[Expr]) -> SelectionDraft:
        """The stream with these tuples; it is made when there is none yet."""
        wanted = tuple(dict.fromkeys(conditions))
        alike = self.with_tuples(scan, wanted)
        for draft in alike:
            if isinstance(draft, SelectionDraft) and draft.join(scan):
                return draft
        made = SelectionDraft(self.names.take(f"{query}_low"), scan, wanted)
        made.join(scan)
        self.made.append(made)
        alike.append(made)
        return made

    def aggregation(
        self,
        query: str,
        scan: Scan,
        conditions: Iterable[Expr],
        keys: Iterable[Expr],
        calls: Iterable[AggCall],
        most_slots: int,
    ) -> AggregationDraft:
        """The stream with these groups that has room for the sub-aggregates."""
        wanted, grouped, needed = tuple(dict.fromkeys(conditions)), frozenset(keys), set(calls)
        alike = self.with_tuples(scan, wanted, grouped)
        for draft in alike:
            if not isinstance(draft, AggregationDraft) or draft.keys.keys() != grouped:
                continue
            room = len(draft.aggs.keys() | needed) <= most_slots
            if room and draft.join(scan):
                return draft
        name = self.names.take(f"{query}_low")
        made = AggregationDraft(name, scan, wanted, sorted=self.live)
        made.join(scan)
        self.made.append(made)
        alike.append(made)
        return made

    def with_tuples(
        self, scan: Scan, conditions: tuple[Expr, ...], keys: frozenset[Expr] | None = None
    ) -> list[SelectionDraft | AggregationDraft]:
        """The selections of the tuples of a scan that meet some conditions, or the aggregations of
        these tuples by some keys.
        """
        return self._alike.setdefault((scan_key(scan), frozenset(conditions), keys), [])
