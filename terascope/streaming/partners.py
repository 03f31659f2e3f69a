"""The sources that wait for each other because some query combines them.

In: the plan of a stream. Out: by source, the others that a merge, a join or a set of interfaces
combines with it. A source that is silent or gone holds back these sources and no others.
"""

from __future__ import annotations

from terascope.physical.stream.plan import StreamPlan
from terascope.plan.plan import Plan, reads
from terascope.plan.rel import Scan, walk


def partners(plan: StreamPlan) -> dict[str, frozenset[str]]:
    """By the name of a source, its partners."""
    found: dict[str, set[str]] = {i.name: set() for read in plan.job.reads for i in read.interfaces}
    for output in plan.outputs:
        together = sources_below(plan, output.name)
        for name in together:
            found[name] |= together - {name}
    return {name: frozenset(others) for name, others in found.items()}


def streams_below(plan: StreamPlan, query: str) -> set[str]:
    """The streams that a query is made of, down to the low level, and itself."""
    low = plan.by_name
    found: set[str] = set()
    pending = [query]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            if name not in low:
                pending += [read.stream for read in reads(plan.trees.streams[name])]
    return found


def sources_below(plan: StreamPlan, query: str) -> set[str]:
    """The sources whose tuples a query is made of."""
    names = streams_below(plan, query)
    return {i for stream in plan.low if stream.name in names for i in stream.scan.interfaces}


def liveness_limits(plan: Plan) -> dict[str, float]:
    """How long others wait for a source that is gone, in seconds: by source, the shortest
    `liveness_timeout` of the queries that read it. A source has one watermark for all its readers.
    """
    sources: dict[str, set[str]] = {}
    found: dict[str, float] = {}
    for stream in plan:
        own = {n for rel in walk(stream.rel) if isinstance(rel, Scan) for n in rel.interfaces}
        sources[stream.name] = own.union(*(sources[read.stream] for read in reads(stream.rel)))
        if stream.liveness is not None:
            for name in sources[stream.name]:
                found[name] = min(found.get(name, stream.liveness), stream.liveness)
    return found
