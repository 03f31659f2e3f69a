"""Names without a prefix that several inputs of a join share: which columns ON and WHERE equate.

In: the FROM clause and the WHERE as they are written. Out: the scope in which WHERE is bound. WHERE
is bound before the joins are made, because its parts may be conditions of these joins; so what will
be equated is read from the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from terascope.bind.scope import NoSuchColumn, Scope, ScopeInput
from terascope.syntax import ast


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
    pairs = [pair for item in clause.items for pair in equated_by(item, order, scope).pairs]
    return replace(scope, later_equated=merged(pairs))


@dataclass(frozen=True)
class Equated:
    """The qualifiers of an item of FROM, and the pairs of columns that its ON conditions equate."""

    qualifiers: frozenset[str]
    pairs: tuple[frozenset[str], ...] = ()


def equated_by(item: ast.FromItem, inputs: Iterator[ScopeInput], scope: Scope) -> Equated:
    """A condition on one side of an outer join does not hold in all rows: the columns of a pair
    are of both sides.
    """
    if not isinstance(item, ast.JoinRef):
        return Equated(frozenset({next(inputs).qualifier}))
    left, right = equated_by(item.left, inputs, scope), equated_by(item.right, inputs, scope)
    conditions = () if item.condition is None else (item.condition,)
    pairs = [
        frozenset(pair.values())
        for pair in equated_names(conditions, scope)
        if left.qualifiers & pair.keys() and right.qualifiers & pair.keys()
    ]
    return Equated(left.qualifiers | right.qualifiers, (*left.pairs, *right.pairs, *pairs))


def equated_names(conditions: Iterable[ast.Expr], scope: Scope) -> Iterator[dict[str, str]]:
    """The columns of two inputs that conditions equate, by qualifier. Mistakes in conditions are
    told elsewhere.
    """
    for condition in conditions:
        match condition:
            case ast.Binary("AND", left, right):
                yield from equated_names((left, right), scope)
            case ast.Binary("=", ast.Name(a, str(of_a)), ast.Name(b, str(of_b))):
                with suppress(NoSuchColumn):
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
