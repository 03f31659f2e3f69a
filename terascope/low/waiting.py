"""Groups that left a table and wait until their epoch is over.

In: rows of groups, by epoch. Out: blocks, one for each epoch that is over, in which every group
stands once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from terascope.low.groups import Block, Rows
from terascope.low.open_table import merge_groups
from terascope.low.slots import Shape
from terascope.types import INT_MIN

NO_EPOCH = INT_MIN
"""The epoch of tuples whose temporal key is NULL, and of aggregations that have none."""


@dataclass(frozen=True)
class Released:
    """Groups of one epoch. Not whole: a group may stand here more than once."""

    block: Block
    whole: bool


class Waiting:
    """The groups of one query, by epoch."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._rows: dict[int, list[Rows]] = {}

    def add(self, epoch: int, rows: Rows) -> None:
        if len(rows):
            self._rows.setdefault(epoch, []).append(rows)

    def add_mixed(self, epochs: np.ndarray[tuple[int], np.dtype[np.int64]], rows: Rows) -> None:
        """Rows of several epochs."""
        if len(rows):
            order = np.argsort(epochs, kind="stable")
            epochs = epochs[order]
            edges = np.flatnonzero(np.diff(epochs)) + 1
            for part in np.split(order, edges):
                self.add(int(epochs[0]), rows[part])
                epochs = epochs[len(part) :]

    def settle(self) -> None:
        """What stays is copied out of memory that was borrowed."""
        for parts in self._rows.values():
            parts[:] = [own(rows) for rows in parts]

    @property
    def memory_bytes(self) -> int:
        return sum(rows.nbytes for blocks in self._rows.values() for rows in blocks)

    def __len__(self) -> int:
        return len(self._rows)

    def release(self, before: int | None) -> Iterator[Released]:
        """Epochs before one, or all of them, in order."""
        over = sorted(e for e in self._rows if before is None or e < before)
        for epoch in over:
            parts = self._rows.pop(epoch)
            yield from released(None if epoch == NO_EPOCH else epoch, parts, self._shape)


def own(rows: Rows) -> Rows:
    """Rows in memory of their own."""
    return rows if rows.base is None else rows.copy()


def released(epoch: int | None, parts: list[Rows], shape: Shape) -> Iterator[Released]:
    if len(parts) == 1:
        yield Released(Block(epoch, parts[0]), True)
        return
    merged = merge_groups(shape, parts)
    if merged is not None:
        yield Released(Block(epoch, merged), True)
        return
    for rows in parts:  # a 64-bit sum of parts overflows: above, 128 bits decide
        yield Released(Block(epoch, rows), False)
