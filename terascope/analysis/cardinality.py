"""How many rows a relation may have, roughly, relative to its source.

In: a relation. Out: a number that is only good for comparing: which input of a join is likely the
smaller one. Selectivities are the textbook's; statistics of the stream replace them later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from terascope.functions.base import Scalar
from terascope.functions.roles import Comparator, ListMembership, Membership, TextPattern
from terascope.plan.expr import Call, Expr, conjuncts
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
)

SOURCE_ROWS = 1_000_000.0
LOOKUP_ROWS = 100.0
EQUALITY, RANGE, OTHER = 0.1, 0.3, 0.5


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
