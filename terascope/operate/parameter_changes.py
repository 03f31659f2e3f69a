"""Changes of parameters while a set runs, or when it is started again with other values.

In: a name and a value. Out: a change in the state, valid from a slice edge behind everything that
was read so far, so that no window is computed with two values. Changes are in the checkpoint: a run
that resumes from it has them, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from terascope.analysis.order import FINENESS
from terascope.connectors.arrival import is_arrival
from terascope.functions.base import Value
from terascope.functions.casts import cast_value
from terascope.plan.plan import Parameter, Plan
from terascope.plan.rel import Scan, walk
from terascope.streaming.parameters import Change, decides_time, next_edge
from terascope.streaming.state.state import Seen, StreamState
from terascope.types import Type

MOST_CHANGES: Final = 8
"""Changes that a state keeps; earlier ones are from before any slice that is still open."""


def changes_of(state: StreamState | None, plan: Plan) -> list[Change]:
    """The changes a checkpoint has, as values of the set's parameters."""
    if state is None:
        return []
    types = {p.name: p for p in plan.parameters}
    return [
        Change(
            one["name"],
            value_of(types[one["name"]], one["before"]),
            value_of(types[one["name"]], one["value"]),
            one["edge_ns"],
        )
        for one in state.parameters.get("changes", [])
        if one["name"] in types
    ]


def value_of(parameter: Parameter, text: str) -> Value:
    return cast_value(text, Type.STRING, parameter.type)


def current(state: StreamState | None, given: Mapping[str, str]) -> dict[str, str]:
    """The value of each parameter after all changes."""
    if state is None:
        return dict(given)
    found = dict(state.parameters.get("given", given))
    for one in state.parameters.get("changes", []):
        found[one["name"]] = one["value"]
    return found


def note_given(state: StreamState, given: Mapping[str, str], plan: Plan) -> list[str]:
    """Change the parameters that are given another value than at the last start; returns these."""
    before = state.parameters.get("given")
    if before is None:
        state.parameters = {"given": dict(given), "changes": []}
        return []
    differing = [name for name, text in given.items() if before.get(name, text) != text]
    for name in differing:
        change(state, plan, name, given[name])
    state.parameters["given"] = {**before, **given}
    return differing


def change(state: StreamState, plan: Plan, name: str, text: str) -> int | None:
    """Change a parameter from the next slice edge on, and return the edge. None: the value is the
    current one, or the parameter cannot be changed while the set runs.
    """
    parameter = next((p for p in plan.parameters if p.name == name), None)
    if parameter is None or value_of(parameter, text) is None or decides_time(plan, name):
        return None
    known = current(state, {})
    if known.get(name) == text:
        return None
    edge = next_edge(plan, latest_ns(state.seen, plan))
    changes: list[dict[str, Any]] = list(state.parameters.get("changes", []))
    pending = [c for c in changes if c["name"] == name and c["edge_ns"] == edge]
    before = pending[0]["before"] if pending else known.get(name, text)
    changes = [c for c in changes if c not in pending]
    changes.append({"name": name, "before": before, "value": text, "edge_ns": edge})
    state.parameters = {**state.parameters, "changes": changes[-MOST_CHANGES:]}
    return edge


def latest_ns(seen: Mapping[str, Seen], plan: Plan) -> int:
    """The largest value of any clock so far."""
    found = [one.quiet_ns for one in seen.values() if one.quiet_ns is not None]
    found += [one.arrived_ns for one in seen.values()] if has_arrivals_only(plan) else []
    for scan in scans(plan):
        for column in scan.columns:
            if column.clock is None or is_arrival(column.read_from):
                continue
            tick = 10**9 // FINENESS[column.clock]
            for interface in scan.interfaces:
                value = seen[interface].largest.get(column.read_from) if interface in seen else None
                if value is not None:
                    found.append(int((value + 1) * tick))
    return max(found, default=0)


def has_arrivals_only(plan: Plan) -> bool:
    """Whether no tuple has a time of its own."""
    clocks = {c.read_from for scan in scans(plan) for c in scan.columns if c.clock is not None}
    return all(map(is_arrival, clocks))


def scans(plan: Plan) -> Iterable[Scan]:
    return (rel for stream in plan for rel in walk(stream.rel) if isinstance(rel, Scan))
