"""The states of the groups in a table: sub-aggregates that need more than a word (paper 1, 3.2).

In: the tuples of a batch, after the table has given each the number of its group's state. Out: the
states of groups that leave the table, packed and stored beside the pending groups; a state that is
full (FLUSHME) leaves before its group does, as an evicted group would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from terascope.execute.grouping.pending_tuples import TupleVectors
from terascope.execute.grouping.selections import Selection
from terascope.functions.overflow import telling_states
from terascope.hashing import mix
from terascope.kernels.columns.arrays import Codes, Ints, Masks, Rows, Vector
from terascope.kernels.columns.task_dictionaries import TaskDictionaries
from terascope.kernels.merge.states import RowStates, StoredStates, UnpackedStates, seen_rows
from terascope.kernels.tables.slots import Shape
from terascope.physical.low_plan import Slot
from terascope.sharing.statistics import SampledStatistics
from terascope.sketches.base import (
    Argument,
    CodedValues,
    Numbers,
    Packed,
    StateColumn,
    StateKind,
    Traffic,
)

SAMPLED_TUPLES: Final = 1 << 13


@dataclass
class SlotStates:
    """The states of one slot."""

    slot: int
    kind: StateKind
    column: StateColumn
    next: int = 0
    """The next free number."""
    numbers: Ints | None = None
    """The number of each tuple of the batch, and the next free one."""
    masks: Masks | None = None
    arguments: Sequence[Any] = ()

    def iterate(self, rows: Codes, present: bool) -> None:
        """Take some tuples of the batch in. `present`: all have values."""
        assert self.numbers is not None
        assert self.masks is not None
        self.next = int(self.numbers[-1])
        some = rows if present else rows[self.masks[rows] != 0]
        if not len(some):
            return
        where = run_of(some)
        numbers = self.numbers[where]
        arguments = [taken(own, where) for own in self.arguments]
        if self.kind.from_states:
            self.column.merge(numbers, arguments[0])
        else:
            self.column.iterate(numbers, arguments)

    def clear(self) -> None:
        self.column.clear()
        self.next = 0
        if self.numbers is not None:
            self.numbers[-1] = 0


def sampled_traffic(codes: Sequence[Codes], rows: Codes) -> Traffic:
    """The groups of tuples, from a sample of them."""
    if not codes:
        return Traffic(len(rows), 1.0, 0.0)
    some = rows[:: max(1, len(rows) // SAMPLED_TUPLES)]
    hashed = np.zeros(len(some), np.uint64)
    for column in codes:
        hashed = mix(hashed ^ column[some].astype(np.uint64))
    found = SampledStatistics({"keys": hashed}, len(some), float(len(rows)))
    keys = frozenset({"keys"})
    return Traffic(len(rows), found.groups(keys), found.exponent(keys))


def run_of(rows: Codes) -> slice | Codes:
    """Rows, which are in order, as a slice if there is no gap: no copy is made of its values."""
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first + 1 == len(rows) else rows


def taken(argument: Any, rows: slice | Codes) -> Argument:
    if isinstance(argument, CodedValues):
        return replace(argument, codes=argument.codes[rows])
    arrow = isinstance(argument, pa.Array) and not isinstance(rows, slice)
    found: Argument = argument.take(rows) if arrow else argument[rows]
    return found


class TableStates:
    def __init__(self, slots: Sequence[Slot], dictionaries: TaskDictionaries) -> None:
        self._dictionaries = dictionaries
        kinds = ((j, slot.kind.state) for j, slot in enumerate(slots))
        self._slots = {j: SlotStates(j, kind, kind.low()) for j, kind in kinds if kind is not None}
        self._undecided = any(own.kind.choose is not None for own in self._slots.values())

    def decide(self, codes: Sequence[Codes], rows: Codes) -> None:
        """Choose the strategies that the plan left open, by the first tuples: `rows` of columns of
        keys. Packed states of one strategy are merged by all others.
        """
        if not self._undecided:
            return
        self._undecided = False
        traffic = sampled_traffic(codes, rows)
        for own in self._slots.values():
            if own.kind.choose is not None:
                own.kind = own.kind.choose(traffic)
                own.column = own.kind.low()

    @property
    def memory_bytes(self) -> int:
        return sum(own.column.memory_bytes for own in self._slots.values())

    def vector(
        self, j: int, slot: Slot, tuples: TupleVectors, selection: Selection, entry: Selection
    ) -> Vector:
        """The column in which the table numbers the tuples of a slot, and which of them have all
        values. It has an entry more than there are tuples.
        """
        own = self._slots[j]
        arguments, masks = tuples.state_arguments(slot, selection, entry, self._dictionaries)
        own.numbers = np.empty(tuples.count + 1, np.int64)
        own.numbers[-1] = own.next
        own.masks, own.arguments = masks, arguments
        return own.numbers, masks

    def iterate(self, tuples: TupleVectors, rows: Codes) -> None:
        """Take tuples that the table has just numbered into their states."""
        for own in self._slots.values():
            assert own.masks is not None
            with telling_states():
                own.iterate(rows, tuples.is_present(own.masks))

    def done(self) -> None:
        """The batch is over: forget its vectors."""
        for own in self._slots.values():
            own.numbers, own.masks, own.arguments = None, None, ()

    def in_columns(self, shape: Shape) -> RowStates[UnpackedStates]:
        """The states of rows that have left the table, which are packed when they are taken."""
        slots = self._slots.values()
        return RowStates(
            shape, tuple(UnpackedStates(own.kind, own.column, own.next) for own in slots)
        )

    def leave(self, rows: Rows, pending: StoredStates) -> Rows:
        """Groups that left the table, with the numbers of their states among the pending ones."""
        states = self.in_columns(pending.shape)
        made = states.moved(rows, pending)
        states.drop(rows)
        return made

    def full(self) -> FullStates:
        """The states that were full while tuples were taken in; they are empty again."""
        found = ((own.slot, own.column.flushed()) for own in self._slots.values())
        return FullStates([(slot, *full) for slot, full in found if full is not None])

    def clear(self) -> None:
        """The table is empty."""
        for own in self._slots.values():
            own.clear()


@dataclass(frozen=True)
class FullStates:
    """Packed states that leave before their groups do."""

    found: list[tuple[int, Numbers, Packed]]
    """The slot of some states, their numbers, and what they held."""

    def __bool__(self) -> bool:
        return bool(self.found)

    def rows(self, held: Rows, pending: StoredStates) -> Iterator[tuple[Rows, Ints]]:
        """A row for each state, with the keys of its group and nothing else; and the place of the
        group in `held`: all groups that have one of these states.
        """
        shape = pending.shape
        stores = dict(zip(shape.states, pending.stores, strict=True))
        for slot, numbers, packed in self.found:
            word, seen = shape.slot(slot), seen_rows(held, slot)
            order = seen[np.argsort(held[seen, word], kind="stable")]
            places = order[np.searchsorted(held[order, word], numbers)]
            rows = np.zeros((len(numbers), shape.stride), np.int64)
            rows[:, : shape.first_slot] = held[places, : shape.first_slot]
            rows[:, 0] = 1 | 2 << slot
            rows[:, word] = stores[slot].add(packed)
            yield rows, places
