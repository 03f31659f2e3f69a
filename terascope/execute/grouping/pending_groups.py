"""Groups that left a table and are pending until their epoch is over.

In: rows of groups, with their epochs. Out: blocks of the epochs that are over, in which every group
occurs once. Pending groups are in memory, or spilled when a task needs memory. The groups of most
epochs come in one block and leave unchanged; an epoch with several blocks is merged. No step is
done for each epoch by itself, because there may be as many epochs as tuples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from terascope.execute.spill import PARTS, SpilledGroups, arranged, parts_of, temporary_file
from terascope.kernels.columns.arrays import Ints, Rows
from terascope.kernels.merge.float_ranges import has_ranges
from terascope.kernels.merge.groups import Block
from terascope.kernels.merge.merge_table import merge_groups
from terascope.kernels.merge.states import RowStates
from terascope.kernels.tables.slots import Shape

MERGED_ROWS: Final = 1 << 15
"""The approximate number of rows that are merged at a time."""
FEW_EPOCHS: Final = 8
"""The most epochs that are merged one by one; with more, the epoch becomes a key."""


@dataclass(frozen=True)
class Released:
    """Groups of epochs that are over. If not whole, a group may occur more than once, in parts
    whose sums exceed 64 bits or that belong to different ranges of FLOATs.
    """

    block: Block
    whole: bool


class PendingGroups:
    def __init__(self, shape: Shape, once: bool) -> None:
        """`once`: whether a group occurs only once in the rows that are added together."""
        self._shape = shape
        self._once = once
        self._lots: list[Block] = []
        """Lots of groups, each in order of its epochs."""
        self._borrowed: list[Block] = []
        """Lots in memory that belongs to a batch."""
        self.states = RowStates.of(shape)
        """The states of the pending groups, those in a file among them."""
        self._state_bytes = 0
        """The bytes of states that were written."""
        self._spilled = SpilledGroups(shape, once)

    def add(self, epochs: int | Ints, rows: Rows) -> None:
        """Add rows of one epoch, in memory that may be reused after `settle`, or of several. Their
        states are in `states` already.
        """
        if isinstance(epochs, int):
            if len(rows):
                self._borrowed.append(Block.of(epochs, rows, self.states))
        elif len(rows):
            self._lots.append(Block.of_each(epochs, rows, self.states))

    def settle(self) -> None:
        """Copy the remaining groups out of borrowed memory."""
        self._lots += [replace(b, rows=own(b.rows)) for b in self._borrowed]
        self._borrowed.clear()

    def spill(self) -> None:
        for block in (*self._lots, *self._borrowed):
            self._spilled.spill(self._arranged(block))
        self._lots.clear()
        self._borrowed.clear()
        if self.states is not None:
            self._state_bytes += self.states.spill(temporary_file)

    def _arranged(self, block: Block) -> Block:
        """Groups whose states stand in the order in which they will be read again."""
        if self.states is None:
            return block
        rows = self.states.moved(arranged(block, self._shape), self.states)
        self.states.drop(block.rows)
        return replace(block, rows=rows)

    @property
    def rows(self) -> int:
        """The rows in memory."""
        return sum(len(block.rows) for block in (*self._lots, *self._borrowed))

    def merge(self) -> None:
        """Every group in memory once, as far as that is possible before their epochs are over."""
        merged, left = self._merged_blocks([*self._lots, *self._borrowed])
        self._lots, self._borrowed = [*merged, *left], []

    @property
    def spilled_bytes(self) -> int:
        return self._spilled.written_bytes + self._state_bytes

    @property
    def memory_bytes(self) -> int:
        held = sum(block.rows.nbytes for block in (*self._lots, *self._borrowed))
        return held if self.states is None else held + self.states.memory_bytes

    @property
    def is_empty(self) -> bool:
        return not (self._lots or self._borrowed or self._spilled)

    def release(self, before: int | None) -> Iterator[Released]:
        """Release the groups of the epochs before one, or of all, in order of time. Their states
        leave the store of pending ones.
        """
        for released in self._release(before):
            yield replace(released, block=self._with_own_states(released.block))
        if self.states is not None and self.is_empty:
            self.states.clear()

    def _with_own_states(self, block: Block) -> Block:
        if self.states is None:
            return block
        made = self.states.empty()
        rows = self.states.finished(block.rows, made)
        self.states.drop(block.rows)
        return replace(block, rows=rows, states=made)

    def _release(self, before: int | None) -> Iterator[Released]:
        due = self._due(before)
        if self._spilled:
            rest = []
            for block in due:  # partials of an epoch that is on disk had better be there, too
                early, late = block.split(self._spilled.last + 1)
                if len(early.rows):
                    self._spilled.spill(early)
                if len(late.rows):
                    rest.append(late)
            due = rest
            for spilled, can_overflow in self._spilled.take(before):
                blocks = [replace(block, states=self.states) for block in spilled]
                if can_overflow:
                    yield from (Released(block, False) for block in blocks)
                else:
                    yield from self._released(blocks)
        yield from self._released(due)

    def _due(self, before: int | None) -> list[Block]:
        """Take the groups of the epochs before one out of the lots."""
        if before is None:
            due = [*self._lots, *self._borrowed]
            self._lots, self._borrowed = [], []
            return due
        parts = [[block.split(before) for block in some] for some in (self._lots, self._borrowed)]
        self._lots, self._borrowed = (
            [compact(block) for _, block in some if len(block.rows)] for some in parts
        )
        return [block for some in parts for block, _ in some if len(block.rows)]

    def _released(self, lots: Sequence[Block]) -> Iterator[Released]:
        """Release all partials of some groups."""
        if any(has_ranges(block.rows, self._shape) for block in lots):
            yield from (Released(block, False) for block in lots)
        elif len(lots) == 1 and self._once:
            yield Released(lots[0], True)
        elif lots:
            single, shared = apart_by_epoch(lots, self._once)
            merged, left = self._merged_blocks(shared)
            # A 64-bit sum of parts overflows: above, 128 bits decide.
            yield from (Released(block, False) for block in left)
            for block in blocks_in_order([*single, *merged]):
                yield Released(block, True)

    def _merged_blocks(self, lots: Sequence[Block]) -> tuple[list[Block], list[Block]]:
        """Groups of the same epochs, each once; and the groups of epochs with a sum that overflows,
        as they are.
        """
        epochs = np.unique(np.concatenate([b.epochs for b in lots])) if lots else ()
        if len(epochs) > FEW_EPOCHS:
            wide = Shape(self._shape.keys + 2, self._shape.slots)
            rows = [with_epoch(block) for block in lots]
            states = None if self.states is None else replace(self.states, shape=wide)
            merged = merged_rows(wide, rows, states)
            if merged is None:
                return [], list(lots)
            return [Block.of_each(*without_epoch(merged), self.states)], []
        found: list[Block] = []
        left: list[Block] = []
        for epoch in map(int, epochs):
            own = [b for block in lots if len((b := block.where(block.epochs == epoch)).rows)]
            merged = merged_rows(self._shape, [block.rows for block in own], self.states)
            if merged is None:
                left += own
            else:
                found.append(Block.of(epoch, merged, self.states))
        return found, left


def compact(block: Block) -> Block:
    """Copy the remainder of a lot, so that the memory of the whole lot can be freed."""
    base = block.rows.base
    if base is None or base.nbytes <= 2 * block.rows.nbytes:
        return block
    return replace(block, rows=block.rows.copy())


def apart_by_epoch(lots: Sequence[Block], once: bool) -> tuple[list[Block], list[Block]]:
    """The groups that need no merge, and the epochs whose groups have to be merged."""
    if not once:
        return [], list(lots)
    epochs, counts = np.unique(np.concatenate([b.epochs for b in lots]), return_counts=True)
    several = epochs[counts > 1]
    if not len(several):
        return list(lots), []
    shared = [np.isin(block.epochs, several) for block in lots]
    pairs = list(zip(lots, shared, strict=True))
    return (
        [block.where(~mask) for block, mask in pairs if not mask.all()],
        [block.where(mask) for block, mask in pairs if mask.any()],
    )


def blocks_in_order(blocks: Sequence[Block]) -> Iterator[Block]:
    """The same groups in order of their epochs; small blocks are combined."""
    ordered = sorted(blocks, key=lambda block: int(block.epochs[0]))
    some: list[Block] = []
    rows, last = 0, 0
    for block in ordered:
        if some and rows + len(block.rows) > MERGED_ROWS and last < int(block.epochs[0]):
            yield Block.together(some).in_order()
            some, rows = [], 0
        last = max(last, int(block.epochs[-1])) if some else int(block.epochs[-1])
        some.append(block)
        rows += len(block.rows)
    if some:
        yield Block.together(some).in_order()


def merged_rows(shape: Shape, lots: Sequence[Rows], states: RowStates | None = None) -> Rows | None:
    """Every group once; many rows part by part, each within the cache. None: a sum overflows."""
    number = sum(len(rows) for rows in lots) // MERGED_ROWS
    if number < 2 or states is not None:
        return merge_groups(shape, lots, states)
    done: list[Rows] = []
    for part in parts_of(lots, shape, 1 << (min(number, PARTS).bit_length() - 1)):
        merged = merge_groups(shape, part)
        if merged is None:
            return None
        done.append(merged)
    return np.concatenate(done)


def with_epoch(block: Block) -> Rows:
    """Rows with the epoch as one more key word."""
    rows = np.empty((len(block.rows), block.rows.shape[1] + 1), np.int64)
    rows[:, 0] = block.rows[:, 0]
    rows[:, 1] = block.values(block.epochs)
    rows[:, 2:] = block.rows[:, 1:]
    return rows


def without_epoch(rows: Rows) -> tuple[Ints, Rows]:
    """The epochs in the second word of rows, and the rows without them."""
    return rows[:, 1].copy(), np.delete(rows, 1, axis=1)


def own(rows: Rows) -> Rows:
    """Rows in memory of their own."""
    return rows if rows.base is None else rows.copy()
