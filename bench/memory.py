"""Peak memory of a process and all processes below it, sampled while a contender runs.

In: a process id. Out: megabytes. Counted are the pages a process has for itself (anonymous and
shared memory); files mapped or cached are the kernel's to drop. Linux only: elsewhere None.
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

PROC = Path("/proc")
INTERVAL = 0.1


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
        tree = process_tree(self._pid)
        sizes = {pid: own_megabytes(pid) for pid in tree}
        known = {pid: size for pid, size in sizes.items() if size is not None}
        if not known:
            return
        self.peak_mb = max(self.peak_mb or 0.0, sum(known.values()))
        below = [size for pid, size in known.items() if pid != self._pid]
        if below:
            self.worker_mb = max(self.worker_mb or 0.0, *below)


def process_tree(root: int) -> list[int]:
    """The process and all its descendants; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found


def parents() -> dict[int, int]:
    """Every process and its parent."""
    found: dict[int, int] = {}
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
        found[int(folder.name)] = int(text.rpartition(")")[2].split()[1])
    return found


def own_megabytes(pid: int) -> float | None:
    try:
        lines = (PROC / str(pid) / "status").read_text(encoding="latin-1").splitlines()
    except OSError:
        return None
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem"))]
    return sum(kilobytes) / 1024 if kilobytes else None
