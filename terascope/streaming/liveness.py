"""How long others wait for a source that is gone, where queries say so themselves.

In: a plan. Out: by source the `liveness_timeout` of the queries that read it; of several the
shortest, for a source has one watermark for all its readers.
"""

from __future__ import annotations

from terascope.plan.plan import Plan, reads
from terascope.plan.rel import Scan, walk


def liveness_limits(plan: Plan) -> dict[str, float]:
    """In seconds; a source that no query says anything of is not there."""
    sources: dict[str, set[str]] = {}
    found: dict[str, float] = {}
    for stream in plan:
        own = {n for rel in walk(stream.rel) if isinstance(rel, Scan) for n in rel.interfaces}
        sources[stream.name] = own.union(*(sources[read.stream] for read in reads(stream.rel)))
        if stream.liveness is not None:
            for name in sources[stream.name]:
                found[name] = min(found.get(name, stream.liveness), stream.liveness)
    return found
