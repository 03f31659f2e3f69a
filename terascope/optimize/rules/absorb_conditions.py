"""What filters an inner join is part of its condition."""

from __future__ import annotations

from dataclasses import replace

from terascope.plan.build import conjunction
from terascope.plan.expr import Call, Expr, columns_of, conjuncts
from terascope.plan.rel import Filter, Join, Rel


def absorb_conditions(rel: Rel) -> Rel | None:
    """Before: Filter (a.x = b.x AND p) (Join inner a b)      After: Join inner a b on a.x = b.x AND
    p.
    """
    match rel:
        case Filter(source=Join(kind="inner") as join, predicate=predicate):
            equalities = list(join.equalities)
            residual = list(conjuncts(join.residual)) if join.residual is not None else []
            for part in conjuncts(predicate):
                pair = equality_of_sides(part, join)
                if pair is None:
                    residual.append(part)
                else:
                    equalities.append(pair)
            return replace(
                join,
                equalities=tuple(equalities),
                residual=conjunction(residual) if residual else None,
            )
        case _:
            return None


def equality_of_sides(part: Expr, join: Join) -> tuple[Expr, Expr] | None:
    """(over left, over right) of an equality between the two sides."""
    left, right = set(join.left.names), set(join.right.names)
    match part:
        case Call(function, (a, b)) if function.name == "=" and columns_of(a) and columns_of(b):
            if columns_of(a) <= left and columns_of(b) <= right:
                return a, b
            if columns_of(b) <= left and columns_of(a) <= right:
                return b, a
    return None
