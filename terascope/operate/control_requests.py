"""Control requests: what people ask of a running set.

A request is a JSON file in the control folder of the run: another value of a parameter (`terascope
set`), or the rows of a stream that the set does not deliver (`terascope tail`). The run applies all
pending requests to its state between two batches. A parameter changes at a slice edge behind
everything that was read so far, so that no window is computed with two values. Changes are in the
checkpoint: a run that resumes from it has them, too. An internal stream that is requested becomes a
visible copy of it and of all streams that it reads, so that the planning of the other streams does
not change: for the engine a copy is a new query, which begins with its first whole slice.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from terascope.analysis.order import FINENESS
from terascope.connectors.arrival import is_arrival
from terascope.diagnostic import StreamError
from terascope.functions.base import Value
from terascope.functions.casts import cast_value
from terascope.plan.plan import Parameter, Plan, Stream
from terascope.plan.rel import Read, Rel, Scan, inputs, walk, with_inputs
from terascope.streaming.parameters import Change, decides_time, next_edge
from terascope.streaming.state.runs import (
    MANIFEST,
    Run,
    RunFolder,
    is_private,
    write_whole,
)
from terascope.streaming.state.state import Seen, StreamState
from terascope.types import Type

PARAMETERS: Final = "parameters"
SHOW: Final = "show"
"""The prefix of the names of request files."""
ROOT: Final = 0
PATIENCE: Final = 60.0
POLL_SECONDS: Final = 0.1

MOST_CHANGES: Final = 8
"""The most changes that a state keeps; earlier ones precede every open slice."""

SHOWN: Final = "#shown"
"""The end of the name of a copy; no query can have such a name."""


@dataclass(frozen=True)
class ControlRequest:
    path: Path
    name: str
    value: str | None = None
    """The new value of the parameter; None: `name` is a stream whose rows are requested."""


def send_request(run: Run, name: str, value: str | None = None) -> Path:
    """Write a request for the run to apply before its next batch.

    Raises:
        StreamError: the file cannot be written.
    """
    kind = SHOW if value is None else PARAMETERS
    content = {"name": name} if value is None else {"name": name, "value": value}
    path = RunFolder.of(Path(run.checkpoint)).control / f"{kind}-{time.time_ns()}.json"
    write_whole(path, json.dumps(content) + "\n")
    return path


def pending_requests(folder: RunFolder) -> Iterator[ControlRequest]:
    """The requests in the folder of a run, oldest first. A control folder that another user could
    have written to is ignored, and so is a file of another user than this one and root.
    """
    if not is_private(folder.control):
        return
    for kind in (PARAMETERS, SHOW):
        for path in sorted(folder.control.glob(f"{kind}-*.json")):
            try:
                found = path.lstat()
                if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.geteuid(), ROOT):
                    continue
                asked = json.loads(path.read_text(encoding="utf-8"))
                value = asked["value"] if kind == PARAMETERS else None
                yield ControlRequest(path, asked["name"], value)
            except (OSError, ValueError, KeyError):
                continue


def apply_request(state: StreamState, plan: Plan, request: ControlRequest) -> bool:
    """Apply a request to the state; return whether the state changes."""
    if request.value is not None:
        return change(state, plan, request.name, request.value) is not None
    if request.name in state.shown or request.name not in internal_streams(plan):
        return False
    state.shown = [*state.shown, request.name]
    return True


def rows_folder(
    run: Run,
    name: str,
    patience: float = PATIENCE,
    wait: Callable[[], None] = lambda: time.sleep(POLL_SECONDS),
    clock: Callable[[], float] = time.monotonic,
) -> Path:
    """The folder in which the rows of a stream appear. The rows of an internal stream are requested
    from the run when nobody has requested them before.

    Raises:
        StreamError: there is no such stream; or it is internal, and the run is over or does not
            apply the request.
    """
    if name in run.streams or name not in run.internal:
        return run.stream_folder(name)
    folder = Path(run.internal[name])
    if (folder / MANIFEST).exists():
        return folder
    if not run.is_alive:
        raise StreamError(f"'{name}' of {run.set_name} is internal, and nobody followed it")
    send_request(run, name)
    until = clock() + patience
    while not (folder / MANIFEST).exists():
        if clock() >= until or not run.is_alive:
            raise StreamError(
                f"{run.set_name} has not begun to show '{name}' within {patience:g} s:"
                " see terascope status"
            )
        wait()
    return folder


def changes_of(state: StreamState | None, plan: Plan) -> list[Change]:
    """The changes in a checkpoint, as values of the set's parameters."""
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
    """Change the parameters that have another value than at the last start; return these."""
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
    scans = [rel for stream in plan for rel in walk(stream.rel) if isinstance(rel, Scan)]
    clocks = [(scan, c, c.clock) for scan in scans for c in scan.columns if c.clock is not None]
    own = [one for one in clocks if not is_arrival(one[1].read_from)]
    if not own:  # no tuple has a time of its own
        found += [one.arrived_ns for one in seen.values()]
    for scan, column, unit in own:
        for interface in scan.interfaces:
            value = seen[interface].largest.get(column.read_from) if interface in seen else None
            if value is not None:
                found.append(int((value + 1) * (10**9 // FINENESS[unit])))
    return max(found, default=0)


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
        return with_inputs(rel, tuple(map(over_copies, inputs(rel))))

    for name in internal_streams(plan):
        if name in names:
            copied(name)
    return replace(plan, streams=(*plan.streams, *copies.values())) if copies else plan
