"""Groups on their way from the tables of the low level to results (paper 1, section 3.2: partial
aggregates go up).

In: rows of tables, in runs of the same epoch. Out: the same rows as blocks, which the exchange, the
merge and the results exchange with each other, or in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from terascope.functions.overflow import SUM
from terascope.hashing import mix
from terascope.kernels.columns.arrays import Codes, Flags, Ints, Rows, Values
from terascope.kernels.columns.dictionary import Dictionary
from terascope.kernels.merge.states import StoredStates
from terascope.kernels.tables.slots import Shape
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.plan.rel import Field
from terascope.types import INT_MIN, Type

NO_EPOCH = INT_MIN
"""The epoch of tuples whose temporal key is NULL, and of aggregations that have none."""


@dataclass(frozen=True)
class GroupFields:
    """A low aggregation from outside: its columns, and which of the keys is its epoch."""

    keys: tuple[Field, ...]
    slots: tuple[Field, ...]
    shape: Shape
    epoch: int | None = None
    """The place among the keys of the one that blocks hold apart; the others are codes."""
    sums: tuple[str, ...] = field(default=(), compare=False)
    """For each slot that is a sum of integers, its text for messages."""

    @property
    def epoch_name(self) -> str | None:
        return None if self.epoch is None else self.keys[self.epoch].name

    @property
    def any_sum(self) -> str:
        """The text of a sum of integers, where it is unknown which."""
        return " or ".join(dict.fromkeys(text for text in self.sums if text)) or SUM

    def __post_init__(self) -> None:
        if self.shape.with_epoch or len(self.slots) != len(self.shape.slots):
            raise ValueError(f"{self.shape} is not the shape of slots {self.slots}")
        if len(self.coded) != self.shape.keys:
            raise ValueError(f"{self.shape} is not the shape of keys {self.keys}")

    @property
    def coded(self) -> tuple[Field, ...]:
        """The keys that stand in a row, as codes."""
        return tuple(f for i, f in enumerate(self.keys) if i != self.epoch)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.keys, *self.slots)

    @property
    def key_types(self) -> tuple[Type, ...]:
        return tuple(f.type for f in self.coded)


@dataclass(frozen=True)
class Block:
    """Groups of some epochs, in runs of the same epoch. Traffic that is spread over a long time has
    an epoch for every few groups: whatever is done to groups is done to a block at a time.
    """

    epochs: Ints
    """The epoch of each run; NO_EPOCH is NULL, and the epoch of an aggregation without epochs."""
    ends: Ints
    """The end of each run. No run is empty."""
    rows: Rows
    states: StoredStates | None = None
    """Where the states of the rows are, if they have any."""

    @classmethod
    def of(cls, epoch: int | None, rows: Rows, states: StoredStates | None = None) -> Block:
        """Add groups of one epoch."""
        runs = 1 if len(rows) else 0
        value = NO_EPOCH if epoch is None else epoch
        ends = np.full(runs, len(rows), np.int64)
        return cls(np.full(runs, value, np.int64), ends, rows, states)

    @classmethod
    def of_each(cls, epochs: Ints, rows: Rows, states: StoredStates | None = None) -> Block:
        """Groups with one epoch each, in any order."""
        if not len(rows):
            return cls(np.empty(0, np.int64), np.empty(0, np.int64), rows, states)
        order = np.argsort(epochs, kind="stable")
        epochs, rows = epochs[order], rows[order]
        ends = np.append(np.flatnonzero(epochs[1:] != epochs[:-1]) + 1, len(rows))
        return cls(epochs[ends - 1], ends, rows, states)

    @classmethod
    def together(cls, blocks: Sequence[Block]) -> Block:
        """Blocks one behind the other."""
        if len(blocks) == 1:
            return blocks[0]
        blocks = in_one_store(blocks)
        sizes = np.array([len(block.rows) for block in blocks], np.int64)
        before = np.repeat(np.cumsum(sizes) - sizes, [len(block.epochs) for block in blocks])
        ends = np.concatenate([block.ends for block in blocks]) + before
        epochs = np.concatenate([block.epochs for block in blocks])
        last = np.append(epochs[1:] != epochs[:-1], True)[: len(epochs)]
        rows = np.concatenate([block.rows for block in blocks])
        return cls(epochs[last], ends[last], rows, blocks[0].states)

    @property
    def bytes(self) -> int:
        """The memory of the rows and of the stores of their states."""
        return self.rows.nbytes + (0 if self.states is None else self.states.memory_bytes)

    @property
    def counts(self) -> Ints:
        return np.diff(self.ends, prepend=0)

    def values(self, of_runs: Values) -> Values:
        """A value of each run, repeated for each of its groups."""
        return np.repeat(of_runs, self.counts)

    def between(self, start: int, end: int) -> Block:
        """The groups at some places."""
        if start == 0 and end >= len(self.rows):
            return self
        rows = self.rows[start:end]
        first = int(np.searchsorted(self.ends, start, "right"))
        last = int(np.searchsorted(self.ends, start + len(rows), "left")) + 1
        if not len(rows):
            last = first
        ends = np.minimum(self.ends[first:last] - start, len(rows))
        return Block(self.epochs[first:last], ends, rows, self.states)

    def split(self, epoch: int) -> tuple[Block, Block]:
        """The groups before an epoch and the others, when epochs are in order."""
        runs = int(np.searchsorted(self.epochs, epoch))
        place = int(self.ends[runs - 1]) if runs else 0
        return self.between(0, place), self.between(place, len(self.rows))

    def where(self, runs: Flags) -> Block:
        """The groups of some of the runs."""
        places = np.flatnonzero(runs)
        if not len(places) or places[-1] - places[0] + 1 == len(places):
            first = int(self.ends[places[0]] - self.counts[places[0]]) if len(places) else 0
            return self.between(first, int(self.ends[places[-1]]) if len(places) else 0)
        counts = self.counts[runs]
        rows = self.rows[self.values(runs)]
        return Block(self.epochs[runs], np.cumsum(counts), rows, self.states)

    def in_order(self) -> Block:
        if bool((self.epochs[1:] > self.epochs[:-1]).all()):
            return self
        order = np.argsort(self.epochs, kind="stable")
        counts = self.counts
        starts, sizes = (self.ends - counts)[order], counts[order]
        ends = np.cumsum(sizes)
        places = np.arange(len(self.rows)) + np.repeat(starts - (ends - sizes), sizes)
        epochs = self.epochs[order]
        last = np.append(epochs[1:] != epochs[:-1], True)
        rows = rows_at(self.rows, places.astype(np.int32))
        return Block(epochs[last], ends[last], rows, self.states)

    def picked(self, places: Values, rows: Rows) -> Block:
        """The groups at some positions, which are in order; `rows` are theirs."""
        if len(self.epochs) <= 1:
            ends = np.full(min(1, len(rows)), len(rows))
            return Block(self.epochs[: len(rows)], ends, rows, self.states)
        ends = np.searchsorted(places, self.ends)
        kept = np.diff(ends, prepend=0) > 0
        return Block(self.epochs[kept], ends[kept], rows, self.states)

    def passing(self, kept: Flags) -> Block:
        if kept.all():
            return self
        places = np.flatnonzero(kept).astype(np.int32)
        return self.picked(places, rows_at(self.rows, places))


def in_one_store(blocks: Sequence[Block]) -> Sequence[Block]:
    """Blocks whose states are in the same stores."""
    known = {id(block.states): block.states for block in blocks if block.states is not None}
    if not known:
        return blocks
    first = next(iter(known.values()))
    if len(known) == 1:
        return [replace(block, states=first) for block in blocks]
    to = first.empty()
    rows = [b.rows if b.states is None else b.states.moved(b.rows, to) for b in blocks]
    return [replace(b, states=to, rows=own) for b, own in zip(blocks, rows, strict=True)]


@dataclass(frozen=True)
class MergedGroups:
    """Blocks with the codes of the same dictionaries, one for each coded key."""

    dictionaries: Sequence[Dictionary]
    blocks: Iterator[Block]
    several: bool = False
    """Some groups have several rows: one for each range of the FLOATs they sum."""


def key_codes(rows: Rows, shape: Shape, key: int) -> Codes:
    """The codes of a key, as a view of the rows: no copy is made."""
    halves = rows.view(np.int32)
    place = 2 * (shape.first_word + key // 2)
    # The earlier key of a word is its upper half; the machine is little-endian.
    return halves[:, place + (1 if key % 2 == 0 else 0)]


def rows_at(rows: Rows, places: Codes) -> Rows:
    """Some of the rows, in the order of their places."""
    out = np.empty((len(places), rows.shape[1]), np.int64)
    pick_rows(rows, places, out)
    return out


@compiled_for(column(np.int64, 2), column(np.int32), output(np.int64, 2))
def pick_rows(rows: Rows, places: Codes, out: Rows) -> None:
    """Numpy takes several times as long."""
    for i in range(len(places)):
        for k in range(rows.shape[1]):
            out[i, k] = rows[np.uint32(places[i]), k]


def largest(values: Ints) -> int:
    """The size of the largest number, whatever its sign."""
    return max(abs(int(values.max())), abs(int(values.min())))


def by_key(rows: Rows, first_word: int, end: int) -> tuple[Codes, Ints]:
    """The places of rows in the order of their groups, and where each group begins."""
    groups = np.empty(len(rows), np.int32)
    places = np.full(1 << max(4, (2 * len(rows)).bit_length()), -1, np.int64)
    number = number_groups(rows, first_word, end, places, groups)
    return in_order_of(groups, number)


def in_order_of(numbers: Codes, count: int) -> tuple[Codes, Ints]:
    """The places of rows in the order of their numbers, and where each of `count` numbers begins;
    rows of the same number keep their order.
    """
    edges = np.zeros(count + 1, np.int64)
    order = np.empty(len(numbers), np.int32)
    put_in_order(numbers, edges, order)
    return order, edges


@inlined
def row_hash(rows: Rows, i: int, first_word: int, end: int) -> np.uint64:
    """A hash of some words of a row."""
    h = np.uint64(0)
    for k in range(first_word, end):
        h = mix(h ^ np.uint64(rows[i, k]))
    return h


@compiled_for(column(np.int64, 2), INTEGER, INTEGER, output(np.int64), output(np.int32))
def number_groups(rows: Rows, first_word: int, end: int, places: Ints, groups: Codes) -> int:
    """A number for each different key, in the order they come. `places`: -1, a power of two."""
    top = len(places) - 1
    first = np.empty(len(rows), np.int64)
    count = 0
    for i in range(len(rows)):
        at = np.int64(row_hash(rows, i, first_word, end)) & top
        while True:
            known = places[at]
            if known < 0:
                places[at] = count
                first[count] = i
                groups[i] = count
                count += 1
                break
            same = True
            for k in range(first_word, end):
                if rows[first[known], k] != rows[i, k]:
                    same = False
                    break
            if same:
                groups[i] = known
                break
            at = (at + 1) & top
    return count


@compiled_for(column(np.int32), output(np.int64), output(np.int32))
def put_in_order(numbers: Codes, edges: Ints, order: Codes) -> None:
    """Count, then place."""
    for number in numbers:
        edges[number + 1] += 1
    for number in range(len(edges) - 1):
        edges[number + 1] += edges[number]
    cursors = edges[:-1].copy()
    for i in range(len(numbers)):
        order[cursors[numbers[i]]] = i
        cursors[numbers[i]] += 1
