"""Packed states beside rows of groups: a row has the number of each of its states.

In: packed states (terascope.sketches.base), as they leave a table or arrive in a payload. Out: the
same by number, and merged by the super-aggregate's column where several rows were one group. States
that are still in the columns of a table can be read by number, too: they are packed when they are
taken, so that many groups leave a table a few at a time, and never stand in memory twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from terascope.functions.overflow import telling_states
from terascope.kernels.columns.arrays import Flags, Ints, Rows
from terascope.kernels.tables.slots import Shape
from terascope.machine_code import column, compiled_for, output
from terascope.sketches.base import Packed, StateColumn, StateKind, bytes_of

MERGED_BYTES: Final = 8 << 20
"""About as many bytes of packed states as are merged at a time."""
LOT_BYTES: Final = 8 << 20
"""About as many bytes of states as leave at a time, on their way to a result or a file."""
LEAST_LOT: Final = 1 << 8
"""Rows that leave together, however large their states are."""


class States(ABC):
    """The states of one slot of rows, by number."""

    kind: StateKind

    @abstractmethod
    def take(self, numbers: Ints) -> Packed:
        """The states of some numbers, in their order."""

    @abstractmethod
    def sizes(self, numbers: Ints) -> Ints:
        """The bytes of each of some states, or an estimate."""

    @abstractmethod
    def are_finished(self, numbers: Ints) -> Flags:
        """Which of some states the super-aggregate's column has packed."""

    @abstractmethod
    def drop(self, numbers: Ints) -> None:
        """Some states are no longer needed."""

    @property
    @abstractmethod
    def memory_bytes(self) -> int: ...


@dataclass(eq=False)
class UnpackedStates(States):
    """The states in a column of a table."""

    kind: StateKind
    column: StateColumn
    count: int
    """The number of states."""

    def take(self, numbers: Ints) -> Packed:
        with telling_states():
            return self.column.pack(numbers)

    def sizes(self, numbers: Ints) -> Ints:
        return np.full(len(numbers), self.memory_bytes // max(1, self.count))

    def are_finished(self, numbers: Ints) -> Flags:
        return np.full(len(numbers), self.column.finishes)

    def drop(self, numbers: Ints) -> None:
        with telling_states():
            self.column.drop(numbers)

    @property
    def memory_bytes(self) -> int:
        return self.column.memory_bytes


@dataclass
class StateChunk:
    """States that came together."""

    offsets: Ints
    states: Packed
    live: int
    finished: bool
    """They were packed by the super-aggregate's column."""

    @property
    def bytes(self) -> int:
        return int(self.offsets[-1] - self.offsets[0]) + self.offsets.nbytes


@dataclass(eq=False)
class StateStore(States):
    """Packed states by number. Numbers begin anew after `clear`."""

    kind: StateKind
    _chunks: list[StateChunk | None] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    """The first number of each chunk."""
    _next: int = 0

    def add(self, packed: Packed, finished: bool = False) -> Ints:
        """Keep some states; the numbers they have from now on. `finished`: the super-aggregate's
        column has packed them.
        """
        first = self._next
        if len(packed):
            offsets, _ = bytes_of(packed)
            self._chunks.append(StateChunk(offsets, packed, len(packed), finished))
            self._starts.append(first)
            self._next += len(packed)
        return np.arange(first, self._next, dtype=np.int64)

    def take(self, numbers: Ints) -> Packed:
        parts = list(self._by_chunk(numbers))
        if len(parts) == 1:
            chunk, _, own = parts[0]
            return at_places(chunk.states, own)
        if not parts:
            return pa.array([], pa.large_binary())
        found = pa.concat_arrays([at_places(chunk.states, own) for chunk, _, own in parts])
        order = np.empty(len(numbers), np.int64)
        order[np.concatenate([places for _, places, _ in parts])] = np.arange(len(numbers))
        return at_places(found, order)

    def sizes(self, numbers: Ints) -> Ints:
        found = np.empty(len(numbers), np.int64)
        for chunk, places, own in self._by_chunk(numbers):
            found[places] = chunk.offsets[own + 1] - chunk.offsets[own]
        return found

    def are_finished(self, numbers: Ints) -> Flags:
        found = np.empty(len(numbers), np.bool_)
        for chunk, places, _ in self._by_chunk(numbers):
            found[places] = chunk.finished
        return found

    def drop(self, numbers: Ints) -> None:
        """Some states are no longer needed: the memory of chunks without any others is freed."""
        for chunk, _, own in self._by_chunk(numbers):
            chunk.live -= len(own)
        self._chunks = [None if c is not None and c.live <= 0 else c for c in self._chunks]
        while self._chunks and self._chunks[-1] is None:
            self._chunks.pop()
            self._starts.pop()

    def _by_chunk(self, numbers: Ints) -> Iterator[tuple[StateChunk, Ints, Ints]]:
        """Chunks, the places in `numbers` of their states, and the places in the chunk."""
        if not len(numbers):
            return
        low, high = int(numbers.min()), int(numbers.max())
        first, last = bisect_right(self._starts, low) - 1, bisect_right(self._starts, high) - 1
        if first == last:
            chunk = self._chunks[first]
            assert chunk is not None
            yield chunk, np.arange(len(numbers)), numbers - self._starts[first]
            return
        starts = np.array(self._starts[first : last + 1], np.int64)
        which = np.searchsorted(starts, numbers, "right") - 1
        order = np.argsort(which, kind="stable")
        edges = np.searchsorted(which[order], np.arange(len(starts) + 1))
        for k in np.flatnonzero(np.diff(edges)).tolist():
            chunk, places = self._chunks[first + k], order[edges[k] : edges[k + 1]]
            assert chunk is not None
            yield chunk, places, numbers[places] - starts[k]

    def clear(self) -> None:
        self._chunks, self._starts, self._next = [], [], 0

    @property
    def memory_bytes(self) -> int:
        return sum(chunk.bytes for chunk in self._chunks if chunk is not None)


def at_places(states: Packed, places: Ints) -> Packed:
    """Some of the states; no copy is made of neighbours in order."""
    if len(places) and bool((np.diff(places) == 1).all()):
        return states.slice(int(places[0]), len(places))
    return states.take(pa.array(places))


Kept = TypeVar("Kept", bound=States, covariant=True)


@dataclass(frozen=True, eq=False)
class RowStates(Generic[Kept]):
    """The states of rows of a shape: those of each slot that is one."""

    shape: Shape
    stores: tuple[Kept, ...]

    @staticmethod
    def of(shape: Shape) -> RowStates[StateStore] | None:
        """Empty stores; None for a shape without states."""
        kinds = [shape.slots[j].state for j in shape.states]
        stores = tuple(StateStore(kind) for kind in kinds if kind is not None)
        return RowStates(shape, stores) if stores else None

    def empty(self) -> RowStates[StateStore]:
        return RowStates(self.shape, tuple(StateStore(store.kind) for store in self.stores))

    @property
    def places(self) -> Iterator[tuple[int, int, Kept]]:
        """The slot, the word and the store of each state."""
        for j, store in zip(self.shape.states, self.stores, strict=True):
            yield j, self.shape.slot(j), store

    @property
    def memory_bytes(self) -> int:
        return sum(store.memory_bytes for store in self.stores)

    def moved(self, rows: Rows, to: RowStates[StateStore]) -> Rows:
        """Rows with the numbers that their states have in other stores, where they are added."""
        made = rows.copy()
        for (j, word, store), target in zip(self.places, to.stores, strict=True):
            seen = seen_rows(made, j)
            numbers = made[seen, word]
            done = store.are_finished(numbers)
            for some, finished in ((seen[done], True), (seen[~done], False)):
                if len(some):
                    made[some, word] = target.add(store.take(made[some, word]), finished)
        return made

    def finished(self, rows: Rows, to: RowStates[StateStore]) -> Rows:
        """Rows with states as the super-aggregate packs them, in other stores. A table next to the
        source packs its states as it finds best.
        """
        made = rows.copy()
        for (j, word, store), target in zip(self.places, to.stores, strict=True):
            seen = seen_rows(made, j)
            numbers = made[seen, word]
            done = store.are_finished(numbers)
            made[seen[done], word] = target.add(store.take(numbers[done]), finished=True)
            rest = numbers[~done]
            made[seen[~done], word] = merge_members(store, target, rest, np.arange(len(rest)))
        return made

    def drop(self, rows: Rows) -> None:
        """The states of some rows are no longer needed."""
        for j, word, store in self.places:
            store.drop(rows[seen_rows(rows, j), word])

    def column(self, rows: Rows, slot: int) -> pa.Array:
        """The packed states of a slot, NULL where there is none."""
        store = self.stores[self.shape.states.index(slot)]
        seen = (rows[:, 0] >> np.int64(slot + 1) & 1).astype(np.bool_)
        return states_at(rows[:, self.shape.slot(slot)], seen, store)

    def sizes(self, rows: Rows) -> Ints:
        """The bytes of all states of each row, or an estimate."""
        sizes = np.zeros(len(rows), np.int64)
        for j, word, store in self.places:
            seen = seen_rows(rows, j)
            sizes[seen] += store.sizes(rows[seen, word])
        return sizes

    def lots(self, rows: Rows) -> Ints:
        """The ends of lots of rows that have about LOT_BYTES of states each, but at least LEAST_LOT
        rows.
        """
        totals, ends, begin = np.cumsum(self.sizes(rows)), list[int](), 0
        while begin < len(rows):
            wanted = (int(totals[begin - 1]) if begin else 0) + LOT_BYTES
            begin = max(begin + LEAST_LOT, int(np.searchsorted(totals, wanted, "right")))
            ends.append(min(begin, len(rows)))
        return np.array(ends, np.int64)


StoredStates: TypeAlias = RowStates[StateStore]
"""Packed states in stores of their own."""


def clear(states: StoredStates) -> None:
    for store in states.stores:
        store.clear()


def seen_rows(rows: Rows, slot: int) -> Ints:
    """The places of the rows whose slot has a state."""
    return np.flatnonzero(rows[:, 0] >> np.int64(slot + 1) & 1)


def states_at(numbers: Ints, seen: Flags, store: States) -> pa.Array:
    """The states of some numbers as a column, NULL where there is none."""
    if seen.all():
        return store.take(np.ascontiguousarray(numbers))
    states = store.take(numbers[seen])
    places = np.cumsum(seen) - 1
    return states.take(pa.array(places, mask=~seen))


# ---- merging -------------------------------------------------------------------------------------


class Chains:
    """The states of rows that a kernel combines: while it runs, rows have the places of their
    states, and the kernel links the places of states that have become one.
    """

    def __init__(self, rows: Rows, states: StoredStates, layout: Shape) -> None:
        """`layout`: the rows, wide or not."""
        self._states = states
        self._words = [layout.slot(j) for j in states.shape.states]
        self._numbers = [rows[:, word].copy() for word in self._words]
        for word in self._words:
            rows[:, word] = np.arange(len(rows))
        self.links = np.full((len(self._words), len(rows)), -1, np.int64)

    def resolve(self, rows: Rows) -> None:
        """Merge the states of each remaining row; it has the number of the result then."""
        for k, (j, _, store) in enumerate(self._states.places):
            word, numbers, links = self._words[k], self._numbers[k], self.links[k]
            heads = rows[:, word].copy()
            rows[:, word] = numbers[heads]
            several = np.flatnonzero((links[heads] >= 0) & (rows[:, 0] >> (j + 1) & 1 != 0))
            if not len(several):
                continue
            groups = np.empty(len(links), np.int64)
            members = np.empty(len(links), np.int64)
            count = follow(heads[several], links, groups, members)
            old = numbers[members[:count]]
            rows[several, word] = merge_members(store, store, old, groups[:count])
            store.drop(old)


@compiled_for(column(np.int64), column(np.int64), output(np.int64), output(np.int64))
def follow(heads: Ints, links: Ints, groups: Ints, members: Ints) -> int:
    """All members of each chain, one chain after the other."""
    count = 0
    for g in range(len(heads)):
        at = heads[g]
        while at >= 0:
            groups[count], members[count] = g, at
            count += 1
            at = links[at]
    return count


def merge_members(source: States, target: StateStore, numbers: Ints, groups: Ints) -> Ints:
    """Merge states: numbers[i] of the source into group groups[i], which never decreases. Returns
    the number of each group in the target.
    """
    if not len(numbers):
        return np.empty(0, np.int64)
    ends = np.cumsum(source.sizes(numbers))
    made: list[Ints] = []
    begin = 0
    while begin < len(numbers):
        wanted = (int(ends[begin - 1]) if begin else 0) + MERGED_BYTES
        end = max(begin + 1, int(np.searchsorted(ends, wanted, "right")))
        end = int(np.searchsorted(groups, groups[end - 1], "right"))  # whole groups
        own = groups[begin:end] - groups[begin]
        with telling_states():
            states = source.kind.high()
            states.merge(own, source.take(numbers[begin:end]))
            made.append(target.add(states.pack(np.arange(int(own[-1]) + 1)), finished=True))
        begin = end
    return made[0] if len(made) == 1 else np.concatenate(made)
