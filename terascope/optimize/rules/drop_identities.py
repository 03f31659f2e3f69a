"""A projection that changes nothing is nothing."""

from __future__ import annotations

from terascope.plan.expr import Col
from terascope.plan.rel import Project, Rel


def drop_identities(rel: Rel) -> Rel | None:
    """Before: Project a, b (s with columns a, b)      After: s."""
    match rel:
        case Project(source=source, items=items):
            same = tuple((f.name, Col(f.name, f.type)) for f in source.fields)
            return source if items == same else None
        case _:
            return None
