"""Two filters are one."""

from __future__ import annotations

from terascope.plan.build import conjunction
from terascope.plan.expr import conjuncts
from terascope.plan.rel import Filter, Rel


def merge_filters(rel: Rel) -> Rel | None:
    """Before: Filter q (Filter p s)      After: Filter (p AND q) s."""
    match rel:
        case Filter(source=Filter(source=source, predicate=p), predicate=q):
            parts = dict.fromkeys((*conjuncts(p), *conjuncts(q)))
            return Filter(source, conjunction(parts), span=rel.span)
        case _:
            return None
