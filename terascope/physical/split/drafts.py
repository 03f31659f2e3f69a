"""Low-level streams under construction, so that queries can share them.

In: the part of each query next to a source. Out: one stream for all selections with the same scan
and predicate, with the union of their columns; one for all aggregations that also have the same
keys, with the union of their sub-aggregates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from terascope.functions.partial_states import PartialState
from terascope.physical.split.host import LowSafety
from terascope.plan.build import conjunction
from terascope.plan.expr import AggCall, Col, Expr, columns_of, transform
from terascope.plan.rel import (
    Aggregate,
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
    """A low-level stream under construction: conditions on the tuples of one scan, and the columns
    of a selection, or the keys and sub-aggregates of an aggregation.
    """

    name: str
    scan: Scan
    conditions: tuple[Expr, ...]
    grouped: bool
    """Whether it is an aggregation."""
    sorted: bool = False
    """The keys in an order that does not depend on which query came first."""
    names: Names = field(default_factory=Names)
    sources: dict[str, SourceField] = field(default_factory=dict)
    columns: dict[Expr, str] = field(default_factory=dict)
    """The columns of a selection, or the keys of an aggregation."""
    aggs: dict[AggCall, str] = field(default_factory=dict)

    def join(self, scan: Scan) -> bool:
        """Read the columns of another scan as well; False when equal names mean other columns."""
        columns = {c.name: c for c in scan.columns}
        if any(self.sources.get(name, column) != column for name, column in columns.items()):
            return False
        self.sources |= columns
        return True

    @property
    def named_columns(self) -> tuple[Named, ...]:
        columns = [(name, expr) for expr, name in self.columns.items()]
        if self.sorted:
            columns.sort(key=lambda column: show_expr(column[1]))
        return tuple(columns)

    @property
    def named_aggs(self) -> tuple[NamedAgg, ...]:
        return tuple((name, call) for call, name in self.aggs.items())

    @property
    def rel(self) -> Rel:
        """The stream over the scan with its columns so far."""
        source: Rel = replace(self.scan, columns=tuple(self.sources.values()))
        if self.conditions:
            source = Filter(source, conjunction(self.conditions))
        if self.grouped:
            return Aggregate(source, self.named_columns, self.named_aggs)
        return Project(source, self.named_columns)

    @property
    def read(self) -> Read:
        """The relation by which a query reads this stream, with the columns it has so far."""
        return Read(self.name, aggregation_fields(self.named_columns, self.named_aggs))

    def column(self, expr: Expr, wanted: str) -> Col:
        """The column, or the key, that holds an expression over the scan."""
        if expr not in self.columns:
            name = plain_name(wanted)
            if isinstance(expr, Col):  # it keeps its name, hidden columns above all
                name = expr.name
            elif self.grouped:
                name = self.own_name(name)
            self.columns[expr] = self.names.take(name)
        return Col(self.columns[expr], expr.type)

    def carried(self, expr: Expr) -> Expr:
        """The expression over columns that the stream carries."""
        return transform(expr, lambda e: self.column(e, e.name) if isinstance(e, Col) else e)

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
    """A readable name of a sub-aggregate: `cnt`, `sum_len`, `max_value`, `moments_len`."""
    if not call.args:
        return "cnt"
    names = sorted(columns_of(call.args[0]))
    plain = names[0].lstrip("#") if len(names) == 1 else "value"
    function = call.function
    state = function.kind_of_state.name if isinstance(function, PartialState) else ""
    return f"{re.split(r'[^a-z_]', state)[0] or function.name}_{plain}"


def mixes_rows(calls: Iterable[AggCall]) -> bool:
    """Whether some sub-aggregate splits a group into several rows, which those with states do not
    allow.
    """
    functions = [call.function for call in calls]
    states = any(isinstance(function, PartialState) for function in functions)
    return states and any(function.splits_groups for function in functions)


ScanKey: TypeAlias = tuple[tuple[str, ...], str, int | None, tuple[SourceField, ...]]


def scan_key(scan: Scan) -> ScanKey:
    """The identity of a scan without the columns that it reads."""
    return scan.interfaces, scan.protocol, scan.layer, scan.checked


@dataclass
class Drafts:
    """All low-level streams of a query set."""

    names: Names
    judge: LowSafety
    live: bool = False
    """Whether the set runs as a stream: its queries may change while groups are stored."""
    made: list[LowDraft] = field(default_factory=list)
    _alike: dict[object, list[LowDraft]] = field(default_factory=dict)
    """The drafts with the same tuples and, for aggregations, the same keys."""

    def stream(
        self,
        query: str,
        scan: Scan,
        conditions: Iterable[Expr],
        keys: Iterable[Expr] | None = None,
        calls: Iterable[AggCall] = (),
    ) -> LowDraft:
        """The selection of these tuples or, with keys, the aggregation of them that has room for
        the sub-aggregates; it is made when there is none yet.
        """
        wanted, needed = tuple(dict.fromkeys(conditions)), set(calls)
        grouped = None if keys is None else frozenset(keys)
        alike = self._alike.setdefault((scan_key(scan), frozenset(wanted), grouped), [])
        for draft in alike:
            together = draft.aggs.keys() | needed
            if len(together) > self.judge.host.most_slots or mixes_rows(together):
                continue
            if draft.join(scan):
                return draft
        name = self.names.take(f"{query}_low")
        live_keys = self.live and grouped is not None
        made = LowDraft(name, scan, wanted, grouped is not None, sorted=live_keys)
        made.join(scan)
        self.made.append(made)
        alike.append(made)
        return made
