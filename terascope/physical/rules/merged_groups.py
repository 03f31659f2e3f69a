"""The high part over partial groups that were merged already.

In: a high part, and the low-level aggregations of which each group is now one row. Out: the same
high part without super-aggregations that have nothing left to merge: a projection of the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from terascope.functions.base import Scalar
from terascope.functions.roles import FloorDivision
from terascope.optimize.driver import apply_below
from terascope.optimize.rules.drop_identities import drop_identities
from terascope.optimize.rules.merge_projects import merge_projects
from terascope.physical.split.sub_aggregates import unscaled
from terascope.plan.build import term_expr
from terascope.plan.expr import AggCall, Call, Cast, Col, Expr, Lit, columns_of
from terascope.plan.plan import reads
from terascope.plan.rel import Aggregate, Filter, Project, Read, Rel, inputs


def assume_merged(
    rel: Rel, low_keys: Mapping[str, tuple[str, ...]], steps: Mapping[str, int] | None = None
) -> Rel:
    """Before: Aggregate by a, b: sum(cnt) (Read low)      After: Project a, b, cnt (Read low).

    `low_keys`: the key columns of each merged low-level aggregation. An aggregation by fewer keys,
    with grouping sets or with rows for empty epochs stays. `steps`: the number of which the ends of
    windows are multiples, in streams of windows.
    """
    return apply_below(rel, lambda one: without_merging(one, low_keys, steps or {}))


def without_merging(
    rel: Rel, low_keys: Mapping[str, tuple[str, ...]], steps: Mapping[str, int]
) -> Project | None:
    if not isinstance(rel, Aggregate):
        return None
    below = rel.source
    source = below.source if isinstance(below, Filter) else below
    if not isinstance(source, Read) or source.stream not in low_keys:
        return None
    if rel.sets is not None or rel.emit_empty is not None:
        return None
    # A key must determine every low key; further keys may only follow from low keys.
    known = set(low_keys[source.stream])
    step = steps.get(source.stream, 1)
    told = {base.name for _, e in rel.keys if isinstance(base := determined_by(e, step), Col)}
    if not known <= told or any(not columns_of(e) <= known for _, e in rel.keys):
        return None
    values = [(name, value_of_one(call)) for name, call in rel.aggs]
    kept = tuple((name, value) for name, value in values if value is not None)
    if len(kept) < len(values):
        return None
    return Project(below, (*rel.keys, *kept), span=rel.span)


def merged_jointly(rels: Iterable[Rel]) -> frozenset[str]:
    """The streams of which some aggregation merges several columns at once. Their groups may have
    several rows: a sum of FLOATs has no single row before it is rounded.
    """
    found: set[str] = set()
    for rel in rels:
        aggs = rel.aggs if isinstance(rel, Aggregate) else ()
        if any(call.function.of_one() is not None for _, call in aggs):
            found |= {read.stream for read in reads(rel)}
        found |= merged_jointly(inputs(rel))
    return frozenset(found)


def determined_by(expr: Expr, step: int) -> Expr:
    """The expressions that an expression determines: of multiples of a step, also a quotient."""
    base = unscaled(expr)
    match base:
        case Call(Scalar(role=FloorDivision()), (dividend, Lit(value=int(n)))):
            return unscaled(dividend) if n > 0 and step > 1 and step % n == 0 else base
    return base


def tidy(rel: Rel) -> Rel | None:
    """The relation without nested projections and without projections that change nothing."""
    return merge_projects(rel) or drop_identities(rel)


def value_of_one(call: AggCall) -> Expr | None:
    """The value of an aggregate over a group of one row, where the row's values determine it."""
    term = call.function.of_one()
    if term is not None:
        return term_expr(term, call.args)
    if not call.function.keeps_one or len(call.args) != 1:
        return None
    (value,) = call.args
    return value if value.type is call.type else Cast(value, call.type)
