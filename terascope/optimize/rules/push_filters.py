"""Filter as early as the meaning allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        case Filter(source=Window(source=source) as window, predicate=p):
            own = {WSTART, WEND}
            return split(rel, p, lambda c: not columns_of(c) & own, window, source)
        case Filter(source=Aggregate(source=source, keys=keys) as aggregate, predicate=p):
            if aggregate.sets is not None or aggregate.emit_empty is not None:
                return None
            names = {n for n, _ in keys}
            values = dict(keys)
            return split(
                rel,
                p,
                lambda c: columns_of(c) <= names,
                aggregate,
                source,
                lambda c: substitute(c, values),
            )
        case Filter(source=Join() as join, predicate=p):
            return through_join(rel, join, p)
        case _:
            return None


def split(
    rel: Filter,
    predicate: Expr,
    may_pass: Callable[[Expr], bool],
    above: Window | Aggregate,
    below: Rel,
    translate: Callable[[Expr], Expr] = lambda c: c,
) -> Rel | None:
    """Push the conjuncts that may pass, keep the others."""
    parts = conjuncts(predicate)
    passing = [translate(c) for c in parts if columns_of(c) and may_pass(c)]
    if not passing:
        return None
    staying = [c for c in parts if not (columns_of(c) and may_pass(c))]
    made = replace(above, source=Filter(below, conjunction(passing), span=rel.span))
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
