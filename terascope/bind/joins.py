"""Joins: all spellings become one tree of two-way joins (dissertation 3.1.3).

In: the leaves of a FROM clause, its ON conditions and WHERE. Out: a relation whose columns are
called `alias.column`, with each condition at the join that needs it. Without ON, the WHERE
conjuncts that name both sides are the join condition and those of one side filter that side first;
with ON, WHERE filters what the joins give, as in SQL, and a column of a missing side is NULL
(scope.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, product

from terascope.analysis.bounded import is_timeless, join_bound
from terascope.analysis.slopes import Orders
from terascope.bind.context import BindContext
from terascope.bind.scope import (
    FromClause,
    FromLeaf,
    Scope,
    ScopeInput,
    as_written,
    marker_name,
    merged,
    on_conditions,
    scope_of_where,
)
from terascope.bind.windows import range_conditions, ticks
from terascope.diagnostic import Mistake, Span, each, mistake
from terascope.functions.base import Scalar
from terascope.functions.roles import Addition
from terascope.plan.build import TRUE, call, conjunction
from terascope.plan.expr import (
    Call,
    Cast,
    Col,
    Expr,
    Lit,
    columns_of,
    conjuncts,
    equated_sides,
    substitute,
    where_present,
)
from terascope.plan.rel import Field, Filter, Join, JoinKind, Named, Project, Rel
from terascope.syntax import ast
from terascope.types import BIAS, Type

BindCondition = Callable[[ast.Expr, Scope], Expr | None]
KINDS: dict[str, JoinKind] = {
    "INNER": "inner",
    "LEFT": "left",
    "RIGHT": "right",
    "FULL": "full",
    "WATCHLIST": "inner",
    "FILTER": "semi",
}
DEFAULTS = {Type.STRING: "", Type.BINARY: b"", Type.BOOL: False, Type.FLOAT: 0.0, Type.WIDE: -BIAS}


def qualified(qualifier: str, name: str) -> str:
    return f"#{qualifier}.{name[1:]}" if name.startswith("#") else f"{qualifier}.{name}"


def qualify(leaf: FromLeaf) -> Project:
    """The leaf with its columns called `alias.column`, so that no two inputs share a name."""
    items = tuple((qualified(leaf.qualifier, f.name), Col(f.name, f.type)) for f in leaf.rel.fields)
    return Project(leaf.rel, items, span=leaf.span)


def join_leaves(
    context: BindContext,
    clause: ast.From,
    leaves: Sequence[FromLeaf],
    where: ast.Expr | None,
    bind_condition: BindCondition,
    outer_fill: str,
) -> FromClause:
    """All inputs of a FROM clause joined."""
    repeated = [q for q, n in Counter(leaf.qualifier for leaf in leaves).items() if n > 1]
    if repeated:
        message = f"two inputs are called '{repeated[0]}'"
        help = f"give them aliases: {repeated[0]} a, {repeated[0]} b"
        raise mistake("duplicate-alias", message, clause.span, help=help)
    inputs = tuple(
        ScopeInput(
            leaf.qualifier,
            tuple(
                (f.name, Field(qualified(leaf.qualifier, f.name), f.type)) for f in leaf.rel.fields
            ),
        )
        for leaf in leaves
    )
    scope = Scope(inputs)
    windowed = any(leaf.windowed for leaf in leaves)
    pending: list[Expr] = []
    if where is not None:
        bound = bind_condition(where, scope_of_where(clause, where, scope))
        if bound is None:
            return FromClause(unconditional(leaves), scope, windowed)
        pending = list(conjuncts(bound))
    has_on = any(True for _ in on_conditions(clause.items))
    tree = JoinTree(
        context, scope, bind_condition, outer_fill, iter(leaves), leaves, pending, has_on
    )
    rel = context.attempt(tree.fold, clause)
    if rel is None:
        return FromClause(unconditional(leaves), scope, windowed)
    if tree.pending:
        kept = tree.as_written(tree.pending)
        rel = Filter(rel, conjunction(kept), span=where.span if where else clause.span)
    # A filter join only asks whether there is a partner: its columns are not part of the result.
    seen = inputs[:1] if clause.kind == "FILTER" else inputs
    return FromClause(rel, Scope(seen, merged(tree.equated), tree.seen), windowed)


def unconditional(leaves: Sequence[FromLeaf]) -> Rel:
    """All inputs side by side: something to find further mistakes with, never to run."""
    rel: Rel = qualify(leaves[0])
    for leaf in leaves[1:]:
        rel = Join(rel, qualify(leaf), "inner", ())
    return rel


@dataclass
class JoinTree:
    """The state of folding one FROM clause."""

    context: BindContext
    scope: Scope
    bind_condition: BindCondition
    outer_fill: str
    leaves: Iterator[FromLeaf]
    all_leaves: Sequence[FromLeaf]
    pending: list[Expr]
    """Conjuncts of WHERE that no join so far could take as a condition."""
    has_on: bool
    equated: list[frozenset[str]] = field(default_factory=list)
    markers: dict[str, str] = field(default_factory=dict)
    """The column that marks rows of an input that SQL's joins may miss, by column of the input."""
    seen: dict[str, Expr] = field(default_factory=dict)
    """The expression that a filled column is for the user, by SQL's meaning."""

    def fold(self, clause: ast.From) -> Rel:
        """Join all items of the clause."""
        kind = KINDS[clause.kind or "INNER"]
        nullable, misses_right = misses(kind)
        first, *others = clause.items
        sides = ((first, nullable), *((item, misses_right) for item in others))
        rel, *rights = each(lambda side: self.build(*side, False), sides)
        for right in rights:
            extra = self.filter_condition(clause, rel, right) if kind == "semi" else []
            rel = self.join(rel, right, kind, None, clause.span, nullable, extra)
        return rel

    def build(self, item: ast.FromItem, nullable: bool, marked: bool) -> Rel:
        """`marked`: rows without this item are made by a join of SQL's meaning."""
        if not isinstance(item, ast.JoinRef):
            return self.leaf(nullable, marked)
        kind = KINDS[item.kind]
        sql = item.condition is not None and not item.gsql and self.outer_fill == "null"
        sides = zip((item.left, item.right), misses(kind), strict=True)
        left, right = each(
            lambda side: self.build(side[0], nullable or side[1], marked or (sql and side[1])),
            sides,
        )
        condition: Expr | None = None
        if item.condition is not None:
            condition = self.bind_condition(item.condition, self.scope)
            if condition is None:
                raise Mistake
        made = self.join(left, right, kind, condition, item.span, nullable, [])
        # The columns that the join fills are NULL for the user where their input is missing.
        for name in (name for name, _ in made.fills if sql and name in self.markers):
            column = Col(name, made.type_of(name))
            self.seen[name] = where_present(column, Col(self.markers[name], Type.BOOL))
        return made

    def as_written(self, conditions: Sequence[Expr]) -> list[Expr]:
        """Conditions over what joins gave so far, by SQL's meaning of the columns they fill."""
        equated = merged(self.equated)
        parts = (part for c in conditions for part in as_written(c, equated, self.seen))
        return list(dict.fromkeys(parts))

    def leaf(self, nullable: bool, marked: bool) -> Rel:
        leaf = next(self.leaves)
        rel = qualify(leaf)
        if marked:
            name = qualified(leaf.qualifier, marker_name(leaf.rel.names))
            self.markers |= dict.fromkeys(rel.names, name)
            rel = replace(rel, items=(*rel.items, (name, TRUE)))
        if self.has_on and nullable:
            return rel
        own = self.take(lambda used: used <= set(rel.names))
        return Filter(rel, conjunction(own), span=leaf.span) if own else rel

    def take(self, fits: Callable[[frozenset[str]], bool]) -> list[Expr]:
        """Remove and return the pending conjuncts whose columns fit."""
        taken = [c for c in self.pending if columns_of(c) and fits(columns_of(c))]
        self.pending = [c for c in self.pending if c not in taken]
        return taken

    def join(
        self,
        left: Rel,
        right: Rel,
        kind: JoinKind,
        on: Expr | None,
        span: Span,
        nullable: bool,
        extra: list[Expr],
    ) -> Join:
        conditions = [*extra, *self.range_conditions(left, right)]
        if on is not None:
            conditions += conjuncts(on)
        elif not self.has_on or (kind == "inner" and not nullable):
            both = set(left.names) | set(right.names)
            conditions += self.take(lambda used: used <= both)
        conditions = self.as_written(conditions)
        equalities, residual = split_condition(conditions, left, right)
        self.equated += [
            frozenset({a.name, b.name})
            for a, b in equalities
            if isinstance(a, Col) and isinstance(b, Col)
        ]
        made = Join(
            left,
            right,
            kind,
            equalities,
            conjunction(residual) if residual else None,
            fills_of(kind, left, right, equalities, self.outer_fill),
            span=span,
        )
        self.check_bounded(made)
        return made

    def range_conditions(self, left: Rel, right: Rel) -> list[Expr]:
        """The conditions of windows without SLIDE on the inputs of both sides."""
        inputs = [
            [f for f in self.all_leaves if qualified(f.qualifier, f.rel.names[0]) in side.names]
            for side in (left, right)
        ]
        pairs = product(*inputs)
        return [found for a, b in pairs for found in range_conditions(self.context, a, b)]

    def check_bounded(self, join: Join) -> None:
        if is_timeless(join.left) or is_timeless(join.right):
            return
        left, right = self.context.orders(join.left), self.context.orders(join.right)
        if join_bound(join, left, right) is not None:
            return
        raise mistake(
            "unbounded-join",
            "the join would have to remember its inputs for ever",
            join.span,
            notes=(
                f"ordered columns of the left side: {shown(left)}",
                f"ordered columns of the right side: {shown(right)}",
            ),
            help="relate an ordered column of each side: a.tb = b.tb, "
            "or b.ts BETWEEN a.ts - 10 AND a.ts + 10",
        )

    def filter_condition(self, clause: ast.From, left: Rel, right: Rel) -> list[Expr]:
        """FILTER_JOIN(field, range): a partner seen within the last `range` ticks of `field`."""
        name, length = clause.filter_field, clause.filter_range
        if name is None or length is None:
            return []
        sides = [next((n for n in r.names if n.endswith(f".{name}")), None) for r in (left, right)]
        if sides[0] is None or sides[1] is None:
            raise mistake("unknown-column", f"both inputs need a column '{name}'", clause.span)
        orders = self.context.orders(left)
        unit = orders[sides[0]].clock if sides[0] in orders else None
        amount = ticks(length, unit, name)
        mine = Col(sides[0], left.type_of(sides[0]))
        other = Col(sides[1], right.type_of(sides[1]))
        oldest = call("-", mine, Lit(amount, Type.INT))
        return [call("<=", other, mine), call(">=", other, oldest)]


def shown(orders: Orders) -> str:
    return ", ".join(n for n in orders if not n.startswith("#")) or "none"


def split_condition(
    conditions: Sequence[Expr], left: Rel, right: Rel
) -> tuple[tuple[tuple[Expr, Expr], ...], list[Expr]]:
    """Equalities between the sides, as (left, right), and everything else."""
    sides = frozenset(left.names), frozenset(right.names)
    pairs = [(condition, equated_sides(condition, *sides)) for condition in conditions]
    equalities = tuple(pair for _, pair in pairs if pair is not None)
    return equalities, [condition for condition, pair in pairs if pair is None]


def fills_of(
    kind: JoinKind,
    left: Rel,
    right: Rel,
    equalities: Sequence[tuple[Expr, Expr]],
    outer_fill: str,
) -> tuple[Named, ...]:
    """Columns equated by the condition take the present side's value in outer joins."""
    fills: dict[str, Expr] = {}
    missing = list(compress((left, right), misses(kind)))
    for a, b in equalities:
        for unknown, known in ((a, b), (b, a)):
            if any(columns_of(unknown) <= side.all_names for side in missing):
                fills |= {n: e for n, e in solve(unknown, known).items() if n not in fills}
    for side in missing:
        spread(side, fills)
    if outer_fill == "default":
        for absent in (column for side in missing for column in side.fields):
            if absent.name not in fills and not absent.hidden:
                fills[absent.name] = default_of(absent.type)
    return tuple(fills.items())


def misses(kind: JoinKind) -> tuple[bool, bool]:
    """Whether a join has rows without its left side, and without its right side."""
    return kind in ("right", "full"), kind in ("left", "full")


def spread(side: Rel, fills: dict[str, Expr]) -> None:
    """Fill columns that the joins inside a missing side equate with a filled column."""
    rules = [
        rule
        for a, b in equalities_in(side)
        for rule in (*solve(a, b).items(), *solve(b, a).items())
    ]
    while found := {
        name: substitute(value, fills)
        for name, value in rules
        if name not in fills and columns_of(value) <= fills.keys()
    }:
        fills |= found


def equalities_in(rel: Rel) -> Iterator[tuple[Expr, Expr]]:
    """The equalities of all joins of the same FROM clause; its leaves are projections."""
    match rel:
        case Join(left=left, right=right, equalities=equalities, kind=kind):
            yield from equalities_in(left)
            if kind != "semi":
                yield from equalities
                yield from equalities_in(right)
        case Filter(source=source):
            yield from equalities_in(source)


def solve(unknown: Expr, known: Expr) -> dict[str, Expr]:
    """From unknown = known, the column `unknown` stands for: `c`, `c + n` or `c - n`."""
    match unknown:
        case Col(name, type):
            renames = known.type.is_integer and type.is_integer
            return {name: known if known.type is type else Cast(known, type, renames)}
        case Cast(operand, Type.WIDE) if operand.type.is_unsigned:
            return solve(operand, known)
        case Call(Scalar(role=Addition((1, sign))), (Col() as column, Lit() as shift)):
            return solve(column, call("-" if sign > 0 else "+", known, shift))
        case _:
            return {}


def default_of(type: Type) -> Expr:
    """GS-Lite has no NULL: the missing side is zero or empty."""
    if type.is_address:
        return Lit(b"\x04\x00\x00\x00\x00", type)
    return Lit(DEFAULTS.get(type, 0), type)
