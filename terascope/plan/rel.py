"""The typed relational algebra, from which streams are computed.

In: the results of binding. Out: immutable operator trees. `fields` of every node is derived, and a
constructor refuses a tree that makes no sense, so that a rule cannot build one.

Columns whose name begins with '#' are hidden: they carry the place of a tuple in its stream
((clock, interface, position), see docs/language) and never reach a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_
from typing import Any, Literal, TypeAlias, TypeVar, assert_never

from terascope.diagnostic import NOWHERE, Span
from terascope.functions.base import Slope, Trend
from terascope.plan.expr import AggCall, Expr, columns_of
from terascope.plan.hashing import PlanNode
from terascope.types import Type


class PlanMistake(Exception):
    """A tree that makes no sense: always a fault of the program, never of the user."""


@dataclass(frozen=True)
class Field:
    name: str
    type: Type

    @property
    def hidden(self) -> bool:
        return self.name.startswith("#")


ClockUnit = Literal["s", "ms", "us", "ns"]


@dataclass(frozen=True)
class SourceField:
    """A column of a source, with the order that its PROTOCOL declares."""

    name: str
    type: Type
    slope: Slope | None = None
    clock: ClockUnit | None = None
    column: str | None = None
    """The column of the connector it is read from, when that has another name."""

    @property
    def read_from(self) -> str:
        return self.column or self.name

    @property
    def falls(self) -> bool:
        """Whether its values are declared to get smaller as the stream goes on."""
        return self.slope is not None and self.slope.trend is Trend.DECREASING


def require(condition: bool, message: str) -> None:
    if not condition:
        raise PlanMistake(message)


def check_columns(expr: Expr, source: Rel, where: str) -> None:
    missing = columns_of(expr) - source.all_names
    if missing:
        raise PlanMistake(f"{where}: no column {sorted(missing)} among {source.names}")


class Base(PlanNode):
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        raise PlanMistake(f"{type(self).__name__} has no fields")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple([f.name for f in self.fields])

    @cached_property
    def all_names(self) -> frozenset[str]:
        return frozenset(self.names)

    @property
    def visible(self) -> tuple[Field, ...]:
        return tuple(f for f in self.fields if not f.hidden)

    @cached_property
    def _types(self) -> Mapping[str, Type]:
        """The types by name; where two columns have one name, the first counts."""
        return {f.name: f.type for f in reversed(self.fields)}

    def type_of(self, name: str) -> Type:
        """The type of a column.

        Raises:
            KeyError: there is no such column.
        """
        return self._types[name]


# ---- leaves --------------------------------------------------------------------------------------

TS, IFACE, POS = "#ts", "#if", "#pos"
"""Hidden columns of a scan: the finest clock field, the interface's name, the position within it.
"""


class Scan(Base):
    """The tuples of one protocol on some interfaces: their ordered merge."""

    interfaces: tuple[str, ...]
    protocol: str
    columns: tuple[SourceField, ...]
    """The columns that are read; pruning shortens the list. Hidden columns are among them."""
    layer: int | None = None
    """For packet sources: the bit of `#layers` that marks tuples of the protocol."""
    checked: tuple[SourceField, ...] = ()
    """Columns that are always read: a row of a file is malformed when one of them is, so that an
    answer does not depend on the other columns of the query set."""

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple([Field(c.name, c.type) for c in self.columns])


class Read(Base):
    """Another stream of the plan, by name: this is how work is shared."""

    stream: str
    schema: tuple[Field, ...]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.schema


class Lookup(Base):
    """A watch list: a small table from a file, without time."""

    name: str
    path: str
    schema: tuple[Field, ...]
    keys: tuple[str, ...] = ()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.schema


# ---- one input -----------------------------------------------------------------------------------


class OneInput(Base):
    """An operator over one relation, whose columns it keeps unless it says otherwise."""

    source: Rel

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.source.fields


class Filter(OneInput):
    predicate: Expr

    def __post_init__(self) -> None:
        check_columns(self.predicate, self.source, "filter")
        require(self.predicate.type in (Type.BOOL, Type.NULL), "filter: predicate is not BOOL")


Named: TypeAlias = tuple[str, Expr]
NamedAgg: TypeAlias = tuple[str, AggCall]


class Project(OneInput):
    items: tuple[Named, ...]

    def __post_init__(self) -> None:
        for name, expr in self.items:
            check_columns(expr, self.source, f"project {name}")
        require(len({n for n, _ in self.items}) == len(self.items), "project: a name twice")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple([Field(n, e.type) for n, e in self.items])


@dataclass(frozen=True)
class Sliding:
    """RANGE r SLIDE s, in units of the field it is measured on: windows [t-r, t) at every multiple
    t of s.
    """

    range: int
    slide: int


@dataclass(frozen=True)
class Slices:
    """SLICES s1, ..., sn: the slices of a period that repeats from time 0."""

    lengths: tuple[int, ...]


WindowSpec: TypeAlias = Sliding | Slices
WSTART, WEND = "wstart", "wend"


class Window(OneInput):
    """Each tuple once per window it belongs to, with `wstart` and `wend` appended.

    `on` names the column time is measured on. Over a stream that already has windows (`elements`),
    a tuple belongs to a window iff its own [wstart, wend) lies inside; its two columns are
    replaced.
    """

    spec: WindowSpec
    on: str
    elements: bool = False

    def __post_init__(self) -> None:
        require(self.on in self.source.names, f"window: no column {self.on}")
        if self.elements:
            require({WSTART, WEND} <= self.source.all_names, "window: elements without windows")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        kept = tuple(f for f in self.source.fields if f.name not in (WSTART, WEND))
        unit = self.source.type_of(self.on)
        return (*kept, Field(WSTART, unit), Field(WEND, unit))


class Aggregation(OneInput):
    """GROUP BY: the keys of groups, and what is computed of each."""

    keys: tuple[Named, ...]
    aggs: tuple[NamedAgg, ...]

    def __post_init__(self) -> None:
        for name, key in self.keys:
            check_columns(key, self.source, f"key {name}")
        for name, agg in self.aggs:
            for arg in agg.args:
                check_columns(arg, self.source, f"aggregate {name}")
            ordered = self.source.all_names.issuperset(agg.order)
            require(ordered, f"aggregate {name}: order is not there")
        require(len(self.all_names) == len(self.names), "aggregate: a name twice")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return aggregation_fields(self.keys, self.aggs)


class Aggregate(Aggregation):
    """GROUP BY within epochs. `sets`: grouping sets as key names, each giving rows of its own with
    the other keys NULL.

    `emit_empty`: also give a row for each window (or epoch) between the first and the last that has
    no tuple; only for keys that are all temporal.
    """

    sets: tuple[tuple[str, ...], ...] | None = None
    emit_empty: WindowSpec | Literal["epoch"] | None = None


class Running(Aggregation):
    """GROUP BY with CLOSING_WHEN (dissertation 3.1.2).

    `epoch` is the first of `keys`. A group lives from its first tuple until the end of an epoch in
    which `closing` (over this node's own columns) is TRUE, and gives a row for every epoch in
    between, up to the horizon of the input.
    """

    closing: Expr

    def __post_init__(self) -> None:
        super().__post_init__()
        known = columns_of(self.closing) <= self.all_names
        require(known, "running: closing names unknown columns")


def aggregation_fields(keys: tuple[Named, ...], aggs: tuple[NamedAgg, ...]) -> tuple[Field, ...]:
    return tuple([Field(n, one.type) for n, one in (*keys, *aggs)])


class Rank(OneInput):
    """ORDER BY [LIMIT k] within each combination of the columns `per` (the window): top-k.

    `order` ends with the columns that break every tie.
    """

    per: tuple[str, ...]
    order: tuple[tuple[Expr, bool], ...]
    """Expressions, each with True for descending. NULLs come last when ascending, first when
    descending."""
    limit: int | None


# ---- several inputs ------------------------------------------------------------------------------

JoinKind = Literal["inner", "left", "right", "full", "semi"]


class Join(Base):
    """A join of two inputs with disjoint names.

    `equalities`: pairs (over left, over right). `residual`: any other condition, part of the match
    (an outer row that fails it with every partner is unmatched). `fills`: in rows whose side is
    missing, that column takes the value of the expression over the other side. A semi-join keeps
    left rows that have a partner.
    """

    left: Rel
    right: Rel
    kind: JoinKind
    equalities: tuple[tuple[Expr, Expr], ...]
    residual: Expr | None = None
    fills: tuple[Named, ...] = ()

    def __post_init__(self) -> None:
        shared = self.left.all_names & self.right.all_names
        require(not shared, f"join: both sides have {sorted(shared)}")
        for a, b in self.equalities:
            check_columns(a, self.left, "join, left")
            check_columns(b, self.right, "join, right")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        if self.kind == "semi":
            return self.left.fields
        return self.left.fields + self.right.fields

    def side_of(self, name: str) -> Rel:
        return self.left if name in self.left.names else self.right

    def may_miss(self, side: Rel) -> bool:
        """Whether there are rows in which that side is missing."""
        return self.kind in (("right", "full") if side is self.left else ("left", "full"))

    def is_filled(self, expr: Expr) -> bool:
        """Whether a column of the expression takes another value than NULL when its side is
        missing.
        """
        return bool(columns_of(expr) & {name for name, _ in self.fills})


class Merge(Base):
    """The ordered union of streams, columns by position; names and types are those of the first.

    `on`: the merge field, by its name in the first input. `slack`: how far a tuple may come late.
    """

    sources: tuple[Rel, ...]
    on: str
    slack: int = 0

    def __post_init__(self) -> None:
        first = self.sources[0]
        for other in self.sources[1:]:
            require(len(other.fields) == len(first.fields), "merge: inputs differ in width")
        require(self.on in first.names, f"merge: no column {self.on}")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.sources[0].fields


Rel: TypeAlias = (
    Scan | Read | Lookup | Filter | Project | Window | Aggregate | Running | Rank | Join | Merge
)


def inputs(rel: Rel) -> tuple[Rel, ...]:
    match rel:
        case Scan() | Read() | Lookup():
            return ()
        case OneInput():
            return (rel.source,)
        case Join():
            return (rel.left, rel.right)
        case Merge():
            return rel.sources
        case _:
            assert_never(rel)


def with_inputs(rel: Rel, parts: tuple[Rel, ...]) -> Rel:
    """The same operator over other inputs, or the operator itself over its own."""
    if all(map(is_, parts, inputs(rel))):
        return rel
    match rel:
        case Scan() | Read() | Lookup():
            return rel
        case OneInput():
            return replace(rel, source=parts[0])
        case Join():
            return replace(rel, left=parts[0], right=parts[1])
        case Merge():
            return replace(rel, sources=parts)
        case _:
            assert_never(rel)


AnyRel = TypeVar("AnyRel", bound=Base)


def changed(rel: AnyRel, **parts: Any) -> AnyRel:
    """The same operator with other parts, or the operator itself where they are the ones it has."""
    if all(getattr(rel, name) == part for name, part in parts.items()):
        return rel
    return replace(rel, **parts)


def walk(rel: Rel) -> Iterator[Rel]:
    """Every operator, each before its inputs, these from left to right."""
    pending = [rel]
    while pending:
        one = pending.pop()
        yield one
        pending.extend(reversed(inputs(one)))


def refreshed(rel: Rel, schemas: Mapping[str, tuple[Field, ...]]) -> Rel:
    """Reads brought up to date with streams that changed their columns."""
    if isinstance(rel, Read):
        return changed(rel, schema=schemas.get(rel.stream, rel.schema))
    return with_inputs(rel, tuple([refreshed(p, schemas) for p in inputs(rel)]))


def with_expressions(
    rel: Rel, change: Callable[[Expr, tuple[Rel, ...]], Expr], over: Rel | None = None
) -> Rel:
    """The operator with changed expressions. `change` gets each expression with the relations whose
    columns it reads: inputs of `over`, or of the operator itself.
    """
    whole = over or rel
    below = inputs(whole)

    def named(items: tuple[Named, ...]) -> tuple[Named, ...]:
        return tuple((name, change(expr, below)) for name, expr in items)

    def aggregates(aggs: tuple[NamedAgg, ...]) -> tuple[NamedAgg, ...]:
        return tuple(
            (name, replace(agg, args=tuple(change(arg, below) for arg in agg.args)))
            for name, agg in aggs
        )

    match rel:
        case Scan() | Read() | Lookup() | Window() | Merge():
            return rel
        case Filter(predicate=predicate):
            return changed(rel, predicate=change(predicate, below))
        case Project(items=items):
            return changed(rel, items=named(items))
        case Rank(order=order):
            return changed(rel, order=tuple((change(e, below), down) for e, down in order))
        case Aggregate(keys=keys, aggs=aggs):
            return changed(rel, keys=named(keys), aggs=aggregates(aggs))
        case Running(keys=keys, aggs=aggs, closing=closing):
            closes = change(closing, (whole,))
            return changed(rel, keys=named(keys), aggs=aggregates(aggs), closing=closes)
        case Join(equalities=equalities, residual=residual):
            left, right = below
            pairs = tuple((change(a, (left,)), change(b, (right,))) for a, b in equalities)
            rest = None if residual is None else change(residual, below)
            return changed(rel, equalities=pairs, residual=rest)
        case _:
            assert_never(rel)
