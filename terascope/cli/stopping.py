"""Ctrl-C and SIGTERM for commands that run until they are stopped.

In: signals. Out: a flag that the command looks at between two batches; the second signal ends the
command at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType


class AtOnce(KeyboardInterrupt):
    """Ctrl-C for the second time."""


class Stopping(AbstractContextManager["Stopping"]):
    """Ctrl-C and SIGTERM. Use it in a `with`, and install it when Spark runs, if it does."""

    def __init__(self) -> None:
        self.asked = False
        self._awake = threading.Event()
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def install(self) -> None:
        """From now on signals ask to stop. Only the main thread of a process can do so."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._take)

    def _take(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.asked:
            raise AtOnce
        self.asked = True
        self._awake.set()

    def wake(self) -> None:
        """End the present sleep: there is a new status."""
        self._awake.set()

    def sleep(self, seconds: float) -> None:
        """Wait for this time, or until `wake` is called."""
        self._awake.wait(seconds)
        self._awake.clear()

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
