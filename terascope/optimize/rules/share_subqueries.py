"""Compute what several queries have in common once.

Before: a: Project x (Aggregate t)   b: Filter p (Aggregate t)
After:  shared1: Aggregate t   a: Project x (Read shared1)   b: Filter p (Read shared1)
"""

from __future__ import annotations

from collections import Counter

from terascope.plan.plan import Plan, Stream
from terascope.plan.rel import Aggregate, Join, Rank, Read, Rel, Running, inputs, walk, with_inputs


def share_subqueries(plan: Plan) -> Plan:
    """Give every relation worth it that stands in two places a stream of its own."""
    streams = list(plan.streams)
    number = 0
    while (common := most_shared(streams)) is not None:
        owner = next((s for s in streams if s.rel == common), None)
        first = next(i for i, s in enumerate(streams) if common in set(walk(s.rel)))
        if owner is not None and streams.index(owner) == first:
            name = owner.name
        else:
            number += 1
            name = f"shared{number}"
            streams.insert(first, Stream(name, common, visible=False))
        streams = [s if s.name == name else s.over(replaced(s.rel, common, name)) for s in streams]
    return plan.of(streams)


def most_shared(streams: list[Stream]) -> Rel | None:
    """The largest relation that is found more than once."""
    counts: Counter[Rel] = Counter()
    for stream in streams:
        counts.update(r for r in walk(stream.rel) if worth_sharing(r))
    repeated = [r for r, n in counts.items() if n > 1]
    return max(repeated, key=size, default=None)


def worth_sharing(rel: Rel) -> bool:
    """Whether a relation costs something: scans are shared anyway, filters and projections are
    cheap. A window alone is not worth it: kept, it is every tuple once for each window it is in,
    while aggregations of it are put together from slices, which all of them share.
    """
    if isinstance(rel, Aggregate | Running | Join | Rank):
        return True
    return not isinstance(rel, Read) and any(worth_sharing(p) for p in inputs(rel))


def size(rel: Rel) -> int:
    return sum(1 for _ in walk(rel))


def replaced(rel: Rel, common: Rel, name: str) -> Rel:
    if rel == common:
        return Read(name, common.fields, span=rel.span)
    return with_inputs(rel, tuple(replaced(p, common, name) for p in inputs(rel)))
