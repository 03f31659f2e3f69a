"""Finding the rows of a named stream of a run, asking for them when nobody has before.

In: a run, and a name. Out: the folder in which the stream's rows appear. One that is internal to
its set is delivered from now on, by an order in the run's control folder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from terascope.operate.orders import SHOW
from terascope.streaming.mistakes import StreamError
from terascope.streaming.state.runs import CONTROL, MANIFEST, Run, run_folder, write_whole

PATIENCE: Final = 60.0
POLL_SECONDS: Final = 0.1


def followed(
    run: Run,
    name: str,
    patience: float = PATIENCE,
    wait: Callable[[], None] = lambda: time.sleep(POLL_SECONDS),
    clock: Callable[[], float] = time.monotonic,
) -> Path:
    """The folder of a stream.

    Raises:
        StreamError: there is no such stream; or it is internal, and the run is over or does not
            take the order.
    """
    if name in run.streams or name not in run.internal:
        return run.stream_folder(name)
    folder = Path(run.internal[name])
    if is_there(folder):
        return folder
    if not run.is_alive:
        raise StreamError(f"'{name}' of {run.set_name} is internal, and nobody followed it")
    order = run_folder(Path(run.checkpoint)) / CONTROL / f"{SHOW}-{time.time_ns()}.json"
    write_whole(order, json.dumps({"name": name}) + "\n")
    until = clock() + patience
    while not is_there(folder):
        if clock() >= until or not run.is_alive:
            raise StreamError(
                f"{run.set_name} has not begun to show '{name}' within {patience:g} s:"
                " see terascope status"
            )
        wait()
    return folder


def is_there(folder: Path) -> bool:
    return (folder / MANIFEST).exists()
