"""Packed states beside rows of groups: a row has the number of each of its states.

In: packed states (terascope.sketches.base), as they leave a table or arrive in a payload. Out: the
same by number, and merged by the super-aggregate's column where several rows were one group. The
states of rows that are spilled go to a file as well; their numbers stay what they were.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from terascope.functions.overflow import telling_states
from terascope.kernels.columns.arrays import Bytes, Flags, Ints, Rows
from terascope.kernels.tables.slots import Shape
from terascope.machine_code import column, compiled_for, output
from terascope.sketches.base import Packed, StateKind, bytes_of, packed_of

MERGED_BYTES: Final = 32 << 20
"""About as many bytes of packed states as are merged at a time."""
READ_BYTES: Final = 1 << 20
"""States in a file that are no farther apart are read with what lies between them."""


class StateFile(Protocol):
    """A file that bytes are appended to and read from (terascope.execute.spill)."""

    size: int

    def append(self, data: bytes | memoryview) -> None: ...
    def read(self, offset: int, size: int) -> Bytes: ...


@dataclass
class StateChunk:
    """States that came together."""

    offsets: Ints
    states: Packed | None
    """None: they are in a file."""
    live: int
    finished: bool
    """They were packed by the super-aggregate's column."""
    place: int = 0
    """Where they begin in the file."""

    @property
    def bytes(self) -> int:
        held = int(self.offsets[-1] - self.offsets[0]) if self.states is not None else 0
        return held + self.offsets.nbytes


@dataclass(eq=False)
class StateStore:
    """Packed states by number. Numbers begin anew after `clear`."""

    kind: StateKind
    _chunks: list[StateChunk | None] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    """The first number of each chunk."""
    _next: int = 0
    _file: StateFile | None = None

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
        """The states of some numbers, in their order."""
        parts = list(self._by_chunk(numbers))
        if len(parts) == 1:
            chunk, _, own = parts[0]
            return self._of(chunk, own)
        if not parts:
            return pa.array([], pa.large_binary())
        found = pa.concat_arrays([self._of(chunk, own) for chunk, _, own in parts])
        order = np.empty(len(numbers), np.int64)
        order[np.concatenate([places for _, places, _ in parts])] = np.arange(len(numbers))
        return found.take(pa.array(order))

    def sizes(self, numbers: Ints) -> Ints:
        """The bytes of each of some states."""
        found = np.empty(len(numbers), np.int64)
        for chunk, places, own in self._by_chunk(numbers):
            found[places] = chunk.offsets[own + 1] - chunk.offsets[own]
        return found

    def are_finished(self, numbers: Ints) -> Flags:
        """Which of some states the super-aggregate's column has packed."""
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

    def _of(self, chunk: StateChunk, places: Ints) -> Packed:
        if chunk.states is not None:
            if len(places) == len(chunk.states) and bool((np.diff(places) == 1).all()):
                return chunk.states
            return chunk.states.take(pa.array(places))
        assert self._file is not None
        order = np.argsort(places, kind="stable")
        pieces = [self._read(chunk, run) for run in near(places[order], chunk.offsets)]
        inverse = np.empty(len(places), np.int64)
        inverse[order] = np.arange(len(places))
        return pa.concat_arrays(pieces).take(pa.array(inverse))

    def _read(self, chunk: StateChunk, places: Ints) -> Packed:
        """States at some places of a file, which are in order and near each other."""
        assert self._file is not None
        first, last = int(places[0]), int(places[-1]) + 1
        begin, end = int(chunk.offsets[first]), int(chunk.offsets[last])
        held = self._file.read(chunk.place + begin - int(chunk.offsets[0]), end - begin)
        states = packed_of(chunk.offsets[first : last + 1] - begin, held)
        return states.take(pa.array(places - first))

    def spill(self, make_file: Callable[[], StateFile]) -> int:
        """Move all states to a file; returns how many bytes were written."""
        written = 0
        for chunk in self._chunks:
            if chunk is not None and chunk.states is not None:
                self._file = self._file or make_file()
                _, data = bytes_of(chunk.states)
                begin, end = int(chunk.offsets[0]), int(chunk.offsets[-1])
                chunk.place = self._file.size
                self._file.append(np.ascontiguousarray(data[begin:end]).data)
                chunk.states, written = None, written + end - begin
        return written

    def clear(self) -> None:
        self._chunks, self._starts, self._next, self._file = [], [], 0, None

    @property
    def memory_bytes(self) -> int:
        return sum(chunk.bytes for chunk in self._chunks if chunk is not None)


def near(places: Ints, offsets: Ints) -> Iterator[Ints]:
    """Places in order, cut where many bytes lie between two of them."""
    gaps = offsets[places[1:]] - offsets[places[:-1] + 1]
    yield from np.split(places, np.flatnonzero(gaps > READ_BYTES) + 1)


@dataclass(frozen=True, eq=False)
class RowStates:
    """The states of rows of a shape: a store for each slot that is one."""

    shape: Shape
    stores: tuple[StateStore, ...]

    @classmethod
    def of(cls, shape: Shape) -> RowStates | None:
        """Empty stores; None for a shape without states."""
        kinds = [shape.slots[j].state for j in shape.states]
        stores = tuple(StateStore(kind) for kind in kinds if kind is not None)
        return cls(shape, stores) if stores else None

    def empty(self) -> RowStates:
        return RowStates(self.shape, tuple(StateStore(store.kind) for store in self.stores))

    @property
    def places(self) -> Iterator[tuple[int, int, StateStore]]:
        """The slot, the word and the store of each state."""
        for j, store in zip(self.shape.states, self.stores, strict=True):
            yield j, self.shape.slot(j), store

    @property
    def memory_bytes(self) -> int:
        return sum(store.memory_bytes for store in self.stores)

    def moved(self, rows: Rows, to: RowStates) -> Rows:
        """Rows with the numbers that their states have in other stores, where they are added."""
        made = rows.copy()
        for (j, word, store), target in zip(self.places, to.stores, strict=True):
            seen = seen_rows(made, j)
            made[seen, word] = target.add(store.take(made[seen, word]))
        return made

    def finished(self, rows: Rows, to: RowStates) -> Rows:
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

    def clear(self) -> None:
        for store in self.stores:
            store.clear()

    def spill(self, make_file: Callable[[], StateFile]) -> int:
        """Move all states to files; returns how many bytes were written."""
        return sum(store.spill(make_file) for store in self.stores)

    def column(self, rows: Rows, slot: int) -> pa.Array:
        """The packed states of a slot, NULL where there is none."""
        store = self.stores[self.shape.states.index(slot)]
        seen = (rows[:, 0] >> np.int64(slot + 1) & 1).astype(np.bool_)
        return states_at(rows[:, self.shape.slot(slot)], seen, store)


def seen_rows(rows: Rows, slot: int) -> Ints:
    """The places of the rows whose slot has a state."""
    return np.flatnonzero(rows[:, 0] >> np.int64(slot + 1) & 1)


def states_at(numbers: Ints, seen: Flags, store: StateStore) -> pa.Array:
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

    def __init__(self, rows: Rows, states: RowStates, layout: Shape) -> None:
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


def merge_members(source: StateStore, target: StateStore, numbers: Ints, groups: Ints) -> Ints:
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
