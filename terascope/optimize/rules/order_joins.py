"""Join the small inputs first.

Before: ((A join B) join C) After: ((A join C) join B), when C is smaller than B and A = C is a
condition.

Only inner joins of three inputs or more are reordered; every join of the new tree must still be
bounded in time. How many rows a relation may have is estimated relative to its source: a number
that is only good for comparing, by the textbook's selectivities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from terascope.analysis.bounded import is_timeless, join_bound
from terascope.analysis.order import column_orders
from terascope.analysis.slopes import Orders
from terascope.functions.base import Scalar
from terascope.functions.roles import Comparator, ListMembership, Membership, TextPattern
from terascope.plan.build import call, conjunction
from terascope.plan.expr import Call, Col, Expr, columns_of, conjuncts, equated_sides
from terascope.plan.plan import Plan
from terascope.plan.rel import (
    Aggregate,
    Filter,
    Join,
    Lookup,
    Merge,
    Project,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    Sliding,
    Window,
    inputs,
    with_inputs,
)

SOURCE_ROWS = 1_000_000.0
LOOKUP_ROWS = 100.0
EQUALITY, RANGE, OTHER = 0.1, 0.3, 0.5


def order_joins(plan: Plan) -> Plan:
    """Reorder every tree of inner joins by estimated cardinality."""
    orders: dict[str, Orders] = {}
    rows: dict[str, float] = {}
    streams = []
    for stream in plan:
        rel = reorder(stream.rel, orders, rows)
        orders[stream.name] = column_orders(rel, orders)
        rows[stream.name] = estimate_rows(rel, rows)
        streams.append(stream.over(rel))
    return plan.of(streams)


def reorder(rel: Rel, orders: Mapping[str, Orders], rows: Mapping[str, float]) -> Rel:
    """`orders`, `rows`: the ordered columns and the estimated rows of the streams below."""
    leaves, conditions = flatten(rel)
    if len(leaves) >= 3:
        ordered = [reorder(leaf, orders, rows) for leaf in leaves]
        made = greedy(ordered, conditions, orders, rows)
        if made is not None:
            return restore_columns(rel, made)
    parts = tuple(reorder(p, orders, rows) for p in inputs(rel))
    return with_inputs(rel, parts)


def flatten(rel: Rel) -> tuple[list[Rel], list[Expr]]:
    """The leaves and all conditions of a tree of inner joins."""
    if not isinstance(rel, Join) or rel.kind != "inner":
        return [rel], []
    left, on_left = flatten(rel.left)
    right, on_right = flatten(rel.right)
    own: list[Expr] = [call("=", a, b) for a, b in rel.equalities]
    if rel.residual is not None:
        own += conjuncts(rel.residual)
    return left + right, on_left + on_right + own


def greedy(
    leaves: Sequence[Rel],
    conditions: Sequence[Expr],
    orders: Mapping[str, Orders],
    rows: Mapping[str, float],
) -> Rel | None:
    """Start with the smallest leaf; always add the smallest that is bounded with what is there."""
    by_size = sorted(leaves, key=lambda r: estimate_rows(r, rows))
    made, rest, pending = by_size[0], by_size[1:], list(conditions)
    while rest:
        for candidate in rest:
            attempt = join_pair(made, candidate, pending, orders)
            if attempt is not None:
                made, pending = attempt
                rest.remove(candidate)
                break
        else:
            return None
    return made


def join_pair(
    left: Rel, right: Rel, pending: Sequence[Expr], orders: Mapping[str, Orders]
) -> tuple[Rel, list[Expr]] | None:
    """The join with every condition it can take, or None when it would be unbounded."""
    both = set(left.names) | set(right.names)
    taken = [c for c in pending if columns_of(c) <= both]
    sides = frozenset(left.names), frozenset(right.names)
    pairs = [(c, equated_sides(c, *sides)) for c in taken]
    residual = [c for c, pair in pairs if pair is None]
    equalities = tuple(pair for _, pair in pairs if pair is not None)
    join = Join(left, right, "inner", equalities, conjunction(residual) if residual else None)
    timed = not is_timeless(left) and not is_timeless(right)
    known = column_orders(left, orders), column_orders(right, orders)
    if timed and join_bound(join, *known) is None:
        return None
    return join, [c for c in pending if c not in taken]


def restore_columns(before: Rel, after: Rel) -> Rel:
    """The columns in their old order, when the new tree has them in another."""
    if before.fields == after.fields:
        return after
    return Project(after, tuple((f.name, Col(f.name, f.type)) for f in before.fields))


# ---- estimated rows ------------------------------------------------------------------------------


def estimate_rows(rel: Rel, streams: Mapping[str, float]) -> float:
    """Estimated rows; `streams` has the estimates of the streams it reads."""
    match rel:
        case Scan(interfaces=interfaces):
            return SOURCE_ROWS * max(1, len(interfaces))
        case Read(stream=stream):
            return streams.get(stream, SOURCE_ROWS)
        case Lookup():
            return LOOKUP_ROWS
        case Filter(source=source, predicate=predicate):
            return estimate_rows(source, streams) * selectivity(predicate)
        case Project(source=source):
            return estimate_rows(source, streams)
        case Window(source=source, spec=spec):
            copies = max(1.0, spec.range / spec.slide) if isinstance(spec, Sliding) else 1.0
            return estimate_rows(source, streams) * copies
        case Aggregate(source=source, keys=keys) | Running(source=source, keys=keys):
            share = min(0.9, 0.001 * 8.0 ** max(0, len(keys) - 1))
            sets = rel.sets if isinstance(rel, Aggregate) else None
            return estimate_rows(source, streams) * share * len(sets or ((),))
        case Rank(source=source, limit=limit):
            return estimate_rows(source, streams) * (0.01 if limit else 1.0)
        case Join():
            left = estimate_rows(rel.left, streams)
            right = estimate_rows(rel.right, streams)
            return max(left, right) if rel.equalities else left * right
        case Merge(sources=sources):
            return sum(estimate_rows(s, streams) for s in sources)
        case _:
            assert_never(rel)


def selectivity(predicate: Expr) -> float:
    """Share of tuples that pass, conjuncts taken as independent."""
    share = 1.0
    for part in conjuncts(predicate):
        match part:
            case Call(Scalar(role=Comparator() as role)) if role.is_range:
                share *= RANGE
            case Call(Scalar(role=Comparator() as role)) if role.is_equality:
                share *= EQUALITY
            case Call(Scalar(role=TextPattern() | Membership() | ListMembership())):
                share *= EQUALITY
            case _:
                share *= OTHER
    return share
