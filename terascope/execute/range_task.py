"""A task that gets the tuples of a range of time from all partitions.

In: reads with the part of their low-level plans that partitions cannot finish, and the packed
tuples of one range. Out: the `Outgoing` rows of a reading task that has these epochs alone: their
groups are complete, and need no exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from terascope.connectors.base import Column, ReadReport, Split
from terascope.execute.held_payloads import HeldPayload, PayloadStore
from terascope.execute.reading_task import Bundle, NativeRead, low_rows, owned_by_tasks
from terascope.execute.reports import Outgoing
from terascope.execute.sent_tuples import Sending, header_of, widened
from terascope.kernels.merge.payload import unpack_tuples
from terascope.physical.splits import Epochs
from terascope.physical.time_ranges import SENT, TimeRanges


@dataclass(frozen=True)
class RangeWork:
    """The work of the tasks of all ranges."""

    readings: tuple[NativeRead, ...]
    ranges: tuple[TimeRanges, ...]
    """The ranges of each read."""
    sources: tuple[str, ...]
    """The names of the reads of the partitions."""
    owned: tuple[Sequence[Mapping[int, Epochs | None]], ...]
    """For each read and range, the epochs that the task of the range owns, by query."""

    @classmethod
    def of(
        cls, readings: Sequence[NativeRead], ranges: Sequence[TimeRanges], sources: Iterable[str]
    ) -> RangeWork:
        owned = (
            owned_by_tasks(reading, some.splits(one.name for one in reading.read.interfaces))
            for reading, some in zip(readings, ranges, strict=True)
        )
        return cls(tuple(readings), tuple(ranges), tuple(sources), tuple(owned))

    def sending(self, compressed: bool) -> dict[str, Sending]:
        """What the tasks of partitions send, by the name of the read."""
        found: dict[str, Sending] = {}
        for number, source in enumerate(self.sources):
            low = self.readings[number].read.low
            assert low is not None
            columns = tuple(column.name for column in low.columns)
            found[source] = Sending(source, number, columns, self.ranges[number], compressed)
        return found

    @property
    def count(self) -> int:
        """The number of tasks."""
        return max(ranges.count for ranges in self.ranges)

    def rows(self, packed: Iterable[tuple[int, bytes]]) -> Iterator[Outgoing]:
        """Run the work of one task. `packed`: numbers of reads, and packed tuples of the range."""
        received = Received([[] for _ in self.readings])
        for place, payload in packed:
            received.add(place, payload)
        for place, reading in enumerate(self.readings):
            splits = received.in_order(place)
            if not splits:
                continue
            number = received.range
            bundle = Bundle(tuple(splits), self.owned[place][number], number)
            for row in low_rows(reading, bundle, read=received.read):
                if row.kind != "report":  # the task of the partition has reported these tuples
                    yield row


@dataclass
class Received:
    """The packed tuples of one range. Splits stand for them."""

    splits: Sequence[list[Split]]
    """Of each read."""
    range: int = 0

    def __post_init__(self) -> None:
        self._store = PayloadStore()
        self._held: list[HeldPayload] = []

    def add(self, place: int, payload: bytes) -> None:
        found = header_of(payload)
        self.range = found.range
        at = len(self._held)
        split = Split(SENT, found.interface, "", at, 0, found.rows, (), found.bounds)
        self.splits[place].append(split)
        self._held.append(self._store.hold(payload))

    def in_order(self, place: int) -> list[Split]:
        """The tuples of a read, by time: epochs are over one after the other."""
        return sorted(self.splits[place], key=lambda split: (split.bounds, split.interface))

    def read(
        self, split: Split, columns: Sequence[Column], report: ReadReport
    ) -> Iterator[pa.RecordBatch]:
        """The tuples that a split stands for, as a connector would read them."""
        del report
        for batch in unpack_tuples(self._store.payload(self._held[split.ordinal])):
            yield widened(batch, columns)
