"""Internal streams of a set, emitted on request while the set runs.

In: a plan, and the names of requested internal streams. Out: the plan with a visible copy of each
and a copy of all streams that it reads: the planning of the other streams does not change. For the
engine a copy is a new query of the set: it begins with its first whole slice.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from terascope.plan.plan import Plan, Stream
from terascope.plan.rel import Read, Rel, inputs, with_inputs

SHOWN: Final = "#shown"
"""The end of the name of a copy; no query can have such a name."""


def internal_streams(plan: Plan) -> list[str]:
    """The names of streams that a user has written and that are not emitted."""
    return [stream.name for stream in plan if not stream.visible and stream.text]


def shown_name(name: str) -> str:
    return name + SHOWN


def with_shown(plan: Plan, names: Collection[str]) -> Plan:
    """The plan that also emits these internal streams."""
    copies: dict[str, Stream] = {}

    def copied(name: str) -> str:
        copy = shown_name(name)
        if copy not in copies:
            stream = plan[name]
            rel = over_copies(stream.rel)
            copies[copy] = replace(stream, name=copy, rel=rel, visible=name in names)
        return copy

    def over_copies(rel: Rel) -> Rel:
        if isinstance(rel, Read):
            return replace(rel, stream=copied(rel.stream))
        parts = inputs(rel)
        return with_inputs(rel, tuple(map(over_copies, parts))) if parts else rel

    for name in internal_streams(plan):
        if name in names:
            copied(name)
    return replace(plan, streams=(*plan.streams, *copies.values())) if copies else plan
