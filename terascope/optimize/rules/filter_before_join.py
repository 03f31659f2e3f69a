"""What a join asks of one input alone is asked before the join."""

from __future__ import annotations

from dataclasses import replace

from terascope.plan.build import conjunction
from terascope.plan.expr import Expr, columns_of, conjuncts
from terascope.plan.rel import Filter, Join, JoinKind, Rel

MAY_DROP_LEFT: frozenset[JoinKind] = frozenset({"inner", "right", "semi"})
MAY_DROP_RIGHT: frozenset[JoinKind] = frozenset({"inner", "left", "semi"})


def filter_before_join(rel: Rel) -> Rel | None:
    """Before: Join left a b on a.x = b.x AND p(b)      After: Join left a (Filter p b) on a.x = b.x

    A row that no partner can match is needed only on the side that an outer join keeps whole.
    """
    match rel:
        case Join(residual=residual) if residual is not None:
            left, right, staying = [], [], []
            for part in conjuncts(residual):
                used = columns_of(part)
                if used and rel.kind in MAY_DROP_LEFT and used <= set(rel.left.names):
                    left.append(part)
                elif used and rel.kind in MAY_DROP_RIGHT and used <= set(rel.right.names):
                    right.append(part)
                else:
                    staying.append(part)
            if not left and not right:
                return None
            return replace(
                rel,
                left=filtered(rel.left, left, rel),
                right=filtered(rel.right, right, rel),
                residual=conjunction(staying) if staying else None,
            )
        case _:
            return None


def filtered(rel: Rel, parts: list[Expr], join: Join) -> Rel:
    return Filter(rel, conjunction(parts), span=join.span) if parts else rel
