"""What bounded tables do, in plain Python: groups are lists of tuples, policies a few lines."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from bench.cache.placement import places
from terascope.functions.slots import COUNT, COUNT_OF, SUM_INT, SlotKind
from terascope.kernels.columns.arrays import Rows
from terascope.kernels.tables.bounded_tables import LATE_LIMIT, BoundedTable, Flush, Taker
from terascope.kernels.tables.slots import Shape
from terascope.kernels.tables.table_policies import Policy

Number: TypeAlias = int | float | None
Name: TypeAlias = tuple[int, ...]
"""Of a group: its epoch, and its key codes."""


@dataclass(frozen=True)
class Tuple:
    epoch: int
    codes: tuple[int, ...]
    arguments: tuple[Number, ...]
    """Of the slots that take one."""

    @property
    def name(self) -> Name:
        return (self.epoch, *self.codes)


@dataclass
class Group:
    name: Name
    tuples: list[Tuple] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        return self.name[0]


def fed(table: BoundedTable, tuples: Sequence[Tuple]) -> None:
    """One batch; the selection leaves every other position of the columns out."""
    count, shape = len(tuples), table.shape

    def spread(values: Sequence[Number], dtype: type) -> Any:
        column: Any = np.full(2 * count, 77).astype(dtype)
        column[::2] = np.array([77 if v is None else v for v in values], dtype)
        column.flags.writeable = False
        return column

    kinds = [kind for kind in shape.slots if kind.takes_argument]
    arguments = [[t.arguments[j] for t in tuples] for j in range(len(kinds))]
    table.add(
        spread([t.epoch for t in tuples], np.int64),
        np.arange(0, 2 * count, 2, dtype=np.int32),
        [spread([t.codes[k] for t in tuples], np.int32) for k in range(shape.keys)],
        [
            spread(values, np.float64 if kind.is_float else np.int64)
            for kind, values in zip(kinds, arguments, strict=True)
        ],
        [spread([int(v is not None) for v in values], np.uint8) for values in arguments],
    )


# ------------------------------------------------------------------------------ slots, plainly


def slot_of(kind: SlotKind, values: Sequence[Number]) -> Number:
    """What a slot holds after these arguments; NULL when it has seen no value."""
    seen = [v for v in values if v is not None]
    match kind.name:
        case "count":
            return len(values)
        case "count_of":
            return len(seen)
    if not seen:
        return None
    ints = [v for v in seen if isinstance(v, int)]
    match kind.name:
        case "sum_int":
            return sum(seen)
        case "min_int" | "min_float":
            return min(seen, key=lambda v: (math.isnan(v), v))
        case "max_int" | "max_float":
            return max(seen, key=lambda v: (math.isnan(v), v))
        case "or_int":
            return _folded(ints, lambda a, b: a | b)
        case "and_int":
            return _folded(ints, lambda a, b: a & b)
        case "xor_int":
            return _folded(ints, lambda a, b: a ^ b)
        case "range":
            return 0
    raise AssertionError(kind)


def _folded(values: Sequence[int], operator: Callable[[int, int], int]) -> int:
    total = values[0]
    for value in values[1:]:
        total = operator(total, value)
    return total


def slots_of(shape: Shape, tuples: Sequence[Tuple]) -> tuple[Number, ...]:
    slots, argument = [], 0
    for kind in shape.slots:
        if kind.takes_argument:
            slots.append(slot_of(kind, [t.arguments[argument] for t in tuples]))
            argument += 1
        else:
            slots.append(slot_of(kind, [0] * len(tuples)))
    return tuple(slots)


def merged(shape: Shape, partials: Sequence[tuple[Number, ...]]) -> tuple[Number, ...]:
    """Partials of one group, combined; sums in unbounded integers."""
    combining: dict[SlotKind, SlotKind] = {COUNT: SUM_INT, COUNT_OF: SUM_INT}
    return tuple(
        slot_of(combining.get(kind, kind), [partial[j] for partial in partials])
        for j, kind in enumerate(shape.slots)
    )


def read_row(shape: Shape, row: Rows) -> tuple[Name, tuple[Number, ...]]:
    """A row as it is laid out: the group's name, and its slots."""
    state = int(row[0])
    assert state & 1
    codes = []
    for k in range(shape.keys):
        word = row[shape.first_word + k // 2 : shape.first_word + k // 2 + 1]
        codes.append(int(word.view(np.int32)[1 - k % 2]))
    slots: list[Number] = []
    for j, kind in enumerate(shape.slots):
        word = row[shape.slot(j) : shape.slot(j) + 1]
        value = float(word.view(np.float64)[0]) if kind.is_float else int(word[0])
        counted = kind in (COUNT, COUNT_OF)
        slots.append(value if counted or state >> (1 + j) & 1 else None)
    return (int(row[1]), *codes), tuple(slots)


def same(left: tuple[Number, ...], right: tuple[Number, ...]) -> bool:
    """Equal, a NaN to a NaN."""
    return repr([_plain(v) for v in left]) == repr([_plain(v) for v in right])


def _plain(value: Number) -> Number:
    return value + 0.0 if isinstance(value, float) else value


# --------------------------------------------------------------------------- tables, plainly


class Model:
    """The flush rules; a policy says where groups stand and who must leave."""

    def __init__(self, shape: Shape, capacity: int, flush: Flush) -> None:
        self.shape, self.capacity, self.flush_rule = shape, capacity, flush
        self.current: int | None = None
        self.out: list[Group] = []
        self.late_run, self.last_late, self.position = 0, -2, -1
        self.paid = False

    def find(self, name: Name) -> Group | None:
        raise AssertionError

    def old(self) -> list[Group]:
        """In the order in which they are flushed."""
        return [g for g in self.groups() if g.epoch != self.current]

    def groups(self) -> list[Group]:
        raise AssertionError

    def remove(self, group: Group) -> None:
        raise AssertionError

    def insert(self, name: Name) -> Group:
        """After somebody has left for it."""
        raise AssertionError

    def flush_one(self, among: list[Group]) -> None:
        self.remove(among[0])
        self.out.append(among[0])

    def drain(self, everything: bool) -> None:
        while self.old():
            self.flush_one(self.old())
        while everything and self.groups():
            self.flush_one(self.groups())

    def add(self, tuple_: Tuple) -> None:
        self.position += 1
        self.paid = False
        group = self.find(tuple_.name)
        if group is not None:
            if self._overflows(group, tuple_):
                if group.epoch == self.current:
                    self.drain(everything=False)
                self.out.append(Group(group.name, group.tuples))
                group.tuples = []
            group.tuples.append(tuple_)
        elif self._goes_alone(tuple_.epoch):
            self.out.append(Group(tuple_.name, [tuple_]))
        else:
            self._enter(tuple_.epoch)
            self.insert(tuple_.name).tuples.append(tuple_)
        if self.old() and not self.paid:
            self.flush_one(self.old())

    def _enter(self, epoch: int) -> None:
        if epoch != self.current:
            back = self.current is not None and epoch < self.current
            self.drain(everything=back or self.flush_rule == "eager")
            self.current = epoch
            self.late_run = 0

    def _goes_alone(self, epoch: int) -> bool:
        if self.current is None or epoch >= self.current:
            return False
        self.late_run = self.late_run + 1 if self.last_late == self.position - 1 else 1
        self.last_late = self.position
        return self.late_run <= LATE_LIMIT

    def _overflows(self, group: Group, tuple_: Tuple) -> bool:
        sums = slots_of(self.shape, [*group.tuples, tuple_])
        return any(
            kind == SUM_INT and isinstance(total, int) and not -(2**63) <= total < 2**63
            for kind, total in zip(self.shape.slots, sums, strict=True)
        )


class ByPlace(Model):
    """Direct-mapped and second chance."""

    def __init__(
        self, shape: Shape, capacity: int, flush: Flush, places: Callable[[Name], tuple[int, ...]]
    ) -> None:
        super().__init__(shape, capacity, flush)
        self.places = places
        self.at: dict[int, Group] = {}
        self.cursor = 0

    def find(self, name: Name) -> Group | None:
        for place in self.places(name):
            group = self.at.get(place)
            if group is not None and group.name == name:
                return group
        return None

    def groups(self) -> list[Group]:
        around = sorted(self.at, key=lambda place: (place - self.cursor) % self.capacity)
        return [self.at[place] for place in around]

    def remove(self, group: Group) -> None:
        self.cursor = next(place for place, g in self.at.items() if g is group)
        del self.at[self.cursor]

    def insert(self, name: Name) -> Group:
        for place in self.places(name):
            owner = self.at.get(place)
            if owner is None or owner.epoch != self.current:
                if owner is not None:
                    self.out.append(owner)
                    self.paid = True
                self.at[place] = Group(name)
                return self.at[place]
        self.drain(everything=False)
        first = self.places(name)[0]
        self.out.append(self.at[first])
        self.at[first] = Group(name)
        return self.at[first]


class LeastRecentlyUsed(Model):
    """An OrderedDict, the least recently used first."""

    def __init__(self, shape: Shape, capacity: int, flush: Flush) -> None:
        super().__init__(shape, capacity, flush)
        self.table: OrderedDict[Name, Group] = OrderedDict()

    def find(self, name: Name) -> Group | None:
        if name in self.table and name[0] == self.current:
            self.table.move_to_end(name)
        return self.table.get(name)

    def groups(self) -> list[Group]:
        return list(self.table.values())

    def remove(self, group: Group) -> None:
        del self.table[group.name]

    def insert(self, name: Name) -> Group:
        if len(self.table) == self.capacity:
            _, owner = self.table.popitem(last=False)
            self.paid = owner.epoch != self.current
            self.out.append(owner)
        self.table[name] = Group(name)
        return self.table[name]


def model_of(table: BoundedTable, policy: Policy, flush: Flush) -> Model:
    if policy == "lru":
        return LeastRecentlyUsed(table.shape, table.capacity, flush)

    def places_of(name: Name) -> tuple[int, ...]:
        first, second = places(table, [np.array([code], np.int32) for code in name[1:]])
        return (int(first[0]),) if policy == "direct_mapped" else (int(first[0]), int(second[0]))

    return ByPlace(table.shape, table.capacity, flush, places_of)


def collector() -> tuple[list[Rows], Taker]:
    """Rows that a table gives, copied, and what takes them."""
    rows: list[Rows] = []

    def take(block: Rows) -> None:
        rows.extend(block.copy())

    return rows, take
