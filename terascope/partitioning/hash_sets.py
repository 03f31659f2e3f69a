"""The distinct hashes of many tuples: which values a partition has.

In: the hashes of the values of a partitioning set, batch by batch. Out: the distinct ones. Most
tuples repeat a value that was there a moment ago, so each hash is first looked up among those that
came last, which are few enough for the cache of a core, and then in a table with open addressing,
which doubles when it is half full. Sorting (np.unique) costs ten times as much.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from terascope.kernels.columns.arrays import Ints
from terascope.machine_code import INTEGER, WORD, column, compiled_for, output
from terascope.partitioning.placing import Hashes

LATEST: Final = 1 << 12
"""The hashes that came last."""
FIRST_PLACES: Final = 1 << 12
"""The places of an empty table."""


class HashSet:
    """A set of 64-bit hashes. Zero is a hash like any other, and marks an empty place."""

    def __init__(self) -> None:
        self._table = np.zeros(FIRST_PLACES, np.uint64)
        self._latest = np.zeros(LATEST, np.uint64)
        self._known = np.zeros(2, np.int64)
        """The number of hashes in the table, and whether zero is one, too."""

    def __len__(self) -> int:
        return int(self._known.sum())

    def add(self, hashes: Hashes) -> None:
        begin = 0
        while (begin := int(add_hashes(hashes, begin, self._latest, self._table, self._known))) < (
            len(hashes)
        ):
            self._grow()

    def _grow(self) -> None:
        before = self.values()
        self._table = np.zeros(2 * len(self._table), np.uint64)
        self._latest[:] = 0
        self._known[:] = 0
        add_hashes(before, 0, self._latest, self._table, self._known)

    def values(self) -> Hashes:
        """All hashes, in order."""
        found = np.sort(self._table[self._table != 0])
        return np.append(np.zeros(1, np.uint64), found) if self._known[1] else found


@compiled_for(column(np.uint64), INTEGER, output(np.uint64), output(np.uint64), output(np.int64))
def add_hashes(hashes: Hashes, begin: int, latest: Hashes, table: Hashes, known: Ints) -> int:
    """Add the hashes from a place on; return the place of the first that was not added, because the
    table is half full.
    """
    recent = np.uint64(len(latest) - 1)
    last = np.uint64(len(table) - 1)
    most = len(table) // 2
    count = known[0]
    for i in range(begin, len(hashes)):
        h = hashes[i]
        if h == np.uint64(0):
            known[1] = 1
            continue
        if latest[h & recent] == h:
            continue
        at = (h >> np.uint64(20)) & last
        while table[at] != np.uint64(0) and table[at] != h:
            at = (at + np.uint64(1)) & last
        if table[at] == np.uint64(0):
            if count >= most:
                known[0] = count
                return i
            table[at] = h
            count += 1
        latest[h & recent] = h
    known[0] = count
    return len(hashes)


@compiled_for(column(np.uint64), WORD, WORD)
def first_outside(hashes: Hashes, first: int, last: int) -> int:
    """The place of the first hash that is not between two others, both inclusive; -1: there is
    none.
    """
    for i in range(len(hashes)):
        if hashes[i] < first or hashes[i] > last:
            return i
    return -1
