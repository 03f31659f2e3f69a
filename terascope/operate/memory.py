"""The memory of a run, as the system counts it.

In: nothing but /proc. Out: bytes of the driver, which is this process and the JVM it started, and
of the workers, which are the other processes that descend from them. Where there is no /proc,
the peak of this process alone.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
JVM = "java"


@dataclass(frozen=True)
class Process:
    """One line of the table of processes."""

    pid: int
    parent: int
    name: str
    memory_bytes: int


def used_memory(pid: int, processes: list[Process]) -> tuple[int, int]:
    """Bytes of the driver and of its workers."""
    children: dict[int, list[Process]] = {}
    for one in processes:
        children.setdefault(one.parent, []).append(one)
    driver = sum(one.memory_bytes for one in processes if one.pid == pid)
    workers = 0
    pending = list(children.get(pid, ()))
    while pending:
        one = pending.pop()
        pending += children.get(one.pid, ())
        if one.name == JVM:
            driver += one.memory_bytes
        else:
            workers += one.memory_bytes
    return driver, workers


def running_processes(proc: Path = Path("/proc")) -> list[Process]:
    """All processes that can be seen."""
    found = []
    for path in proc.glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except OSError:
            continue  # it ended while we looked
        # The name of a program may have spaces and brackets; what follows the last one is plain.
        head, _, rest = text.rpartition(")")
        number, _, name = head.partition(" (")
        facts = rest.split()
        found.append(Process(int(number), int(facts[1]), name, int(facts[21]) * PAGE))
    return found


def memory_now() -> tuple[int, int]:
    """Bytes of this process as a driver, and of its workers."""
    driver, workers = used_memory(os.getpid(), running_processes())
    return driver or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, workers
