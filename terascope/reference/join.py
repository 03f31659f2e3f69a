"""Joins, as SQL means them: NULL equals nothing, duplicates on both sides multiply.

In: the tuples of both sides. Out: their pairs, then the rows of an outer side that found no
partner, with the missing side NULL except for the columns that `fills` names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from terascope.functions.base import Value
from terascope.functions.values import as_bytes
from terascope.plan.expr import Expr
from terascope.plan.rel import Join, Rel
from terascope.reference.context import Evaluation
from terascope.reference.rows import Row, same
from terascope.types import Type, unify

Pair: TypeAlias = tuple[int, int]
"""Places of a left and a right row that match."""


def join(rel: Join, left: list[Row], right: list[Row], context: Evaluation) -> list[Row]:
    pairs = matches(rel, left, right, context)
    with_partner_left = {i for i, _ in pairs}
    with_partner_right = {j for _, j in pairs}
    if rel.kind == "semi":
        return [row for i, row in enumerate(left) if i in with_partner_left]
    given = [left[i] + right[j] for i, j in pairs]
    no_left: Row = (None,) * len(rel.left.names)
    no_right: Row = (None,) * len(rel.right.names)
    if rel.kind in ("left", "full"):
        fill = filler(rel, rel.right, context)
        given += [fill(row + no_right) for i, row in enumerate(left) if i not in with_partner_left]
    if rel.kind in ("right", "full"):
        fill = filler(rel, rel.left, context)
        given += [fill(no_left + row) for j, row in enumerate(right) if j not in with_partner_right]
    return given


def matches(rel: Join, left: list[Row], right: list[Row], context: Evaluation) -> list[Pair]:
    """All pairs for which the equalities and the residual are TRUE."""
    types = [unify(a.type, b.type) for a, b in rel.equalities]
    left_keys = join_keys([a for a, _ in rel.equalities], types, rel.left, left, context)
    right_keys = join_keys([b for _, b in rel.equalities], types, rel.right, right, context)
    partners: dict[Row, list[int]] = {}
    for j, key in enumerate(right_keys):
        if None not in key:
            partners.setdefault(key, []).append(j)
    # A key with a NULL is never in `partners`.
    pairs = [(i, j) for i, key in enumerate(left_keys) for j in partners.get(key, [])]
    if rel.residual is None:
        return pairs
    residual = context.compile(rel.residual, rel.left.names + rel.right.names)
    return [(i, j) for i, j in pairs if residual(left[i] + right[j]) is True]


def join_keys(
    exprs: list[Expr], types: list[Type | None], side: Rel, rows: list[Row], context: Evaluation
) -> list[Row]:
    keys = [context.compile(expr, side.names) for expr in exprs]
    return [
        tuple(equated(key(row), type) for key, type in zip(keys, types, strict=True))
        for row in rows
    ]


def equated(value: Value, type: Type | None) -> Value:
    """Equal in Python for values of two sides that `=` calls equal, given their common type."""
    if value is None:
        return None
    if type is Type.FLOAT:
        return same(float(value))
    return as_bytes(value) if type is Type.BINARY else value


def filler(rel: Join, missing: Rel, context: Evaluation) -> Callable[[Row], Row]:
    """How a row whose side `missing` is missing gets the columns that are filled."""
    names = rel.left.names + rel.right.names
    fills = {
        names.index(name): context.compile(expr, names)
        for name, expr in rel.fills
        if name in missing.names
    }
    return lambda row: tuple(fills[i](row) if i in fills else v for i, v in enumerate(row))
