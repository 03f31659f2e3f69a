"""What a tuple costs at the low and at the high level (paper 1, section 7), in the engine's tables.

In: a file of packets, and the aggregates of a query GROUP BY tb, srcIP. Out: processor time by
level, bytes that went up, the groups. A task of the engine's low level reads the file and owns all
epochs, so that states that leave its table are merged in the same process, as with a source of one
split. Low is the table and its states, until they are packed; high is the merging of what left, and
the packing of what a query sees. Reading, that is decoding, counts for neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import process_time_ns
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.base import Column
from terascope.connectors.registry import parse_interface
from terascope.execute.prepare import prepare
from terascope.execute.reports import Meter
from terascope.execute.task import Groups, LowTask
from terascope.functions.slots import SUM_INT, state_slot
from terascope.kernels.merge.finish import columns as finished_columns
from terascope.physical.low_plan import LowAggregate, LowPlan, Slot
from terascope.physical.splits import EVERYTHING
from terascope.plan.expr import Col
from terascope.sketches.base import Argument, Numbers, Packed, StateColumn, StateKind, bytes_of
from terascope.types import Type

MEMORY: Final = 4 << 30
SPLIT_BYTES: Final = 64 << 20
QUERY: Final = "holistic"

Maker: TypeAlias = Callable[[], StateColumn]
Part: TypeAlias = Literal["read", "table", "low states", "merge", "high states"]


@dataclass
class LevelClock:
    """Processor time by part. Parts may be nested: time counts for the inner one."""

    spent: dict[Part, int] = field(default_factory=dict)
    sent_bytes: int = 0
    """Of packed states that left the low level."""
    _open: list[Part] = field(default_factory=list)
    _since: int = 0

    @contextmanager
    def on(self, part: Part) -> Iterator[None]:
        self._switch()
        self._open.append(part)
        try:
            yield
        finally:
            self._switch()
            self._open.pop()

    def _switch(self) -> None:
        now = process_time_ns()
        if self._open:
            part = self._open[-1]
            self.spent[part] = self.spent.get(part, 0) + now - self._since
        self._since = now


class LevelMeter(Meter):
    """The figures of a task, which also tell a clock what the task is doing."""

    def __init__(self, clock: LevelClock) -> None:
        super().__init__()
        self._clock = clock

    @contextmanager
    def timing(self, operator: str, **figures: float) -> Iterator[None]:
        with self._clock.on("table"):
            yield

    def over(self, operator: str, items: Any) -> Iterator[Any]:
        """Batches that are read, or groups that left a table."""
        part: Part = "read" if operator == "read" else "merge"
        iterator = iter(items)
        while True:
            with self._clock.on(part):
                item = next(iterator, None)
            if item is None:
                return
            yield item


class ClockedColumn(StateColumn):
    """A column of states whose time a clock counts."""

    def __init__(self, make: Maker, clock: LevelClock, part: Part) -> None:
        self._clock = clock
        self._part: Part = part
        with clock.on(part):
            self._column = make()

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        with self._clock.on(self._part):
            self._column.iterate(numbers, arguments)

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        with self._clock.on(self._part):
            self._column.merge(numbers, packed)

    def pack(self, numbers: Numbers) -> Packed:
        with self._clock.on(self._part):
            packed = self._column.pack(numbers)
        self._sent(packed)
        return packed

    def flushed(self) -> tuple[Numbers, Packed] | None:
        with self._clock.on(self._part):
            found = self._column.flushed()
        if found is not None:
            self._sent(found[1])
        return found

    def _sent(self, packed: Packed) -> None:
        if self._part == "low states":
            offsets, _ = bytes_of(packed)
            self._clock.sent_bytes += int(offsets[-1] - offsets[0])

    def drop(self, numbers: Numbers) -> None:
        with self._clock.on(self._part):
            self._column.drop(numbers)

    def clear(self) -> None:
        with self._clock.on(self._part):
            self._column.clear()

    @property
    def memory_bytes(self) -> int:
        return self._column.memory_bytes


def clocked(kind: StateKind, clock: LevelClock) -> StateKind:
    low = partial(ClockedColumn, kind.low, clock, "low states")
    return StateKind(kind.name, low, partial(ClockedColumn, kind.high, clock, "high states"))


@dataclass(frozen=True)
class Udaf:
    """An aggregate of a query: the null UDAF of the paper, a sum, or one with states."""

    arguments: tuple[str, ...]
    """Columns of the file."""
    kind: StateKind | None = None


@dataclass(frozen=True)
class LevelCost:
    """Of one run, in nanoseconds of processor time a tuple."""

    tuples: int
    table: float
    """The table, and what it does to keep groups: all of the low level that is not of states."""
    low_states: float
    merge: float
    high_states: float
    sent_bytes: float
    """A tuple."""
    groups: pa.Table
    """The answers: tb, srcIP, and u0, u1, ... for the aggregates."""

    @property
    def low(self) -> float:
        return self.table + self.low_states

    @property
    def high(self) -> float:
        return self.merge + self.high_states

    @property
    def total(self) -> float:
        return self.low + self.high

    @property
    def state_bytes(self) -> float:
        """Of the states of all groups in the end, a tuple."""
        names = [n for n in self.groups.column_names if n.startswith("u")]
        columns = [self.groups.column(name) for name in names]
        held = sum(int(c.nbytes) for c in columns if not pa.types.is_integer(c.type))
        return held / self.tuples


def aggregation(udafs: Sequence[Udaf], clock: LevelClock) -> LowAggregate:
    slots = tuple(slot_of(f"u{i}", udaf, clock) for i, udaf in enumerate(udafs))
    keys = tuple((name, Col(name, Type.LLONG)) for name in ("tb", "srcIP"))
    return LowAggregate(QUERY, (QUERY,), (), (), keys, 0, slots)


def slot_of(name: str, udaf: Udaf, clock: LevelClock) -> Slot:
    first, *more = (Col(column, Type.LLONG) for column in udaf.arguments)
    if udaf.kind is None:
        return Slot(name, SUM_INT, first, Type.LLONG)
    return Slot(name, state_slot(clocked(udaf.kind, clock)), first, Type.BINARY, more=tuple(more))


def level_cost(path: Path, udafs: Sequence[Udaf]) -> LevelCost:
    """Run a query of these aggregates over a file."""
    clock = LevelClock()
    query = aggregation(udafs, clock)
    names = dict.fromkeys(("tb", "srcIP", *(n for udaf in udafs for n in udaf.arguments)))
    plan = LowPlan(tuple(Column(n, Type.LLONG) for n in names), (), (query,), MEMORY)
    prepare(plan, lambda made, total: None)
    splits = parse_interface(f"{QUERY}=parquet:{path}").splits(SPLIT_BYTES)
    clock.spent.clear()
    task = LowTask(plan, {0: EVERYTHING}, LevelMeter(clock))
    with clock.on("table"):
        found = [ready for ready in task.run(splits) if isinstance(ready, Groups)]
    tuples = int(pq.read_metadata(path).num_rows)
    spent = {part: nanoseconds / tuples for part, nanoseconds in clock.spent.items()}
    batches = [finished_columns([g.block], query.groups, g.dictionaries) for g in found]
    return LevelCost(
        tuples,
        spent["table"],
        spent.get("low states", 0.0),
        spent["merge"],
        spent.get("high states", 0.0),
        clock.sent_bytes / tuples,
        pa.Table.from_batches(batches),
    )
