"""How many tuples go from the lower level to the upper one (paper 0, section 5), counted exactly.

In: the SYNs and a set of windows. Out: for each plan the number of tuples it streams. Nothing is
aggregated for that: a source is a group of a slice when its last tuple was in an earlier one, and
of those windows of a query that it was not in yet. `tests/bench/test_windows.py` holds these
numbers against what the low level gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from bench.windows.snort import Syns
from terascope.functions.slices import SliceVector
from terascope.machine_code import INTEGER, column, compiled_for
from terascope.sharing.slices import Periodic, composed, composed_panes

Ints = npt.NDArray[np.int64]
FULL, PAIRED, PANED, PULL_UP = "full push-down", "paired", "paned", "pull-up"
PLANS: Final = (FULL, PAIRED, PANED, PULL_UP)


@dataclass(frozen=True)
class Counted:
    """A stream whose groups are counted: by source, or all tuples in one group."""

    stream: Syns
    grouped: bool

    @property
    def keys(self) -> Ints:
        sources = self.stream.sources
        return sources if self.grouped else np.zeros_like(sources)

    def sent(self, plan: str, windows: Sequence[Periodic]) -> int:
        """Tuples that go up."""
        if plan == FULL:
            return sum(self.results(window) for window in windows)
        if plan == PULL_UP:
            return len(self.stream)
        vector = composed(windows) if plan == PAIRED else composed_panes(windows)
        assert vector is not None
        return self.groups(vector)

    def groups(self, vector: SliceVector) -> int:
        """Groups of slices, gaps aside."""
        edges = np.array([*vector.starts, vector.period], np.int64)
        gaps = np.zeros(len(vector.lengths), np.int64)
        gaps[list(vector.gaps)] = 1
        return int(slice_groups(self.stream.times, self.keys, edges, gaps))

    def results(self, window: Periodic) -> int:
        """Groups of the windows of a query, those included that end after the last tuple."""
        return int(window_groups(self.stream.times, self.keys, window.range, window.slide))


@compiled_for(column(np.int64), column(np.int64), column(np.int64), column(np.int64))
def slice_groups(times: Ints, keys: Ints, edges: Ints, gaps: Ints) -> int:
    """`times` in order; `keys` from 0 on; `edges` of the slices of a period."""
    last = np.full(keys.max() + 1, -1, np.int64)
    base, place, period, count = np.int64(0), 0, edges[-1], 0
    for i in range(len(times)):
        if times[i] - base >= period:
            base += (times[i] - base) // period * period
            place = 0
        while times[i] - base >= edges[place + 1]:
            place += 1
        start = base + edges[place]
        if gaps[place] == 0 and last[keys[i]] != start:
            last[keys[i]] = start
            count += 1
    return count


@compiled_for(column(np.int64), column(np.int64), INTEGER, INTEGER)
def window_groups(times: Ints, keys: Ints, range_: int, slide: int) -> int:
    """Windows are numbered by their ends: a tuple is in those from `first` to `latest`."""
    last = np.full(keys.max() + 1, -1, np.int64)
    count = 0
    for i in range(len(times)):
        first = times[i] // slide + 1
        latest = (times[i] + range_) // slide
        new = latest - max(first - 1, last[keys[i]])
        if new > 0:
            count += new
            last[keys[i]] = latest
    return count
