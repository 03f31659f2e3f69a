"""The beginning of each source, from which rates and selectivities are measured.

In: the scans of a query set and the interfaces that they read. Out: for each scan a batch of its
tuples. The tuples of a source are contiguous, so that groups, joins and windows have in the sample
what they have in the source; the sources of a set end at the same time, so that their joins find
their partners. A partitioned source is read from all of its partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.arrival import is_arrival
from terascope.connectors.base import (
    INTERFACE,
    LAYERS,
    POSITION,
    TICK_NS,
    Column,
    ReadReport,
    arrow_type,
    interface_of,
)
from terascope.connectors.registry import GENERATE, Interface, read_split
from terascope.plan.rel import Scan, SourceField
from terascope.types import Type
from terascope.units import NANOSECONDS

SPLIT_BYTES: Final = 1 << 20
"""Sources are read in pieces of this size: a sample ends within one."""


WORK: Final = 6_000_000
"""Tuples times queries that are computed: about two seconds of one core."""
FEWEST, MOST = 10_000, 100_000
"""The fewest and the most tuples of all sources together, unless a user says otherwise."""


@dataclass(frozen=True)
class Limits:
    """The most that is read of all sources together."""

    tuples: int = MOST
    seconds: float = 2.0


def tuples_for(queries: int) -> int:
    """The tuples on which so many queries are measured."""
    return min(MOST, max(FEWEST, WORK // max(1, queries)))


@dataclass(frozen=True)
class SourceBeginning:
    """Tuples of one source."""

    tuples: pa.Table
    """With the columns of the connector."""
    seconds: float | None
    """The time that they cover; None: the source has no clock."""
    is_whole: bool


@dataclass(frozen=True)
class Sample:
    """Tuples of the sources of a set."""

    sources: Mapping[str, SourceBeginning] = field(default_factory=dict)
    """By the names that queries use; a source that cannot be read here is not among them."""

    def has(self, scan: Scan) -> bool:
        return all(interface_of(name) in self.sources for name in scan.interfaces)

    def batch(self, scan: Scan) -> pa.RecordBatch:
        """The tuples of a scan, with its columns."""
        parts = [
            scanned(self.sources[interface_of(name)].tuples, name, scan)
            for name in dict.fromkeys(map(interface_of, scan.interfaces))
        ]
        whole = pa.concat_tables(parts).combine_chunks()
        found = whole.to_batches()
        return found[0] if found else empty_batch(scan)

    def seconds(self, scan: Scan) -> float | None:
        """The time that the tuples of a scan cover; None: there is no clock."""
        known = [self.sources[interface_of(name)].seconds for name in scan.interfaces]
        return max((one for one in known if one is not None), default=None)


def empty_batch(scan: Scan) -> pa.RecordBatch:
    arrays = [pa.array([], arrow_type(f.type)) for f in scan.fields]
    return pa.RecordBatch.from_arrays(arrays, list(scan.names))


def scanned(tuples: pa.Table, source: str, scan: Scan) -> pa.Table:
    if scan.layer is not None:
        bit = pc.bit_wise_and(tuples.column(LAYERS), pa.scalar(scan.layer, pa.int64()))
        tuples = tuples.filter(pc.not_equal(bit, 0))
    made = [column_of(tuples, source, one).cast(arrow_type(one.type)) for one in scan.columns]
    return pa.table(made, names=list(scan.names))


def column_of(tuples: pa.Table, source: str, one: SourceField) -> pa.ChunkedArray:
    if one.read_from == INTERFACE:
        return pa.chunked_array([pa.repeat(pa.scalar(source), tuples.num_rows)])
    found = tuples.column(one.read_from)
    if pa.types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    return found


def read_sample(
    scans: Sequence[Scan],
    interfaces: Mapping[str, Interface],
    limits: Limits,
    more: Mapping[str, Sequence[Column]] | None = None,
) -> Sample:
    """Read the beginning of every source that a set reads. `more`: columns that are read as well,
    by source.

    Raises:
        SourceError: a source cannot be read.
    """
    wanted = {interface_of(name) for scan in scans for name in scan.interfaces}
    readable = {
        name: some
        for name in sorted(wanted)
        if (some := [i for i in interfaces.values() if interface_of(i.name) == name])
        and all(one.hosts_low_level and one.kind != GENERATE for one in some)
    }
    share = Limits(
        max(1, limits.tuples // max(1, len(readable))), limits.seconds / max(1, len(readable))
    )
    read: dict[str, tuple[pa.Table, Column | None, bool]] = {}
    for name, members in readable.items():
        found = columns_of_scans(name, scans)
        for column in (more or {}).get(name, ()):
            found.setdefault(column.name, column)
        columns = list(found.values())
        clock = min((c for c in columns if c.clock is not None), key=tick, default=None)
        parts, is_whole = [], True
        own = Limits(max(1, share.tuples // len(members)), share.seconds / len(members))
        for member in members:
            table, whole = beginning(member, columns, own)
            parts.append(table)
            is_whole = is_whole and whole
        read[name] = (cut_to(parts, clock), clock, is_whole)
    ended = ending_together(read)
    return Sample({name: SourceBeginning(t, span_of(t, c), w) for name, (t, c, w) in ended.items()})


def columns_of_scans(source: str, scans: Iterable[Scan]) -> dict[str, Column]:
    """The columns that the scans of a source read, by name."""
    found: dict[str, Column] = {}
    for scan in scans:
        if source not in map(interface_of, scan.interfaces):
            continue
        for one in scan.columns:
            if one.read_from != INTERFACE:
                found.setdefault(one.read_from, Column(one.read_from, one.type, one.clock))
        if scan.layer is not None:
            found.setdefault(LAYERS, Column(LAYERS, Type.LLONG))
    return found or {POSITION: Column(POSITION, Type.LLONG)}


def beginning(
    interface: Interface, columns: Sequence[Column], limits: Limits
) -> tuple[pa.Table, bool]:
    """The first tuples of an interface, and whether these are all."""
    schema = pa.schema([(c.name, arrow_type(c.type)) for c in columns])
    batches: list[pa.RecordBatch] = []
    count, whole = 0, True
    for batch in batches_of(interface, columns, perf_counter() + limits.seconds):
        if batch is None or count >= limits.tuples:
            whole = False
            break
        made = [
            plain(array, field.type) for array, field in zip(batch.columns, schema, strict=True)
        ]
        batches.append(pa.RecordBatch.from_arrays(made, schema=schema))
        count += batch.num_rows
    table = pa.Table.from_batches(batches, schema)
    return table.slice(0, limits.tuples), whole and count <= limits.tuples


def plain(array: pa.Array, type: pa.DataType) -> pa.Array:
    return array if array.type == type else array.cast(type)


def batches_of(
    interface: Interface, columns: Sequence[Column], until: float
) -> Iterator[pa.RecordBatch | None]:
    """The batches of an interface; None when the time is over."""
    arriving = [c for c in columns if is_arrival(c.name)]
    if arriving:  # what has not arrived has no time of arrival
        return
    for split in interface.splits(SPLIT_BYTES):
        for batch in read_split(split, columns, ReadReport()):
            yield batch
            if perf_counter() > until:
                yield None


# ---- time ----------------------------------------------------------------------------------------


def cut_to(parts: Sequence[pa.Table], clock: Column | None) -> pa.Table:
    """The tuples of all partitions up to the time at which the first of them ends."""
    if clock is None or len(parts) == 1:
        return pa.concat_tables(parts)
    ends = [pc.max(part.column(clock.name)).as_py() for part in parts if part.num_rows]
    end = min((one for one in ends if one is not None), default=None)
    return pa.concat_tables([until(part, clock, end) for part in parts])


def until(table: pa.Table, clock: Column, end: int | None) -> pa.Table:
    if end is None:
        return table
    return table.filter(pc.less_equal(table.column(clock.name), pa.scalar(end, pa.int64())))


def ending_together(
    read: Mapping[str, tuple[pa.Table, Column | None, bool]],
) -> dict[str, tuple[pa.Table, Column | None, bool]]:
    """Sources that begin at about the same time are cut to the time at which the first one ends."""
    spans = {
        name: bounds
        for name, (t, c, _) in read.items()
        if c and (bounds := times(t, c)) is not None
    }
    ends = [end for name, (_, end) in spans.items() if not read[name][2]]
    first = min(ends, default=None)
    if first is None or any(begin >= first for begin, _ in spans.values()):
        return dict(read)
    made = {}
    for name, (table, clock, whole) in read.items():
        if name in spans and clock is not None and spans[name][1] > first:
            table, whole = until(table, clock, int(first * NANOSECONDS) // tick(clock)), False
        made[name] = (table, clock, whole)
    return made


def tick(clock: Column) -> int:
    """Nanoseconds in a tick of a clock."""
    return TICK_NS[clock.clock or "s"]


def times(table: pa.Table, clock: Column) -> tuple[float, float] | None:
    """The first and the last moment, in seconds."""
    if not table.num_rows:
        return None
    found = pc.min_max(table.column(clock.name)).as_py()
    if found["min"] is None:
        return None
    scale = tick(clock) / NANOSECONDS
    return found["min"] * scale, found["max"] * scale


def span_of(table: pa.Table, clock: Column | None) -> float | None:
    bounds = None if clock is None else times(table, clock)
    if bounds is None or clock is None:
        return None
    return max(bounds[1] - bounds[0], tick(clock) / NANOSECONDS)
