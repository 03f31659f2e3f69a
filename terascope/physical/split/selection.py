"""The part of a query directly on a source.

In: a relation. Out: a `Selection` when the relation consists of selections and projections over one
scan: all its conditions and columns, written over the columns of the scan. Named streams of that
kind are inlined like views; for an aggregation, windows that do not overlap are columns, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from terascope.functions.slices import SliceVector
from terascope.plan.build import TRUE, call, slice_call
from terascope.plan.expr import Col, Expr, Lit, conjuncts, substitute
from terascope.plan.rel import WEND, WSTART, Filter, Named, Project, Read, Rel, Scan, Slices, Window


@dataclass(frozen=True)
class Selection:
    """The tuples of a scan that meet all conditions, with columns computed from the scan's."""

    scan: Scan
    conditions: tuple[Expr, ...]
    items: tuple[Named, ...]

    def over_scan(self, expr: Expr) -> Expr:
        """An expression over the items, rewritten over the columns of the scan."""
        return substitute(expr, dict(self.items))


def selection(rel: Rel, views: Mapping[str, Rel], windows: bool = False) -> Selection | None:
    """The relation as a selection, or None. `views` are the streams that may be inlined; `windows`
    says whether a tumbling window may stand on it.
    """
    match rel:
        case Window() if windows:
            return tumbling(rel, selection(rel.source, views))
        case Scan():
            return Selection(rel, (), tuple((f.name, Col(f.name, f.type)) for f in rel.fields))
        case Read(stream=stream) if stream in views:
            return selection(views[stream], views)
        case Filter(source=source, predicate=predicate):
            below = selection(source, views, windows)
            if below is None:
                return None
            added = (c for c in conjuncts(below.over_scan(predicate)) if c != TRUE)
            conditions = tuple(dict.fromkeys((*below.conditions, *added)))
            return replace(below, conditions=conditions)
        case Project(source=source, items=items):
            below = selection(source, views, windows)
            if below is None:
                return None
            return replace(below, items=tuple((n, below.over_scan(e)) for n, e in items))
        case _:
            return None


def tumbling(window: Window, below: Selection | None) -> Selection | None:
    """Whether every tuple with a time is in exactly one window: the edges follow from the time."""
    spec = window.spec
    if below is None or window.elements:
        return None
    time = dict(below.items)[window.on]
    if isinstance(spec, Slices):
        vector = SliceVector(spec.lengths)
        start: Expr = slice_call("slice_start", time, vector)
        end: Expr = slice_call("slice_end", start, vector)
    elif spec.range == spec.slide:
        length = Lit(spec.slide, time.type)
        start = call("*", call("div", time, length), length)
        end = call("+", start, length)
    else:
        return None
    edges: tuple[Named, ...] = ((WSTART, start), (WEND, end))
    kept = tuple((n, e) for n, e in below.items if n not in (WSTART, WEND))
    has_time = call("not", call("is_null", time))
    conditions = tuple(dict.fromkeys((*below.conditions, has_time)))
    return replace(below, conditions=conditions, items=(*kept, *edges))
