"""Two projections are one, unless that computes something twice."""

from __future__ import annotations

from collections import Counter

from terascope.plan.expr import Col, Expr, Lit, substitute, walk
from terascope.plan.rel import Named, Project, Rel


def merge_projects(rel: Rel) -> Rel | None:
    """Before: Project b (Project a s)      After: Project (b with a put in) s."""
    match rel:
        case Project(source=Project(source=source, items=inner), items=outer):
            if repeats_work(inner, outer):
                return None
            values = dict(inner)
            items = tuple((n, substitute(e, values)) for n, e in outer)
            return Project(source, items, span=rel.span)
        case _:
            return None


def repeats_work(inner: tuple[Named, ...], outer: tuple[Named, ...]) -> bool:
    """Whether a computed column would be computed more than once."""
    used: Counter[str] = Counter()
    for _, expr in outer:
        used.update(e.name for e in walk(expr) if isinstance(e, Col))
    return any(used[name] > 1 and not is_free(expr) for name, expr in inner)


def is_free(expr: Expr) -> bool:
    return isinstance(expr, Col | Lit)
