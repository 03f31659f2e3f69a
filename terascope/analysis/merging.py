"""Aggregates that must be merged and cannot be: a user's aggregate without a merge.

In: a plan. Out: the calls of such aggregates, with the query and the operator of each. A stream
merges the states of tasks, micro-batches and slices; windows that overlap are merged of slices. A
batch without windows can do without: it sends the tuples of a group to one place.
"""

from __future__ import annotations

from collections.abc import Iterator

from terascope.diagnostic import Diagnostic, Span
from terascope.plan.expr import AggCall
from terascope.plan.plan import Plan
from terascope.plan.rel import Aggregate, NamedAgg, Running, walk


def without_merge(aggs: tuple[NamedAgg, ...]) -> Iterator[AggCall]:
    return (call for _, call in aggs if not call.function.mergeable)


def refused_in_streams(plan: Plan) -> list[Diagnostic]:
    """A diagnostic for each aggregate of a plan that a stream cannot merge."""
    return [
        needs_merge(call, f"query '{stream.name}' runs as a stream, which merges states", rel.span)
        for stream in plan
        for rel in walk(stream.rel)
        if isinstance(rel, Aggregate | Running)
        for call in without_merge(rel.aggs)
    ]


def needs_merge(call: AggCall, reason: str, span: Span) -> Diagnostic:
    message = f"{reason}, and '{call.function.name}' has no merge"
    help = "give its class a method merge(self, state, other)"
    return Diagnostic("needs-merge", message, span, (), help)
