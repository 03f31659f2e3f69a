"""Points at which a process kills itself, for tests that no row is lost then.

In: the environment variable TERASCOPE_CRASH, `POINT:N`. Out: the process kills itself, as `kill -9`
would, when it reaches that point for the N-th time. Without the variable, nothing.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Final, Literal, TypeAlias, get_args

VARIABLE: Final = "TERASCOPE_CRASH"

Point: TypeAlias = Literal["stored", "parts", "manifest", "manifests", "state", "cleaned"]
"""The points in the order of a micro-batch: segments are stored; parts of all queries are written;
one more query has its line in the manifest; all have; the state is in place; unneeded files are
removed."""

POINTS: Final[tuple[Point, ...]] = get_args(Point)

reached: Final[Counter[str]] = Counter()
"""The number of times that this process reached each point."""


def crash_here(point: Point) -> None:
    """Kill this process, if the variable says so."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    name, _, times = wanted.partition(":")
    if name == point:
        reached[point] += 1
        if reached[point] == int(times or 1):
            os.kill(os.getpid(), signal.SIGKILL)
