"""The clock of a run: the wall clock of live sources, or the time of a replayed trace.

In: the wall clock, a speed, and the start of the trace. Out: nanoseconds. A replay that was stopped
resumes at the time it had reached, whatever the wall clock says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from terascope.connectors.live.settings import Speed


class Clock(Protocol):
    """Time as links go by it."""

    def reading(self) -> int | None:
        """Nanoseconds; None when the clock does not run yet, or is driven by the data."""
        ...

    def start(self, trace_ns: int) -> None:
        """The trace begins, or has been known to be as far as this."""
        ...


class WallClock:
    """Live: the time on the wall. It never goes back, as the wall's may."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._latest = 0

    def reading(self) -> int:
        self._latest = max(self._latest, self._now())
        return self._latest

    def start(self, trace_ns: int) -> None:
        self._latest = max(self._latest, trace_ns)


class ReplayClock:
    """Paced: time of the trace, `speed` times as fast as on the wall."""

    def __init__(self, now: Callable[[], int], speed: Speed) -> None:
        self._now = now
        self._speed = speed
        self._pair: tuple[int, int] | None = None
        """A time of the trace, and the time of the wall clock then."""

    def reading(self) -> int | None:
        if self._pair is None:
            return None
        trace_ns, wall_ns = self._pair
        return trace_ns + self._speed.trace_ns(max(self._now() - wall_ns, 0))

    def start(self, trace_ns: int) -> None:
        here = self.reading()
        if here is None or here < trace_ns:
            self._pair = (trace_ns, self._now())


class DataClock:
    """The clock of an unpaced replay: admitted entries set the time, see `admission`."""

    def reading(self) -> None:
        return None

    def start(self, trace_ns: int) -> None:
        pass


def clock_of(speed: Speed | None, now: Callable[[], int]) -> Clock:
    """The clock for a speed."""
    if speed is None:
        return WallClock(now)
    return ReplayClock(now, speed) if speed.is_paced else DataClock()
