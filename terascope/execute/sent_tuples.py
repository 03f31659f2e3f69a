"""Tuples that partitions send to the tasks of ranges of time.

In: the batches that the task of a partition reads. Out: `Outgoing` rows of kind "tuples", each with
tuples of one range and one partition. Beside them stands what the receiving task has to know before
it unpacks them: their range, their interface and the least and greatest of their times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import Bounds, Column, Split, arrow_type
from terascope.execute.held_payloads import HeldPayload, PayloadStore
from terascope.execute.reports import Meter, Outgoing
from terascope.kernels.merge.payload import narrow, pack_tuples
from terascope.physical.time_ranges import TimeRanges

PACKED_ROWS: Final = 1 << 17
"""About as many tuples as one payload has."""
PENDING_BYTES: Final = 64 << 20
"""The bytes of batches from which on all of them are packed."""
HEADER: Final = b"tuples"


@dataclass(frozen=True)
class Sending:
    """What the tasks of partitions send of a read."""

    read: str
    number: int
    """The place of the read among those that are sent."""
    columns: tuple[str, ...]
    ranges: TimeRanges
    compressed: bool = True
    """Whether tuples leave their host."""


class SentHeader(NamedTuple):
    """What is known of packed tuples."""

    range: int
    interface: str
    rows: int
    bounds: Bounds


@dataclass
class TupleSender:
    """Collects the tuples of one task."""

    sending: Sending
    meter: Meter = field(default_factory=Meter)
    _pending: dict[tuple[int, str], list[pa.RecordBatch]] = field(default_factory=dict)
    _bytes: int = 0
    _packed: list[tuple[int, HeldPayload]] = field(default_factory=list)
    _store: PayloadStore = field(default_factory=PayloadStore)

    def __call__(self, batch: pa.RecordBatch, split: Split) -> None:
        """Take a batch that was read."""
        if not batch.num_rows:
            return
        name = f"send {self.sending.read}"
        with self.meter.timing(name, taken=batch.num_rows, given=batch.num_rows):
            for number, some in self._by_range(batch.select(self.sending.columns)):
                self._add(number, split.interface, some)
            if self._bytes > PENDING_BYTES:
                self._pack_all()

    def _by_range(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        ranges = self.sending.ranges
        values = np.asarray(batch.column(ranges.column).cast(pa.int64()))
        numbers = ranges.numbers(values)
        if numbers[0] == numbers[-1] and (numbers == numbers[0]).all():
            yield int(numbers[0]), batch
            return
        if (np.diff(numbers) < 0).any():
            order = np.argsort(numbers, kind="stable")
            batch, numbers = batch.take(pa.array(order)), numbers[order]
        edges = np.searchsorted(numbers, np.arange(ranges.count + 1))
        for number, (begin, end) in enumerate(pairwise(edges.tolist())):
            if begin < end:
                yield number, batch.slice(begin, end - begin)

    def _add(self, number: int, interface: str, batch: pa.RecordBatch) -> None:
        waiting = self._pending.setdefault((number, interface), [])
        waiting.append(batch)
        self._bytes += batch.nbytes
        if sum(one.num_rows for one in waiting) >= PACKED_ROWS:
            self._pack(number, interface)

    def _pack(self, number: int, interface: str) -> None:
        waiting = self._pending.pop((number, interface))
        self._bytes -= sum(batch.nbytes for batch in waiting)
        column = self.sending.ranges.column
        whole = pa.Table.from_batches(waiting).unify_dictionaries().combine_chunks()
        (rows,) = whole.to_batches()
        ends = pc.min_max(rows.column(column)).as_py()
        bounds = ((column, ends["min"], ends["max"]),)
        header = json.dumps([number, interface, rows.num_rows, bounds])
        rows = narrowed(rows).replace_schema_metadata({HEADER: header})
        payload = pack_tuples(rows, compressed=self.sending.compressed)
        self.meter.add(f"send {self.sending.read}", exchanged_bytes=len(payload))
        self._packed.append((number, self._store.hold(payload)))

    def _pack_all(self) -> None:
        for number, interface in list(self._pending):
            self._pack(number, interface)

    def rows(self) -> Iterator[Outgoing]:
        """All tuples, for the tasks of their ranges."""
        with self.meter.timing(f"send {self.sending.read}"):
            self._pack_all()
        for number, held in self._packed:
            yield Outgoing(self.sending.number, number, "tuples", self._store.payload(held))
        report = json.dumps(self.meter.report(self.sending.read))
        yield Outgoing(-1, 0, "counters", None, report)


def narrowed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with integers of the narrowest types: compressed in a third of the time."""
    columns = [
        narrow(np.asarray(column))
        if pa.types.is_integer(column.type) and not column.null_count
        else column
        for column in rows.columns
    ]
    return pa.RecordBatch.from_arrays(columns, rows.schema.names)


def widened(rows: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    """Some columns of narrowed rows with the types that a connector gives them."""
    found = []
    for column in columns:
        held, wide = rows.column(column.name), arrow_type(column.type)
        found.append(held.cast(wide) if pa.types.is_integer(held.type) else held)
    return pa.RecordBatch.from_arrays(found, [column.name for column in columns])


def header_of(payload: bytes) -> SentHeader:
    """What stands beside packed tuples."""
    with pa.ipc.open_stream(payload) as stream:
        number, interface, rows, bounds = json.loads(stream.schema.metadata[HEADER])
    known = tuple((column, least, most) for column, least, most in bounds)
    return SentHeader(number, interface, rows, known)
