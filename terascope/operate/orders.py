"""What people ask of a running set: another value of a parameter (`terascope set`), or the rows of
a stream that it does not deliver (`terascope tail`).

In: files in the control folder of a run, and the values a set is started with. Out: changes in its
state, each from a slice edge on that lies behind everything read so far. They are in the
checkpoint, so that a run that goes on later has them too.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from terascope.analysis.order import FINENESS
from terascope.connectors.arrival import is_arrival
from terascope.functions.base import Value
from terascope.functions.casts import cast_value
from terascope.operate.showing import internal_streams
from terascope.plan.plan import Parameter, Plan
from terascope.plan.rel import Scan, walk
from terascope.streaming.parameters import Change, decides_time, next_edge
from terascope.streaming.state.runs import CONTROL, is_private
from terascope.streaming.state.state import Seen, State
from terascope.types import Type

PARAMETERS: Final = "parameters"
SHOW: Final = "show"
"""How the names of their files begin."""
ROOT: Final = 0
MOST_CHANGES: Final = 8
"""That a run remembers; older ones are older than any slice that is still open."""


@dataclass(frozen=True)
class Order:
    path: Path
    name: str
    value: str | None = None
    """Of a parameter; None: it is a stream that is to be shown."""


def orders(folder: Path) -> Iterator[Order]:
    """What was asked and not done yet, oldest first. Nothing is taken from a folder that another
    user could have written to, nor from a file that another user, root apart, has written.
    """
    if not is_private(folder / CONTROL):
        return
    for kind in (PARAMETERS, SHOW):
        for path in sorted((folder / CONTROL).glob(f"{kind}-*.json")):
            try:
                found = path.lstat()
                if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.geteuid(), ROOT):
                    continue
                told = json.loads(path.read_text(encoding="utf-8"))
                yield Order(path, told["name"], told["value"] if kind == PARAMETERS else None)
            except (OSError, ValueError, KeyError):
                continue


def obey(state: State, plan: Plan, order: Order) -> bool:
    """Take an order into the state; whether it changes anything."""
    if order.value is not None:
        return change(state, plan, order.name, order.value) is not None
    if order.name in state.shown or order.name not in internal_streams(plan):
        return False
    state.shown = [*state.shown, order.name]
    return True


def changes_of(state: State | None, plan: Plan) -> list[Change]:
    """The changes a checkpoint has, as values of the set's parameters."""
    if state is None:
        return []
    types = {p.name: p for p in plan.parameters}
    return [
        Change(
            told["name"],
            value_of(types[told["name"]], told["before"]),
            value_of(types[told["name"]], told["value"]),
            told["edge_ns"],
        )
        for told in state.parameters.get("changes", [])
        if told["name"] in types
    ]


def value_of(parameter: Parameter, text: str) -> Value:
    return cast_value(text, Type.STRING, parameter.type)


def current(state: State | None, given: Mapping[str, str]) -> dict[str, str]:
    """The values in force, or about to be."""
    if state is None:
        return dict(given)
    found = dict(state.parameters.get("given", given))
    for told in state.parameters.get("changes", []):
        found[told["name"]] = told["value"]
    return found


def note_given(state: State, given: Mapping[str, str], plan: Plan) -> list[str]:
    """A set that is started with other values than before changes them; which."""
    before = state.parameters.get("given")
    if before is None:
        state.parameters = {"given": dict(given), "changes": []}
        return []
    differing = [name for name, text in given.items() if before.get(name, text) != text]
    for name in differing:
        change(state, plan, name, given[name])
    state.parameters["given"] = {**before, **given}
    return differing


def change(state: State, plan: Plan, name: str, text: str) -> int | None:
    """Another value from the next edge on, which is returned; None: nothing can or need be done."""
    parameter = next((p for p in plan.parameters if p.name == name), None)
    if parameter is None or value_of(parameter, text) is None or decides_time(plan, name):
        return None
    known = current(state, {})
    if known.get(name) == text:
        return None
    edge = next_edge(plan, latest_ns(state.seen, plan))
    told: list[dict[str, Any]] = list(state.parameters.get("changes", []))
    pending = [c for c in told if c["name"] == name and c["edge_ns"] == edge]
    before = pending[0]["before"] if pending else known.get(name, text)
    told = [c for c in told if c not in pending]
    told.append({"name": name, "before": before, "value": text, "edge_ns": edge})
    state.parameters = {**state.parameters, "changes": told[-MOST_CHANGES:]}
    return edge


def latest_ns(seen: Mapping[str, Seen], plan: Plan) -> int:
    """The furthest that any clock has come."""
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
