"""The memory of a column of quantile states: regions of words in one array.

In: nothing. Out: parts of kernels that find, take and free regions, and `Regions`, which owns the
arrays.

A state of a few values must cost little, one of many values must not be moved often. So each state
has one region of the array `arena`; a region has one of few sizes, which double: 2, 4, 8 .. words,
up to `most`, the size of the scratchpad. Freed regions of a size are linked through their first
word, and are taken again before the array is used further. The first words of the array are for
this: arena[c] is the first freed region of size number c, 0 when there is none, and arena[0] is
where the unused rest of the array begins.

Four words of `meta` describe a state: where its next value goes, where its region ends, its
description, and its eps as a FLOAT (0: that of the column). The description has the size number in
6 bits (0: there is no region yet), a flag, and from bit 8 on the number of its sorted entries.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import INTEGER, column, compiled_for, inlined, output

Words = NDArray[np.int64]

FIRST_REGION: Final = 64
"""Where regions begin."""
SMALL_ARENA: Final = 1 << 23
META: Final = 4
"""Words that describe a state."""
WIDE: Final = 64
"""Flag: an entry has four words, not two (terascope.sketches.quantile_entries)."""
SIZE: Final = 63
"""The bits of the size number."""

DONE: Final = 0
NEEDS_ARENA: Final = 1
NEEDS_WORK: Final = 2
NEEDS_OUTBOX: Final = 3
DAMAGED: Final = 4
MIXED: Final = 5
"""Why a kernel came back."""


@inlined
def region_words(size: Any, most: Any) -> Any:
    """The words of a region of a size number, from 1 on."""
    if size >= 60:
        return most
    return min(np.int64(1) << size, most)


@inlined
def size_for(words: Any, most: Any) -> Any:
    """The smallest size number whose regions have so many words, if any has."""
    size = np.int64(1)
    while region_words(size, most) < min(words, most):
        size += 1
    return size


@inlined
def take_region(arena: Any, size: Any, most: Any) -> Any:
    """The first word of a region; 0 when the array is full."""
    start = arena[size]
    if start > 0:
        arena[size] = arena[start]
        return start
    words = region_words(size, most)
    start = arena[0]
    if start + words > len(arena):
        return np.int64(0)
    arena[0] = start + words
    return start


@inlined
def free_region(arena: Any, size: Any, start: Any) -> None:
    arena[start] = arena[size]
    arena[size] = start


@inlined
def move_values(meta: Any, arena: Any, at: Any, size: Any, most: Any) -> Any:
    """Move a state without sorted entries to a region of another size; False when there is none."""
    start = take_region(arena, size, most)
    if start == 0:
        return False
    old_size = meta[at + 2] & SIZE
    count = np.int64(0)
    if old_size:
        old = meta[at + 1] - region_words(old_size, most)
        count = meta[at] - old
        for i in range(count):
            arena[start + i] = arena[old + i]
        free_region(arena, old_size, old)
    meta[at] = start + count
    meta[at + 1] = start + region_words(size, most)
    meta[at + 2] = size
    return True


@compiled_for(column(np.int64), INTEGER, output(np.int64), output(np.int64))
def drop_states(numbers: Any, most: Any, meta: Any, arena: Any) -> None:
    """Free the regions of some states."""
    for i in range(len(numbers)):
        at = numbers[i] * META
        size = meta[at + 2] & SIZE
        if size:
            free_region(arena, size, meta[at + 1] - region_words(size, most))
        for k in range(META):
            meta[at + k] = 0


class Regions:
    """The arrays of one column. Memory that was never used counts as none: it is not touched."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.clear()

    def clear(self) -> None:
        self.states = 0
        self.meta: Words = np.zeros(META * 64, np.int64)
        self.arena: Words = np.empty(1024, np.int64)
        self.arena[:FIRST_REGION] = 0
        self.arena[0] = FIRST_REGION

    def begin(self, numbers: NDArray[np.int64]) -> None:
        """Make room for the descriptions of states up to the largest number."""
        if not len(numbers):
            return
        self.states = max(self.states, int(numbers.max()) + 1)
        if META * self.states > len(self.meta):
            larger = np.zeros(max(META * self.states, 2 * len(self.meta)), np.int64)
            larger[: len(self.meta)] = self.meta
            self.meta = larger

    def known(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of states that have begun."""
        return np.ascontiguousarray(numbers[numbers < self.states], np.int64)

    def grow(self) -> None:
        """Make the array larger: four times while it is small, since memory that is not touched
        costs nothing and moving all regions does.
        """
        used = int(self.arena[0])
        larger = np.empty((4 if used < SMALL_ARENA else 2) * len(self.arena), np.int64)
        larger[:used] = self.arena[:used]
        self.arena = larger

    def drop(self, numbers: NDArray[np.int64]) -> None:
        drop_states(self.known(numbers), self.most, self.meta, self.arena)

    @property
    def memory_bytes(self) -> int:
        return 8 * (META * self.states + int(self.arena[0]))
