"""A filter on an inner join becomes part of the join's condition."""

from __future__ import annotations

from dataclasses import replace

from terascope.plan.build import conjunction
from terascope.plan.expr import conjuncts, equated_sides
from terascope.plan.rel import Filter, Join, Rel


def absorb_conditions(rel: Rel) -> Rel | None:
    """Before: Filter (a.x = b.x AND p) (Join inner a b)      After: Join inner a b on a.x = b.x AND
    p.
    """
    match rel:
        case Filter(source=Join(kind="inner") as join, predicate=predicate):
            equalities = list(join.equalities)
            residual = list(conjuncts(join.residual)) if join.residual is not None else []
            sides = frozenset(join.left.names), frozenset(join.right.names)
            for part in conjuncts(predicate):
                pair = equated_sides(part, *sides)
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
