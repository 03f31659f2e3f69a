"""Which columns can be named where.

In: the inputs of a FROM clause. Out: a column for a name, qualified or not, or the reason why not;
and the scope in which WHERE is bound. WHERE is bound before the joins are made, because its parts
may be conditions of these joins; so what ON and WHERE will equate is read from the text.

In SQL's outer joins a column of the side that is missing is NULL, also when the condition equates
it. The join itself fills equated columns with the value of the side that is there, as GSQL's own
joins do: that is what keeps time known in every row. What a user calls `b.k` in a join with ON is
the filled column where `b` is there, and NULL elsewhere. A marker that every row of `b` carries
tells which rows these are.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from terascope.connectors.packets.fields import canonical
from terascope.diagnostic import Mistake, Span, mistake
from terascope.functions import roles
from terascope.functions.base import Scalar
from terascope.plan.build import call
from terascope.plan.expr import (
    Call,
    Cast,
    Col,
    Expr,
    Lit,
    columns_of,
    marked_column,
    substitute,
    transform,
)
from terascope.plan.expr import walk as walk_expr
from terascope.plan.rel import Field, Rel
from terascope.syntax import ast

MOST_SHOWN = 16


@dataclass(frozen=True)
class ScopeInput:
    """One input of FROM: what it is called, and its columns as (name in queries, column below)."""

    qualifier: str
    columns: tuple[tuple[str, Field], ...]

    def find(self, name: str) -> Col | None:
        """The column of that name, or the one that is known under it as an alias."""
        found = [f for known, f in self.columns if known == name]
        if not found:
            found = [f for known, f in self.columns if canonical(known) == canonical(name)]
        return Col(found[0].name, found[0].type) if found else None


def is_among(names: Set[str], equated: Iterable[frozenset[str]]) -> bool:
    """Whether several columns are equated with each other."""
    return len(names) > 1 and any(names <= one for one in equated)


@dataclass(frozen=True)
class Scope:
    """All inputs of a query. `equated`: sets of columns that a join condition makes equal. `seen`:
    what a column is for the user, where a join of SQL's meaning fills it.
    `later_equated`: like `equated`, of outer joins that are not made yet: before them, only
    `coalesce` of such columns is the value they have in common.
    """

    inputs: tuple[ScopeInput, ...]
    equated: tuple[frozenset[str], ...] = ()
    seen: Mapping[str, Expr] = field(default_factory=dict)
    later_equated: tuple[frozenset[str], ...] = ()

    def find(self, node: ast.Name) -> Expr:
        """The column a name means."""
        if node.qualifier is not None:
            return self.as_seen(self.find_qualified(node, node.qualifier))
        found = self.find_all(node.name)
        if is_among({c.name for c in found}, self.later_equated):
            return call(
                "coalesce",
                *(c if c.type is found[0].type else Cast(c, found[0].type) for c in found),
            )
        column, shared = self.find_shared(node.name, node.span)
        return column if shared else self.as_seen(column)

    def find_shared(self, name: str, span: Span) -> tuple[Col, bool]:
        """The column that a name without qualifier means, and whether several inputs share it: then
        it is the value that they have in common.
        """
        found = self.find_all(name)
        if not found:
            raise mistake("unknown-column", f"no column '{name}'", span, self.suggest(name))
        if len(found) > 1 and not is_among({c.name for c in found}, self.equated):
            names = ", ".join(f"{i.qualifier}.{name}" for i in self.inputs if i.find(name))
            message = f"'{name}' may be any of {names}"
            raise mistake("ambiguous-column", message, span, "write which one you mean")
        return found[0], len(found) > 1

    def find_all(self, name: str) -> list[Col]:
        """The columns of that name, of all inputs."""
        return [c for i in self.inputs if (c := i.find(name)) is not None]

    def as_seen(self, column: Col) -> Expr:
        return self.seen.get(column.name, column)

    def find_qualified(self, node: ast.Name, qualifier: str) -> Col:
        source = next((i for i in self.inputs if i.qualifier == qualifier), None)
        if source is None:
            help = f"inputs here are: {', '.join(i.qualifier for i in self.inputs)}"
            raise mistake("unknown-column", f"no input is called '{qualifier}'", node.span, help)
        column = source.find(node.name)
        if column is None:
            message = f"'{qualifier}' has no column '{node.name}'"
            raise mistake("unknown-column", message, node.span, self.suggest(node.name, qualifier))
        return column

    def suggest(self, name: str, qualifier: str | None = None) -> str:
        inputs = [i for i in self.inputs if qualifier in (None, i.qualifier)]
        known = list(dict.fromkeys(k for i in inputs for k, f in i.columns if not f.hidden))
        lower = {k.lower(): k for k in known}
        close = difflib.get_close_matches(name.lower(), lower, n=1)
        if close:
            return f"did you mean '{lower[close[0]]}'?"
        shown = ", ".join(known[:MOST_SHOWN])
        return f"columns here are: {shown}" + (", ..." if len(known) > MOST_SHOWN else "")


@dataclass(frozen=True)
class FromLeaf:
    """A bound input of FROM."""

    rel: Rel
    qualifier: str
    windowed: bool
    span: Span
    held: ast.RangeWindow | None = None
    """A window without SLIDE, which says what a join relates (windows.py)."""


@dataclass(frozen=True)
class FromClause:
    """A bound FROM with its WHERE."""

    rel: Rel
    scope: Scope
    windowed: bool


# ---- names that several inputs share -------------------------------------------------------------


def scope_of_where(clause: ast.From, where: ast.Expr, scope: Scope) -> Scope:
    """The scope of a WHERE, which is bound before the joins are made. Columns that inner joins
    equate share their name at once. With outer joins, only what ON equates can be shared: without
    ON, a condition on a shared name might be one of the join or one of its result.
    """
    kinds = {clause.kind, *(join.kind for join in joins_in(clause.items))}
    if not kinds & {"LEFT", "RIGHT", "FULL"}:
        conditions = [*on_conditions(clause.items), where]
        pairs = [frozenset(pair.values()) for pair in equated_names(conditions, scope)]
        return replace(scope, equated=merged(pairs))
    order = iter(scope.inputs)
    pairs = [pair for item in clause.items for pair in equated_by(item, order, scope)[1]]
    return replace(scope, later_equated=merged(pairs))


def equated_by(
    item: ast.FromItem, inputs: Iterator[ScopeInput], scope: Scope
) -> tuple[set[str], list[frozenset[str]]]:
    """The qualifiers of an item of FROM, and the pairs of columns that its ON conditions equate. A
    condition on one side of an outer join does not hold in all rows: a pair is of both sides.
    """
    if not isinstance(item, ast.JoinRef):
        return {next(inputs).qualifier}, []
    (left, pairs), (right, more) = (
        equated_by(side, inputs, scope) for side in (item.left, item.right)
    )
    conditions = () if item.condition is None else (item.condition,)
    pairs += more
    pairs += [
        frozenset(pair.values())
        for pair in equated_names(conditions, scope)
        if left & pair.keys() and right & pair.keys()
    ]
    return left | right, pairs


def equated_names(conditions: Iterable[ast.Expr], scope: Scope) -> Iterator[dict[str, str]]:
    """The columns of two inputs that conditions equate, by qualifier. Mistakes in conditions are
    reported elsewhere.
    """
    for condition in conditions:
        match condition:
            case ast.Binary("AND", left, right):
                yield from equated_names((left, right), scope)
            case ast.Binary("=", ast.Name(_, str(of_a)) as a, ast.Name(_, str(of_b)) as b):
                with suppress(Mistake):
                    columns = scope.find_qualified(a, of_a), scope.find_qualified(b, of_b)
                    yield {of_a: columns[0].name, of_b: columns[1].name}


def on_conditions(items: Sequence[ast.FromItem]) -> Iterator[ast.Expr]:
    """The conditions of all joins that have ON."""
    return (join.condition for join in joins_in(items) if join.condition is not None)


def joins_in(items: Sequence[ast.FromItem]) -> Iterator[ast.JoinRef]:
    for item in items:
        if isinstance(item, ast.JoinRef):
            yield from joins_in((item.left, item.right))
            yield item


def merged(sets: Sequence[frozenset[str]]) -> tuple[frozenset[str], ...]:
    """Equalities closed transitively."""
    groups: list[frozenset[str]] = []
    for new in sets:
        touching = [g for g in groups if g & new]
        groups = [g for g in groups if not g & new]
        groups.append(new.union(*touching))
    return tuple(groups)


# ---- columns of a side that is missing -----------------------------------------------------------

STRICT: Final = (
    roles.Comparator, roles.Addition, roles.Multiplication, roles.Quotient, roles.FloorDivision,
    roles.Remainder, roles.BitOperation, roles.BitComplement, roles.ShiftLeft, roles.ShiftRight,
    roles.AddressMask,
)  # fmt: skip
"""Roles of operators that give NULL for a NULL."""


def marker_name(names: Collection[str]) -> str:
    """A name for the marker of an input that has these columns."""
    name = "here"
    while name in names:
        name += "_"
    return name


def as_written(
    condition: Expr, equated: Iterable[frozenset[str]], seen: Mapping[str, Expr]
) -> tuple[Expr, ...]:
    """A condition over what joins gave, as SQL means it, in conjuncts. `equated`: sets of columns
    that the joins equate; `seen`: what a filled column is for the user.

    The value that equated columns have in common is there in every row. It is a filled column that
    stays as it is, so it goes by another name until all other columns have become what is seen.
    """
    common: dict[str, Expr] = {}

    def named_apart(column: Col) -> Col:
        apart = Col(f"common:{column.name}", column.type)
        common[apart.name] = column
        return apart

    named = with_common_values(condition, equated, named_apart)
    return tuple(substitute(part, common) for part in in_rows_with(named, seen))


def in_rows_with(condition: Expr, seen: Mapping[str, Expr]) -> tuple[Expr, ...]:
    """A condition as SQL means it, in conjuncts; `seen`: what a filled column is for the user.

    A comparison of filled columns is kept as it is, so that it still relates times, and the input
    must be there.
    """
    used = sorted(columns_of(condition) & seen.keys())
    if not used:
        return (condition,)
    if not is_strict(condition):
        return (substitute(condition, seen),)
    marked = (marked_column(seen[name]) for name in used)
    return (condition, *dict.fromkeys(pair[0] for pair in marked if pair is not None))


def is_strict(condition: Expr) -> bool:
    """Whether a NULL in any column keeps the condition from being TRUE."""
    return isinstance(condition, Call) and all(
        isinstance(part, Col | Lit | Cast)
        or (isinstance(part, Call) and isinstance(part.function.role, STRICT))
        for part in walk_expr(condition)
    )


def with_common_values(
    expr: Expr,
    equated: Iterable[frozenset[str]],
    named: Callable[[Col], Col] = lambda column: column,
) -> Expr:
    """`coalesce(a.tb, b.tb)` of all columns that a join equates is the value that they have in
    common, in whatever order they stand: one of them is always there. `named`: how the column that
    holds it is called from here on.
    """
    groups = tuple(equated)

    def common(part: Expr) -> Expr:
        match part:
            case Call(Scalar(role=roles.Coalescing()), args, type):
                columns = [c for arg in args if (c := filled_column(arg)) is not None]
                names = frozenset(c.name for c in columns)
                if len(columns) == len(args) and names in groups and columns[0].type is type:
                    return named(columns[0])
        return part

    return transform(expr, common)


def filled_column(expr: Expr) -> Col | None:
    """The column itself, of what a user sees of it."""
    marked = marked_column(expr)
    if marked is not None:
        return marked[1]
    return expr if isinstance(expr, Col) else None
