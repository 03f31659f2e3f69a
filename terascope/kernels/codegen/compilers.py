"""Kernels compiled by several processes at once.

In: kernels by use and shape. Out: machine code in the cache on disk. numba compiles under locks of
its process, so that threads do not help. Other processes do: each imports its modules (0.6 s of
processor time) and then takes one kernel after another. The first process compiles as well, and
starts others only when kernels turn out not to be in the cache and enough of them are left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from threading import Thread
from time import monotonic
from typing import Final, Generic, TypeVar

from terascope.kernels.codegen.generated_modules import cache_folder

SLOW_S: Final = 0.2
"""A kernel that takes longer was not in the cache."""
SLOW_KERNELS: Final = 3
"""The number of slow kernels that indicates a set that was never compiled."""
LEFT_FOR_EACH: Final = 4
"""So many kernels must be left for each process that is started."""
WORKER: Final = "terascope.execute.compile_worker"
DONE: Final = "done\n"

Kernel = TypeVar("Kernel")


class Compilers(Generic[Kernel]):
    """Compiles kernels in this process and, if they are many, in others."""

    def __init__(
        self,
        make: Callable[[Kernel], None],
        written: Callable[[Kernel], object],
        processes: int,
        tell: Callable[[int], None],
    ) -> None:
        """`make` compiles a kernel, or loads it; `written` is its JSON for another process; `tell`
        is called with the number of kernels taken.
        """
        self._make = make
        self._written = written
        self._processes = processes if cache_folder() is not None else 1
        self._tell = tell
        self._pending: deque[Kernel] = deque()
        self._threads: list[Thread] = []
        self._workers: list[subprocess.Popen[str]] = []

    def compile(self, kernels: Sequence[Kernel]) -> None:
        """Make every kernel ready in this process."""
        self._pending.extend(kernels)
        slow = 0
        try:
            while (kernel := self._next(self._pending.popleft)) is not None:
                self._tell(len(kernels) - len(self._pending))
                began = monotonic()
                self._make(kernel)
                slow += monotonic() - began > SLOW_S
                if slow >= SLOW_KERNELS and not self._workers:
                    self._start()
            for thread in self._threads:
                thread.join()
        finally:
            self._stop()
        for kernel in kernels:  # what others compiled is loaded now; what they could not, compiled
            self._make(kernel)

    @property
    def started(self) -> int:
        """The number of processes that were started."""
        return len(self._workers)

    def _start(self) -> None:
        number = min(self._processes - 1, len(self._pending) // LEFT_FOR_EACH)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        for _ in range(number):
            worker = subprocess.Popen(
                [sys.executable, "-m", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                text=True,
            )
            self._workers.append(worker)
            thread = Thread(target=self._feed, args=(worker,), daemon=True)
            thread.start()
            self._threads.append(thread)

    @staticmethod
    def _next(taken: Callable[[], Kernel]) -> Kernel | None:
        """A pending kernel. There may be none any more: others take some, too."""
        try:
            return taken()
        except IndexError:
            return None

    def _feed(self, worker: subprocess.Popen[str]) -> None:
        """Hand pending kernels to a process until there are none, or it fails."""
        assert worker.stdin is not None
        assert worker.stdout is not None
        reply = DONE
        while reply == DONE and (kernel := self._next(self._pending.pop)) is not None:
            try:
                worker.stdin.write(json.dumps(self._written(kernel)) + "\n")
                worker.stdin.flush()
                reply = worker.stdout.readline()
            except OSError:
                return

    def _stop(self) -> None:
        for worker in self._workers:
            worker.terminate()
            worker.communicate()
