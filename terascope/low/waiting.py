"""Groups that left a table and wait until their epoch is over.

In: rows of groups, by epoch. Out: blocks of the epochs that are over, in which every group stands
once. They wait in memory, or on disk when a task needs room.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from terascope.low.aside import PARTS, Aside, Taken, parts_of
from terascope.low.groups import Block, Rows
from terascope.low.open_table import merge_groups
from terascope.low.slots import Shape
from terascope.types import INT_MIN

MERGED_ROWS: Final = 1 << 15
"""About as many rows are merged at a time."""
NO_EPOCH = INT_MIN
"""The epoch of tuples whose temporal key is NULL, and of aggregations that have none."""


@dataclass(frozen=True)
class Released:
    """Groups of one epoch. Not whole: a group may stand here more than once."""

    block: Block
    whole: bool


class Waiting:
    """The groups of one query, by epoch."""

    def __init__(self, shape: Shape, once: bool) -> None:
        """`once`: whether every group stands only once in the rows that are added together."""
        self._shape = shape
        self._once = once
        self._rows: dict[int, list[Rows]] = {}
        self._borrowed: set[int] = set()
        self._aside = Aside(shape, once)

    def add(self, epoch: int, rows: Rows) -> None:
        """Rows whose memory may be used again once they are settled."""
        if len(rows):
            self._rows.setdefault(epoch, []).append(rows)
            self._borrowed.add(epoch)

    def add_mixed(self, epochs: np.ndarray[tuple[int], np.dtype[np.int64]], rows: Rows) -> None:
        """Rows of several epochs."""
        if len(rows):
            order = np.argsort(epochs, kind="stable")
            epochs, rows = epochs[order], rows[order]
            edges = [0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist(), len(rows)]
            values = epochs[edges[:-1]].tolist()
            for epoch, (start, end) in zip(values, pairwise(edges), strict=True):
                self._rows.setdefault(epoch, []).append(rows[start:end])

    def settle(self) -> None:
        """What stays is copied out of memory that was borrowed."""
        for epoch in self._borrowed & self._rows.keys():
            self._rows[epoch] = [own(rows) for rows in self._rows[epoch]]
        self._borrowed.clear()

    def put_aside(self) -> None:
        """To disk."""
        for epoch, lots in self._rows.items():
            for rows in lots:
                self._aside.put(epoch, rows)
        self._rows.clear()

    @property
    def memory_bytes(self) -> int:
        return sum(rows.nbytes for blocks in self._rows.values() for rows in blocks)

    def __len__(self) -> int:
        return len(self._rows.keys() | self._aside.epochs)

    def release(self, before: int | None) -> Iterator[Released]:
        """Epochs before one, or all of them, in order."""
        known = self._rows.keys() | self._aside.epochs
        for epoch in sorted(e for e in known if before is None or e < before):
            lots = self._rows.pop(epoch, [])
            name = None if epoch == NO_EPOCH else epoch
            if epoch not in self._aside.epochs:
                yield from self._released(name, lots)
                continue
            for rows in lots:
                self._aside.put(epoch, rows)
            del lots
            yield from self._from_disk(name, self._aside.take(epoch))

    def _released(self, epoch: int | None, lots: list[Rows]) -> Iterator[Released]:
        merged = self._merged(lots)
        if merged is not None:
            yield Released(Block(epoch, merged), True)
            return
        for rows in lots:  # a 64-bit sum of parts overflows: above, 128 bits decide
            yield Released(Block(epoch, rows), False)

    def _merged(self, lots: list[Rows]) -> Rows | None:
        """Every group once; many rows part by part, each within the cache."""
        if len(lots) == 1 and self._once:
            return lots[0]
        number = sum(len(rows) for rows in lots) // MERGED_ROWS
        if number < 2:
            return merge_groups(self._shape, lots)
        done: list[Rows] = []
        for part in parts_of(lots, self._shape, 1 << (min(number, PARTS).bit_length() - 1)):
            merged = merge_groups(self._shape, part)
            if merged is None:
                return None
            done.append(merged)
        return np.concatenate(done)

    def _from_disk(self, epoch: int | None, taken: Taken) -> Iterator[Released]:
        """A part at a time: whether a sum might overflow must be known before the first."""
        for lots in taken.parts:
            if taken.can_overflow:
                yield from (Released(Block(epoch, rows), False) for rows in lots)
            elif lots:
                yield from self._released(epoch, lots)


def own(rows: Rows) -> Rows:
    """Rows in memory of their own."""
    return rows if rows.base is None else rows.copy()
