"""Streams of a Plan as GSQL again.

In: a relation. Out: a query of the Script whose text says the same, as far as a query can:
SELECT .. FROM .. WHERE .. GROUP BY .. HAVING, windows, joins, merges. Hidden columns are not named,
for a query carries them by itself; where an operator has no words (a semi-join), there is no text.
Expressions are written with what each column is called in the text around them: operators as
operators, all else as calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final, TypeAlias, get_args

from terascope.analysis.order import knows_place
from terascope.connectors.base import interface_of
from terascope.functions.base import Scalar, Value
from terascope.functions.members import Members
from terascope.functions.roles import Narrowing
from terascope.plan.expr import (
    AggCall,
    Call,
    Case,
    Cast,
    Col,
    Expr,
    Lit,
    Param,
    conjuncts,
    is_constant,
)
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Filter,
    Join,
    Lookup,
    Merge,
    Named,
    Project,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    Sliding,
    Window,
    WindowSpec,
    walk,
)
from terascope.syntax import ast
from terascope.syntax.printer import print_statement
from terascope.types import BIAS, Type

Scope: TypeAlias = Mapping[str, ast.Expr]
"""Column -> how it is written."""

BINARY: Final[Mapping[str, ast.BinaryOp]] = {
    **{op.lower(): op for op in get_args(ast.BinaryOp)},
    "mask": "&",
}
KINDS: Final[Mapping[str, ast.LiteralKind]] = {k.upper(): k for k in get_args(ast.LiteralKind)}
JOINS: Final[Mapping[str, ast.JoinKind]] = {kind.lower(): kind for kind in get_args(ast.JoinKind)}
EDGES: Final = (WSTART, WEND)


class NoWords(Exception):
    """The algebra has something that the language cannot say."""


def gsql(name: str, rel: Rel, visible: bool = True) -> str:
    """A stream as a statement of GSQL; empty when it cannot be said."""
    define = () if visible else (ast.Property("visibility", "internal"),)
    if any(isinstance(r, Aggregate) and r.emit_empty is not None for r in walk(rel)):
        define = (*define, ast.Property("empty", "emit"))
    try:
        return print_statement(ast.QueryStatement(query_of(rel), name, define))
    except NoWords:
        return ""


def query_of(rel: Rel) -> ast.Query:
    """The query that computes a relation.

    Raises:
        NoWords: there is none.
    """
    return merged(rel) if isinstance(rel, Merge) else SelectWriter().select(rel)


@dataclass(frozen=True)
class Below:
    """An item of FROM, and the text of each of its columns."""

    item: ast.FromItem
    scope: Scope


@dataclass
class SelectWriter:
    """One SELECT. Inputs without a name are numbered."""

    numbered: int = 0

    def select(self, rel: Rel) -> ast.Select:
        items, rel = projection(rel)
        order, limit, rel = ranking(rel)
        having, rel = conditions_over_groups(rel)
        grouping = rel if isinstance(rel, Aggregate | Running) else None
        where, window, source = under(rel if grouping is None else grouping.source)
        if (
            isinstance(grouping, Aggregate)
            and isinstance(grouping.emit_empty, WindowSpec)
            and window is None
        ):
            raise NoWords("empty windows of slices that are keys")
        below = self.below(source, window)
        scope = below.scope if grouping is None else group_scope(grouping, below.scope)
        written_items = tuple(item(name, expr, scope) for name, expr in items)
        if not written_items:
            raise NoWords("no visible column")
        closing = written(grouping.closing, scope) if isinstance(grouping, Running) else None
        return ast.Select(
            written_items,
            ast.From((below.item,)),
            where=all_of(tuple(written(c, below.scope) for c in where)),
            group_by=group_by(grouping, below.scope, window is not None),
            having=all_of(tuple(written(c, scope) for c in having)),
            closing_when=closing,
            order_by=tuple(ast.OrderItem(written(e, scope), d) for e, d in order),
            limit=limit,
        )

    # ---- FROM

    def below(self, rel: Rel, window: ast.Window | None) -> Below:
        if isinstance(rel, Join) and window is None:
            return self.join(rel)
        names = (*rel.names, *(() if window is None else EDGES))
        return Below(from_item(rel, None, window), {n: ast.Name(n) for n in names})

    def side(self, rel: Rel) -> Below:
        """An input of a join: its columns are called `alias.column`."""
        if isinstance(rel, Join):
            return self.join(rel)
        alias = common_alias(rel)
        if alias is None or not isinstance(rel, Project):
            self.numbered += 1
            alias = f"input{self.numbered}"
            scope = {name: ast.Name(name, alias) for name in rel.names}
            return Below(ast.SubqueryRef(query_of(rel), alias), scope)
        inner: Rel = Project(rel.source, tuple((unqualified(n), e) for n, e in rel.items))
        plain = all(isinstance(e, Col) and e.name == unqualified(n) for n, e in rel.items)
        if plain and isinstance(rel.source, Scan | Read | Lookup):
            inner = rel.source
        scope = {n: ast.Name(unqualified(n), alias) for n, _ in rel.items}
        return Below(from_item(inner, alias), scope)

    def join(self, rel: Join) -> Below:
        if rel.kind not in JOINS:
            raise NoWords(rel.kind)
        left, right = self.side(rel.left), self.side(rel.right)
        scope = {**left.scope, **right.scope}
        pairs = [
            ast.Binary("=", written(a, left.scope), written(b, right.scope))
            for a, b in rel.equalities
        ]
        rest = conjuncts(rel.residual) if rel.residual is not None else ()
        condition = all_of((*pairs, *(written(c, scope) for c in rest)))
        # What a join fills is SQL's NULL only as far as the query says so above it.
        filled = bool(rel.fills) and rel.kind != "inner"
        made = ast.JoinRef(JOINS[rel.kind], left.item, right.item, condition, filled)
        return Below(made, scope)


# ---- taking a relation apart, from the top -------------------------------------------------------


def projection(rel: Rel) -> tuple[list[Named], Rel]:
    """The visible columns of a query, and what they are made of."""
    if isinstance(rel, Project):
        return [(n, e) for n, e in rel.items if not is_hidden(n)], rel.source
    return [(f.name, Col(f.name, f.type)) for f in rel.fields if not is_hidden(f.name)], rel


def ranking(rel: Rel) -> tuple[list[tuple[Expr, bool]], int | None, Rel]:
    """ORDER BY without the columns that only break ties."""
    if not isinstance(rel, Rank):
        return [], None, rel
    names = rel.source.names
    if knows_place(rel.source):
        names = tuple(n for n in names if is_hidden(n) or n in EDGES)
    ties = {Col(n, rel.source.type_of(n)) for n in names}
    given = list(rel.order)
    if {expr for expr, _ in given[len(given) - len(names) :]} == ties:
        given = given[: len(given) - len(names)]
    return given, rel.limit, rel.source


def conditions_over_groups(rel: Rel) -> tuple[tuple[Expr, ...], Rel]:
    if isinstance(rel, Filter) and isinstance(rel.source, Aggregate | Running):
        return conjuncts(rel.predicate), rel.source
    return (), rel


def under(rel: Rel) -> tuple[tuple[Expr, ...], ast.Window | None, Rel]:
    """Take off WHERE and the window, in either order."""
    where: tuple[Expr, ...] = ()
    window: ast.Window | None = None
    while isinstance(rel, Filter) or (isinstance(rel, Window) and window is None):
        if isinstance(rel, Filter):
            where = (*conjuncts(rel.predicate), *where)
        else:
            window = window_of(rel)
        rel = rel.source
    return where, window, rel


def window_of(rel: Window) -> ast.Window:
    on = None if rel.elements else rel.on
    if isinstance(rel.spec, Sliding):
        return ast.RangeWindow(ast.Duration(rel.spec.range), ast.Duration(rel.spec.slide), on)
    return ast.SliceWindow(tuple(map(ast.Duration, rel.spec.lengths)), on)


# ---- groups --------------------------------------------------------------------------------------


def group_scope(rel: Aggregate | Running, below: Scope) -> dict[str, ast.Expr]:
    """The texts of keys and aggregates in SELECT and HAVING."""
    keys = {name: key_item(name, expr, below) for name, expr in rel.keys}
    named = {n: i.expr if i.alias is None else ast.Name(i.alias) for n, i in keys.items()}
    return {**named, **{name: aggregate(call, below) for name, call in rel.aggs}}


def group_by(rel: Aggregate | Running | None, below: Scope, windowed: bool) -> ast.GroupBy | None:
    """The keys; the edges of a window are keys by themselves."""
    if rel is None:
        return None
    items = {
        name: key_item(name, expr, below)
        for name, expr in rel.keys
        if not (windowed and isinstance(expr, Col) and expr.name in EDGES)
    }
    sets = rel.sets if isinstance(rel, Aggregate) else None
    if sets is None:
        return ast.GroupBy(tuple(items.values())) if items else None
    always = {n for n in items if all(n in s for s in sets)}
    varying = tuple(tuple(items[n] for n in s if n in items and n not in always) for s in sets)
    plain = tuple(i for n, i in items.items() if n in always)
    return ast.GroupBy((*plain, ast.GroupingFunction("GROUPING_SETS", varying)))


def key_item(name: str, expr: Expr, below: Scope) -> ast.Item:
    """A key with its name; one that is called by its own text needs none."""
    value = written(expr, below)
    plain = not name.isidentifier() or (isinstance(value, ast.Name) and value.name == name)
    return ast.Item(value, None if plain else name)


def item(name: str, expr: Expr, scope: Scope) -> ast.Item:
    value = written(expr, scope)
    return ast.Item(value, None if value == ast.Name(name) else name)


# ---- names ---------------------------------------------------------------------------------------


def from_item(rel: Rel, alias: str | None, window: ast.Window | None = None) -> ast.FromItem:
    match rel:
        case Scan(interfaces=interfaces, protocol=protocol):
            sources = dict.fromkeys(map(interface_of, interfaces))
            where, several = "+".join(sources) or None, len(sources) > 1
            return ast.StreamRef(protocol, where, several, alias, window)
        case Read(stream=name) | Lookup(name=name):
            return ast.StreamRef(name, alias=alias, window=window)
        case _:
            return ast.SubqueryRef(query_of(rel), alias, window)


def is_hidden(name: str) -> bool:
    return name.startswith("#")


def unqualified(name: str) -> str:
    mark = "#" if is_hidden(name) else ""
    return mark + name.lstrip("#").partition(".")[2]


def common_alias(rel: Rel) -> str | None:
    """The alias before the names of all columns."""
    found = {n.lstrip("#").partition(".")[0] if "." in n else None for n in rel.names}
    return found.pop() if len(found) == 1 else None


def merged(rel: Merge) -> ast.MergeQuery:
    """MERGE takes its columns by position."""
    place = rel.names.index(rel.on)
    fields: list[ast.Name] = []
    sources: list[ast.FromItem] = []
    for number, source in enumerate(rel.sources, 1):
        alias = f"input{number}"
        fields.append(ast.Name(source.names[place], alias))
        sources.append(from_item(source, alias))
    return ast.MergeQuery(tuple(fields), tuple(sources), rel.slack or None)


# ---- expressions ---------------------------------------------------------------------------------


def written(expr: Expr, scope: Scope) -> ast.Expr:
    match expr:
        case Col(name):
            return scope[name]
        case Lit(value, type):
            return literal(value, type)
        case Param(name):
            return ast.ParameterRef(name)
        case Call(args=(operand, Lit(value=Members() as members, type=type))):
            nulls = (None,) if members.has_null else ()
            items = tuple(literal(value, type) for value in (*members.values, *nulls))
            return ast.InList(written(operand, scope), items)
        case Cast(operand, Type.WIDE) if operand.type.is_integer:
            return written(operand, scope)  # whoever reads it finds out that it must be
        case Call(Scalar(role=Narrowing()), (operand,)):
            return written(operand, scope)
        case Cast(operand, type):
            return ast.CastExpr(written(operand, scope), type.label)
        case Case(branches, otherwise):
            pairs = tuple((written(c, scope), written(v, scope)) for c, v in branches)
            return ast.CaseExpr(None, pairs, written(otherwise, scope))
        case Call(function, args):
            return call(function.name, args, scope)


def call(name: str, args: tuple[Expr, ...], scope: Scope) -> ast.Expr:
    parts = tuple(written(a, scope) for a in args)
    if name == "/" and is_constant(args[1]) and all(a.type.is_integer for a in args):
        # Between integers, / by a constant would round down.
        parts = (ast.CastExpr(parts[0], Type.FLOAT.value), parts[1])
    if name in BINARY and len(parts) >= 2:
        return joined(BINARY[name], parts)
    match name, parts:
        case "not", (ast.IsNull(operand, False),):
            return ast.IsNull(operand, True)
        case "not", (operand,):
            return ast.Unary("NOT", operand)
        case "neg", (operand,):
            return ast.Unary("-", operand)
        case "~", (operand,):
            return ast.Unary("~", operand)
        case "is_null", (operand,):
            return ast.IsNull(operand)
        case "in", (operand, *items):
            return ast.InList(operand, tuple(items))
        case "like", (operand, pattern):
            return ast.Like(operand, pattern)
        case _:
            return ast.CallExpr(name, parts)


def aggregate(agg: AggCall, scope: Scope) -> ast.Expr:
    args = tuple(written(a, scope) for a in (*agg.args, *agg.written_parameters))
    return ast.CallExpr(
        agg.function.name, args, star=not args, distinct=agg.distinct, strategy=agg.strategy
    )


def literal(value: Value, type: Type) -> ast.Expr:
    if value is None:
        return ast.Literal_("null", None)
    if type is Type.WIDE:
        return ast.Literal_("int", value + BIAS)
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        return ast.Unary("-", literal(-value, type))
    return ast.Literal_(KINDS.get(type.value, "int"), value)


def all_of(conditions: tuple[ast.Expr, ...]) -> ast.Expr | None:
    """Their AND; None of none."""
    return joined("AND", conditions) if conditions else None


def joined(operator: ast.BinaryOp, parts: tuple[ast.Expr, ...]) -> ast.Expr:
    return reduce(lambda left, right: ast.Binary(operator, left, right), parts)
