"""The part of a query that stands directly on a source.

In: a relation. Out: a `Selection` when it is nothing but selections and projections over one scan:
all its conditions and columns, written over the columns of the scan. Named streams of that kind are
looked through like views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from terascope.plan.build import TRUE
from terascope.plan.expr import Col, Expr, conjuncts, substitute
from terascope.plan.rel import Filter, Named, Project, Read, Rel, Scan


@dataclass(frozen=True)
class Selection:
    """The tuples of a scan for which all conditions are TRUE, with columns made of the scan's."""

    scan: Scan
    conditions: tuple[Expr, ...]
    items: tuple[Named, ...]

    def over_scan(self, expr: Expr) -> Expr:
        """An expression over the items as one over the columns of the scan."""
        return substitute(expr, dict(self.items))


def selection(rel: Rel, views: Mapping[str, Rel]) -> Selection | None:
    """The relation as a selection, or None; `views` are the streams that may be looked through."""
    match rel:
        case Scan():
            return Selection(rel, (), tuple((f.name, Col(f.name, f.type)) for f in rel.fields))
        case Read(stream=stream) if stream in views:
            return selection(views[stream], views)
        case Filter(source=source, predicate=predicate):
            below = selection(source, views)
            if below is None:
                return None
            added = (c for c in conjuncts(below.over_scan(predicate)) if c != TRUE)
            conditions = tuple(dict.fromkeys((*below.conditions, *added)))
            return replace(below, conditions=conditions)
        case Project(source=source, items=items):
            below = selection(source, views)
            if below is None:
                return None
            return replace(below, items=tuple((n, below.over_scan(e)) for n, e in items))
        case _:
            return None
