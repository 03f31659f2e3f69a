"""Control requests: what people ask of a running set.

A request is a JSON file in the control folder of the run: another value of a parameter (`terascope
set`), or the rows of a stream that the set does not deliver (`terascope tail`). The run applies all
pending requests to its state between two batches.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from terascope.operate.parameter_changes import change
from terascope.operate.showing import internal_streams
from terascope.plan.plan import Plan
from terascope.streaming.mistakes import StreamError
from terascope.streaming.state.runs import (
    CONTROL,
    MANIFEST,
    Run,
    is_private,
    run_folder,
    write_whole,
)
from terascope.streaming.state.state import StreamState

PARAMETERS: Final = "parameters"
SHOW: Final = "show"
"""How the names of request files begin."""
ROOT: Final = 0
PATIENCE: Final = 60.0
POLL_SECONDS: Final = 0.1


@dataclass(frozen=True)
class ControlRequest:
    path: Path
    name: str
    value: str | None = None
    """The new value of the parameter; None: `name` is a stream whose rows are wanted."""


def send_request(run: Run, name: str, value: str | None = None) -> Path:
    """Write a request for the run to apply before its next batch.

    Raises:
        StreamError: the file cannot be written.
    """
    kind = SHOW if value is None else PARAMETERS
    content = {"name": name} if value is None else {"name": name, "value": value}
    path = run_folder(Path(run.checkpoint)) / CONTROL / f"{kind}-{time.time_ns()}.json"
    write_whole(path, json.dumps(content) + "\n")
    return path


def pending_requests(folder: Path) -> Iterator[ControlRequest]:
    """The requests in the folder of a run, oldest first. A control folder that another user could
    have written to is ignored, and so is a file of another user than this one and root.
    """
    if not is_private(folder / CONTROL):
        return
    for kind in (PARAMETERS, SHOW):
        for path in sorted((folder / CONTROL).glob(f"{kind}-*.json")):
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
    """Apply a request to the state; returns whether the state changes."""
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
