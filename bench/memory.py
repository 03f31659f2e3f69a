"""Peak memory of a process and all processes below it, sampled while a contender runs.

In: a process id. Out: megabytes. Counted are the pages a process has for itself (anonymous and
shared memory); files mapped or cached are the kernel's to drop. Linux only: elsewhere None.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

PROC = Path("/proc")
INTERVAL = 0.1
JVM = "java"


class MemoryWatch:
    """Samples until it is left; then `peak_mb` and `worker_mb` hold what was seen."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak_mb: float | None = None
        self.worker_mb: float | None = None

    def __enter__(self) -> Self:
        self._sample()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        self._sample()

    def _watch(self) -> None:
        while not self._done.wait(INTERVAL):
            self._sample()

    def _sample(self) -> None:
        sizes = [(process, own_megabytes(process.pid)) for process in process_tree(self._pid)]
        known = [(process, size) for process, size in sizes if size is not None]
        if not known:
            return
        self.peak_mb = max(self.peak_mb or 0.0, sum(size for _, size in known))
        workers = [size for p, size in known if p.pid != self._pid and p.program != JVM]
        if workers:
            self.worker_mb = max(self.worker_mb or 0.0, *workers)


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    program: str


def process_tree(root: int) -> list[Process]:
    """The process and all its descendants; empty where there is no /proc."""
    everybody = processes()
    children: dict[int, list[Process]] = {}
    for process in everybody:
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [process for process in everybody if process.pid == root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        below = children.get(process.pid, [])
        if process.program == JVM:
            # Before Java runs a command, its child is for a moment a second name for its memory.
            below = [p for p in below if executable(p.pid) != executable(process.pid)]
        waiting += below
    return found


def executable(pid: int) -> str | None:
    try:
        return str((PROC / str(pid) / "exe").readlink())
    except OSError:
        return None


def processes() -> list[Process]:
    """All of this machine."""
    found: list[Process] = []
    try:
        folders = [path for path in PROC.iterdir() if path.name.isdigit()]
    except OSError:
        return found
    for folder in folders:
        try:
            text = (folder / "stat").read_text(encoding="latin-1")
        except OSError:
            continue  # it has just ended
        # The name of a program stands in brackets and may itself hold brackets and spaces.
        before, _, behind = text.rpartition(")")
        program = before.partition("(")[2]
        found.append(Process(int(folder.name), int(behind.split()[1]), program))
    return found


def own_megabytes(pid: int) -> float | None:
    try:
        lines = (PROC / str(pid) / "status").read_text(encoding="latin-1").splitlines()
    except OSError:
        return None
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem"))]
    return sum(kilobytes) / 1024 if kilobytes else None
