"""Groups that left a table and are pending until their epoch is over.

In: rows of groups, with their epochs. Out: blocks of the epochs that are over, in which every group
occurs once. Pending groups are in memory, or spilled when a task needs memory. The groups of most
epochs come in one block and leave unchanged; an epoch with several blocks is merged. No step is
done for each epoch by itself, because there may be as many epochs as tuples.

Groups with states leave in lots of a few megabytes: some epochs, or the groups of one epoch in some
range of a hash. The states of a lot are packed, merged and handed on before those of the next, so
that the states of all groups stand in memory once: in the columns of the table, which packs them
when they leave (`TableGroups`), in the store of pending ones, or on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from terascope.execute.spill import PARTS, SpilledGroups, parts_of
from terascope.kernels.columns.arrays import Ints, Rows
from terascope.kernels.merge.float_ranges import has_ranges
from terascope.kernels.merge.groups import Block
from terascope.kernels.merge.merge_table import merge_groups
from terascope.kernels.merge.states import (
    LEAST_LOT,
    LOT_BYTES,
    RowStates,
    States,
    StoredStates,
    clear,
)
from terascope.kernels.tables.slots import Shape

MERGED_ROWS: Final = 1 << 15
"""The approximate number of rows that are merged at a time."""
MOST_PARTS: Final = 64
"""The most parts that rows without states are merged in."""
FEW_EPOCHS: Final = 8
"""The most epochs that are merged one by one; with more, the epoch becomes a key."""


@dataclass(frozen=True)
class Released:
    """Groups of epochs that are over. If not whole, a group may occur more than once, in parts
    whose sums exceed 64 bits or that belong to different ranges of FLOATs.
    """

    block: Block
    whole: bool


@dataclass(frozen=True)
class Lot:
    """Groups with states, which are in a store or still in the columns of a table."""

    block: Block
    states: RowStates[States]
    once: bool = False
    """Each group occurs once, and in no other lot."""

    @property
    def rows(self) -> Rows:
        return self.block.rows

    def split(self, epoch: int) -> tuple[Lot, Lot]:
        """The groups before an epoch and the others."""
        early, late = self.block.split(epoch)
        return replace(self, block=early), replace(self, block=late)

    def between(self, first: int, last: int) -> Lot:
        """The groups of the epochs from one to another."""
        epochs = self.block.epochs
        return replace(self, block=self.block.where((first <= epochs) & (epochs <= last)))

    def moved(self, to: StoredStates) -> Block:
        """The groups with states in other stores; the states have left their own."""
        made = self.states.moved(self.rows, to)
        self.states.drop(self.rows)
        return replace(self.block, rows=made, states=to)

    def finished(self) -> Block:
        """The groups with states as the super-aggregate packs them, in stores of their own."""
        to = self.states.empty()
        made = self.states.finished(self.rows, to)
        self.states.drop(self.rows)
        return replace(self.block, rows=made, states=to)


def lot_of(block: Block) -> Lot:
    assert block.states is not None
    return Lot(block, block.states)


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
        """The states of the pending groups in memory."""
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

    def spill(self, table: Lot | None = None) -> None:
        """Spill all groups, and those that have just left a table."""
        for block in (*self._lots, *self._borrowed):
            self._spilled.spill(block, block.states)
        self._lots.clear()
        self._borrowed.clear()
        if table is not None:
            self._spilled.spill(table.block, table.states)
        if self.states is not None:
            clear(self.states)

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
        return self._spilled.written_bytes

    @property
    def memory_bytes(self) -> int:
        held = sum(block.rows.nbytes for block in (*self._lots, *self._borrowed))
        return held if self.states is None else held + self.states.memory_bytes

    @property
    def is_empty(self) -> bool:
        return not (self._lots or self._borrowed or self._spilled)

    def release(self, before: int | None) -> Iterator[Released]:
        """Release the groups of the epochs before one, or of all, in order of time."""
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
            for blocks, can_overflow in self._spilled.take(before):
                if can_overflow:
                    yield from (Released(block, False) for block in blocks)
                else:
                    yield from self._released(blocks)
        yield from self._released(due)

    def release_states(self, before: int | None, table: Lot | None) -> Iterator[Released]:
        """The same for groups with states, lot by lot. `table`: groups that have just left a table;
        those of later epochs become pending.
        """
        assert self.states is not None
        due = [lot_of(block) for block in self._due(before)]
        if table is not None and before is not None:
            table, late = table.split(before)
            self._lots += [late.moved(self.states)] if len(late.rows) else []
        if table is not None and len(table.rows):
            due.append(replace(table, once=not due and not self._spilled))
        if self._spilled:
            split = [lot.split(self._spilled.last + 1) for lot in due]
            for early in (early for early, _ in split if len(early.rows)):
                self._spilled.spill(early.block, early.states)
                early.states.drop(early.rows)
            due = [late for _, late in split if len(late.rows)]
            for blocks, can_overflow in self._spilled.take(before):
                yield from self._released_lots([lot_of(b) for b in blocks], can_overflow)
        yield from self._released_lots(due)
        if self.is_empty:
            clear(self.states)

    def _released_lots(self, lots: Sequence[Lot], can_overflow: bool = False) -> Iterator[Released]:
        """Release all partials of some groups with states."""
        apart = can_overflow or any(has_ranges(lot.rows, self._shape) for lot in lots)
        for some in lots_of(lots, self._shape):
            if apart:
                yield from (Released(lot.finished(), False) for lot in some)
            elif some[0].once:
                yield from (Released(lot.finished(), True) for lot in some)
            else:
                to = some[0].states.empty()
                merged, left = self._merged_blocks([lot.moved(to) for lot in some])
                yield from (Released(lot_of(block).finished(), False) for block in left)
                for block in blocks_in_order(merged):
                    yield Released(lot_of(block).finished(), True)

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
        states = lots[0].states if lots else None
        if len(epochs) > FEW_EPOCHS:
            wide = Shape(self._shape.keys + 2, self._shape.slots)
            rows = [with_epoch(block) for block in lots]
            merged = merged_rows(wide, rows, states and replace(states, shape=wide))
            if merged is None:
                return [], list(lots)
            return [Block.of_each(*without_epoch(merged), states)], []
        found: list[Block] = []
        left: list[Block] = []
        for epoch in map(int, epochs):
            own = [b for block in lots if len((b := block.where(block.epochs == epoch)).rows)]
            merged = merged_rows(self._shape, [block.rows for block in own], states)
            if merged is None:
                left += own
            else:
                found.append(Block.of(epoch, merged, states))
        return found, left


# ---- groups with states --------------------------------------------------------------------------


def lots_of(lots: Sequence[Lot], shape: Shape) -> Iterator[list[Lot]]:
    """Groups in lots of about LOT_BYTES of states, in order of time and with all partials of each
    group: some epochs, or the groups of one epoch in some range of a hash.
    """
    if not lots:
        return
    count = sum(len(lot.rows) for lot in lots)
    size = sum(int(lot.states.sizes(lot.rows).sum()) for lot in lots)
    most = max(LEAST_LOT, min(MERGED_ROWS, LOT_BYTES * count // max(1, size)))
    own = np.concatenate([lot.block.epochs for lot in lots])
    counts = np.concatenate([lot.block.counts for lot in lots])
    epochs, places = np.unique(own, return_inverse=True)
    ends = np.cumsum(np.bincount(places, counts, len(epochs)).astype(np.int64))
    at = 0
    while at < len(epochs):
        before = int(ends[at - 1]) if at else 0
        end = max(at + 1, int(np.searchsorted(ends, before + most, "right")))
        some = [lot.between(int(epochs[at]), int(epochs[end - 1])) for lot in lots]
        some = [lot for lot in some if len(lot.rows)]
        number = (int(ends[end - 1]) - before - 1) // most
        if number:
            yield from hashed_lots(some, int(epochs[at]), shape, 1 << number.bit_length())
        else:
            yield some
        at = end


def hashed_lots(lots: Sequence[Lot], epoch: int, shape: Shape, parts: int) -> Iterator[list[Lot]]:
    """The groups of one epoch, apart by a hash of their keys."""
    for part in parts_of([lot.rows for lot in lots], shape, min(parts, PARTS)):
        pairs = zip(lots, part, strict=True)
        yield [replace(lot, block=Block.of(epoch, rows)) for lot, rows in pairs if len(rows)]


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


def merged_rows(
    shape: Shape, lots: Sequence[Rows], states: StoredStates | None = None
) -> Rows | None:
    """Every group once; many rows part by part, each within the cache. None: a sum overflows."""
    number = sum(len(rows) for rows in lots) // MERGED_ROWS
    if number < 2 or states is not None:
        return merge_groups(shape, lots, states)
    done: list[Rows] = []
    for part in parts_of(lots, shape, 1 << (min(number, MOST_PARTS).bit_length() - 1)):
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
