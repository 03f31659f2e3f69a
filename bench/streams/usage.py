"""What a tree of processes uses: processor time, and memory by what the processes are.

In: the process at the root, a contender's. Out: seconds of processor time that all of them have
used, ended ones too; megabytes of the driver (the root), of Spark's JVM and of the workers
together. Linux only: elsewhere nothing is seen.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from bench.memory import JVM, PROC, own_megabytes, process_tree

TIMES = slice(11, 15)
"""Of /proc/PID/stat behind the name: user, system, and both of children that have ended."""


def cpu_seconds(root: int) -> float:
    """Of a process and all below it, so far."""
    ticks = 0
    for process in process_tree(root):
        try:
            text = (PROC / str(process.pid) / "stat").read_text(encoding="latin-1")
        except OSError:
            continue  # it has just ended: its parent has its times
        ticks += sum(map(int, text.rpartition(")")[2].split()[TIMES]))
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Memory:
    """Megabytes of pages that the processes have for themselves."""

    driver: float = 0.0
    jvm: float = 0.0
    workers: float = 0.0


def memory_of(root: int) -> Memory:
    """By what the processes are."""
    driver = jvm = workers = 0.0
    for process in process_tree(root):
        size = own_megabytes(process.pid) or 0.0
        if process.pid == root:
            driver += size
        elif process.program == JVM:
            jvm += size
        else:
            workers += size
    return Memory(driver, jvm, workers)


class Sampler:
    """Calls something every so many seconds, from a thread, until it is left."""

    def __init__(self, seconds: float, sample: Callable[[float], None]) -> None:
        """`sample` is given the seconds since it was entered."""
        self._seconds = seconds
        self._sample = sample
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._began = 0.0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._sample(0.0)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._sample(time.monotonic() - self._began)

    def _run(self) -> None:
        while not self._done.wait(self._seconds):
            self._sample(time.monotonic() - self._began)
