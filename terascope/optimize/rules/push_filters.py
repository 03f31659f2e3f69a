"""Filter as early as the meaning allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from terascope.plan.build import conjunction
from terascope.plan.expr import Col, Expr, columns_of, conjuncts, substitute
from terascope.plan.rel import WEND, WSTART, Aggregate, Filter, Join, Merge, Project, Rel, Window


def push_filters(rel: Rel) -> Rel | None:
    """Before: Filter p (Operator s)      After: Operator (Filter p s), for the parts of p that may.

    A predicate over keys goes below an aggregation, one over a single side below a join (on the
    side that an outer join keeps whole), any below a projection or a merge.
    """
    match rel:
        case Filter(source=Project(source=source, items=items) as project, predicate=p):
            below = Filter(source, substitute(p, dict(items)), span=rel.span)
            return replace(project, source=below)
        case Filter(source=Merge(sources=sources) as merge, predicate=p):
            return replace(
                merge, sources=tuple(filter_by_position(s, merge, p, rel) for s in sources)
            )
        case Filter(source=Window(source=source) as window):
            kept = (f for f in source.fields if f.name not in (WSTART, WEND))
            return split(rel, window, {f.name: Col(f.name, f.type) for f in kept})
        case Filter(source=Aggregate(sets=None, emit_empty=None) as aggregate):
            return split(rel, aggregate, dict(aggregate.keys))
        case Filter(source=Join() as join, predicate=p):
            return through_join(rel, join, p)
        case _:
            return None


def split(rel: Filter, above: Window | Aggregate, values: Mapping[str, Expr]) -> Rel | None:
    """Push the conjuncts over columns with a value below the operator, keep the others."""
    passing: list[Expr] = []
    staying: list[Expr] = []
    for part in conjuncts(rel.predicate):
        passes = bool(columns_of(part)) and columns_of(part) <= values.keys()
        (passing if passes else staying).append(part)
    if not passing:
        return None
    below = conjunction(substitute(part, values) for part in passing)
    made = replace(above, source=Filter(above.source, below, span=rel.span))
    return refilter(rel, made, staying)


def refilter(rel: Filter, made: Rel, staying: Sequence[Expr]) -> Rel:
    return Filter(made, conjunction(staying), span=rel.span) if staying else made


def filter_by_position(source: Rel, merge: Merge, predicate: Expr, rel: Filter) -> Rel:
    names: dict[str, Expr] = {
        target.name: Col(field.name, field.type)
        for target, field in zip(merge.fields, source.fields, strict=True)
    }
    return Filter(source, substitute(predicate, names), span=rel.span)


def through_join(rel: Filter, join: Join, predicate: Expr) -> Rel | None:
    keeps_left = join.kind in ("inner", "left", "semi")
    keeps_right = join.kind in ("inner", "right")
    left, right, staying = [], [], []
    for part in conjuncts(predicate):
        used = columns_of(part)
        if used and keeps_left and used <= set(join.left.names):
            left.append(part)
        elif used and keeps_right and used <= set(join.right.names):
            right.append(part)
        else:
            staying.append(part)
    if not left and not right:
        return None
    made = replace(
        join,
        left=Filter(join.left, conjunction(left), span=rel.span) if left else join.left,
        right=Filter(join.right, conjunction(right), span=rel.span) if right else join.right,
    )
    return refilter(rel, made, staying)
