"""The Script: what a GSQL file says, word for word, before anything is looked up.

Every node is immutable and carries the span of text it came from. Spans do not take part in
equality, so that parse(print(script)) == script holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, dataclass_transform

from terascope.diagnostic import NOWHERE, Span


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class SyntaxNode:
    """A node of the Script: every subclass is a frozen dataclass."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


def children(node: SyntaxNode) -> Iterator[SyntaxNode]:
    pending: list[Any] = [getattr(node, each.name) for each in fields(node)]
    while pending:
        value = pending.pop()
        if isinstance(value, SyntaxNode):
            yield value
        elif isinstance(value, tuple):
            pending += value


def walk(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """A node and all nodes below it, without recursion: text may nest as deep as it likes."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending += children(node)


# ---- expressions ---------------------------------------------------------------------------------


class Name(SyntaxNode):
    """A column, perhaps qualified: `srcIP`, `S1.tb`."""

    name: str
    qualifier: str | None = None


LiteralKind = Literal["int", "float", "string", "bool", "null", "ip", "ipv6", "binary"]


class Literal_(SyntaxNode):
    """A constant. `value` is already in held form (see terascope.types); unsigned/long suffixes set
    `type_name`.
    """

    kind: LiteralKind
    value: int | float | str | bytes | bool | None
    type_name: str | None = None
    """UINT for 17UL, ULLONG for 5ULL, LLONG for 5LL; None for a plain literal."""
    hexadecimal: bool = field(default=False, compare=False, repr=False)
    """Written as 0x..: masks are printed the way they were written."""


class ParameterRef(SyntaxNode):
    """`$name`: given at start, changeable while running."""

    name: str


class ConstantRef(SyntaxNode):
    """`#name` or `#NAME#`: a constant of the DEFINE block."""

    name: str


class InterfaceProperty(SyntaxNode):
    """`@name`: a property of the interface the tuple came from."""

    name: str


class Unary(SyntaxNode):
    op: Literal["-", "~", "NOT"]
    operand: Expr


BinaryOp = Literal[
    "OR", "AND", "=", "!=", "<", "<=", ">", ">=",
    "|", "^", "&", "<<", ">>", "+", "-", "*", "/", "%", "DIV", "||",
]  # fmt: skip


class Binary(SyntaxNode):
    op: BinaryOp
    left: Expr
    right: Expr


class Between(SyntaxNode):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False


class InList(SyntaxNode):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


class Like(SyntaxNode):
    operand: Expr
    pattern: Expr
    negated: bool = False


class IsNull(SyntaxNode):
    operand: Expr
    negated: bool = False


class CaseExpr(SyntaxNode):
    """`CASE [operand] WHEN c THEN v ... [ELSE v] END`."""

    operand: Expr | None
    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


class CastExpr(SyntaxNode):
    operand: Expr
    type_name: str


class CallExpr(SyntaxNode):
    """A function or aggregate, called with () or []. `name` is as written; matching ignores case.

    `super_` marks GS-Lite's superaggregates, written `count_distinct$(x)`. `strategy` is the way to
    keep an aggregate's states, written `f(x) WITH strategy '...'`; empty when it is not given.
    """

    name: str
    args: tuple[Expr, ...]
    star: bool = False
    distinct: bool = False
    super_: bool = False
    strategy: str = ""


Expr: TypeAlias = (
    Name | Literal_ | ParameterRef | ConstantRef | InterfaceProperty | Unary | Binary | Between
    | InList | Like | IsNull | CaseExpr | CastExpr | CallExpr
)  # fmt: skip


# ---- windows -------------------------------------------------------------------------------------


class Duration(SyntaxNode):
    """A length of time: '18 sec', 15 minutes, or a bare number in units of the clock field."""

    amount: int | float
    unit: Literal["ns", "us", "ms", "s", "min", "h", "d"] | None = None


class RangeWindow(SyntaxNode):
    """`[RANGE r SLIDE s ON field]`; no slide means non-periodic."""

    range: Duration
    slide: Duration | None
    on: str | None = None


class SliceWindow(SyntaxNode):
    """`[SLICES s1, s2, ... ON field]`."""

    slices: tuple[Duration, ...]
    on: str | None = None


Window: TypeAlias = RangeWindow | SliceWindow


# ---- FROM ----------------------------------------------------------------------------------------


class StreamRef(SyntaxNode):
    """`TCP`, `eth0.TCP`, `[main].TCP`, `flows`, `lib/flows`, with alias and window."""

    name: str
    interface: str | None = None
    interface_set: bool = False
    alias: str | None = None
    window: Window | None = None


class SubqueryRef(SyntaxNode):
    query: Query
    alias: str | None = None
    window: Window | None = None


JoinKind = Literal["INNER", "LEFT", "RIGHT", "FULL"]


class JoinRef(SyntaxNode):
    """An infix join: `A LEFT OUTER JOIN B ON ...`.

    `gsql`: an outer join in GSQL's one word, such as `A OUTER_JOIN B` (FULL), which has GSQL's
    meaning with ON, too.
    """

    kind: JoinKind
    left: FromItem
    right: FromItem
    condition: Expr | None = None
    gsql: bool = False


FromItem: TypeAlias = StreamRef | SubqueryRef | JoinRef

FromKind = Literal["INNER", "LEFT", "RIGHT", "FULL", "WATCHLIST", "FILTER"]


class From(SyntaxNode):
    """The whole FROM clause. `kind` is GS-Lite's word before FROM (None: a plain FROM, commas mean
    inner join).

    `filter_field` and `filter_range` belong to `FILTER_JOIN(field, range)`.
    """

    items: tuple[FromItem, ...]
    kind: FromKind | None = None
    filter_field: str | None = None
    filter_range: Duration | None = None


# ---- SELECT --------------------------------------------------------------------------------------


class Item(SyntaxNode):
    """`expr [AS name]` of SELECT or GROUP BY."""

    expr: Expr
    alias: str | None = None


class Star(SyntaxNode):
    """`*` or `S.*`."""

    qualifier: str | None = None


class GroupingFunction(SyntaxNode):
    """`CUBE(..)`, `ROLLUP(..)`, `GROUPING_SETS((..),(..))` within GROUP BY.

    CUBE and ROLLUP hold one item list; GROUPING_SETS one list per set.
    """

    kind: Literal["CUBE", "ROLLUP", "GROUPING_SETS"]
    sets: tuple[tuple[Item, ...], ...]


GroupItem: TypeAlias = Item | GroupingFunction


class GroupBy(SyntaxNode):
    items: tuple[GroupItem, ...]


class OrderItem(SyntaxNode):
    expr: Expr
    descending: bool = False


class Select(SyntaxNode):
    items: tuple[Item | Star, ...]
    source: From
    distinct: bool = False
    where: Expr | None = None
    group_by: GroupBy | None = None
    every: Duration | None = None
    supergroup: tuple[Item, ...] = ()
    having: Expr | None = None
    cleaning_when: Expr | None = None
    cleaning_by: Expr | None = None
    closing_when: Expr | None = None
    order_by: tuple[OrderItem, ...] = ()
    limit: int | None = None


class MergeQuery(SyntaxNode):
    """`MERGE R.ts : S.ts [SLACK n] FROM ...`; columns match by position."""

    fields: tuple[Name, ...]
    sources: tuple[FromItem, ...]
    slack: int | None = None


class CommonTable(SyntaxNode):
    name: str
    query: Query


class With(SyntaxNode):
    tables: tuple[CommonTable, ...]
    body: Query


Query: TypeAlias = Select | MergeQuery | With


# ---- statements ----------------------------------------------------------------------------------


class Property(SyntaxNode):
    """`key 'value';` of a DEFINE block."""

    key: str
    value: str


class ParamDeclaration(SyntaxNode):
    """`name TYPE;` of a PARAM block."""

    name: str
    type_name: str


class QueryStatement(SyntaxNode):
    """A named query. `name` is what `QUERY name:` or DEFINE's query_name says; None for an unnamed
    one.
    """

    query: Query
    name: str | None = None
    define: tuple[Property, ...] = ()
    params: tuple[ParamDeclaration, ...] = ()


class FieldProperty(SyntaxNode):
    """`increasing`, `banded_increasing(5)`, `clock(ns)`, `key`: a word and perhaps an argument."""

    name: str
    argument: str | None = None


class AccessList(SyntaxNode):
    """`[foo, bar]`: the unpacking functions that GS-Lite calls before it reads a field."""

    names: tuple[str, ...]


class FieldDeclaration(SyntaxNode):
    name: str
    type_name: str | None = None
    properties: tuple[FieldProperty, ...] = ()
    accessor: str | None = None
    """GS-Lite's accessor function. Columns are bound by name, whatever it is, except by those that
    the catalog knows."""
    unpacked_by: AccessList | None = None


class ProtocolStatement(SyntaxNode):
    """A schema. GS-Lite says STREAM for the rows of a query, PROTOCOL for what is captured."""

    name: str
    parents: tuple[str, ...]
    fields: tuple[FieldDeclaration, ...]
    kind: Literal["PROTOCOL", "STREAM"] = "PROTOCOL"
    unpacked_by: AccessList | None = None


class UnpackFunction(SyntaxNode):
    """`name function cost;` of an UNPACK_FCNS block."""

    name: str
    function: str
    cost: int


class UnpackStatement(SyntaxNode):
    """`UNPACK_FCNS { name function cost; ... }`: how GS-Lite unpacks what is captured."""

    functions: tuple[UnpackFunction, ...]


class WatchlistStatement(SyntaxNode):
    """`DEFINE{query_name 'wl'; filename 'w.csv'; ...} WATCHLIST FIELDS { IP ip (key); ... }`."""

    fields: tuple[FieldDeclaration, ...]
    name: str | None = None
    define: tuple[Property, ...] = ()


class UdafDeclaration(SyntaxNode):
    """`int UDAF char(36) [low, high] approx_median(int)` (paper 1, 3.2)."""

    name: str
    returns: str
    scratchpad: str
    parameters: tuple[str, ...]
    sub_aggregate: str | None = None
    super_aggregate: str | None = None


class ExtractorDeclaration(SyntaxNode):
    """`int EXTR percentile_fcn approx_quantile percentile(int; int)`.

    The parameters before the semicolon go to the aggregate, those after it to the extracting
    function.
    """

    name: str
    returns: str
    function: str
    aggregate: str
    aggregate_parameters: tuple[str, ...]
    extra_parameters: tuple[str, ...] = ()


Statement: TypeAlias = (
    QueryStatement | ProtocolStatement | UnpackStatement | WatchlistStatement
    | UdafDeclaration | ExtractorDeclaration
)  # fmt: skip


class Script(SyntaxNode):
    statements: tuple[Statement, ...]
    unread: frozenset[str] = field(default=frozenset(), compare=False)
    """Names of statements that are not here, because they have mistakes."""
