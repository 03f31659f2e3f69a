"""The tuples of the reference interpreter, read from real interfaces by their connectors.

In: interfaces. Out: `Sources`: for each scan its tuples and how far its columns reached.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from terascope.connectors.arrival import arrived, held_columns, with_arrival
from terascope.connectors.base import LAYERS, POSITION, Column, ReadReport, interface_of
from terascope.connectors.dataframe import DataFrameInterface
from terascope.connectors.registry import Interface, read_split
from terascope.functions.base import Value
from terascope.plan.rel import IFACE, POS, Scan, SourceField
from terascope.reference.rows import Row
from terascope.types import Type

SPLIT_BYTES = 64 << 20


def connector_column(source: SourceField) -> str:
    """The column a field of a scan is read from; `#if` is no column, it is the interface's name."""
    return {POS: POSITION, IFACE: IFACE}.get(source.name) or source.read_from


@dataclass(frozen=True)
class InterfaceRows:
    """All tuples of an interface, of whatever protocol, and what was seen on the way."""

    columns: dict[str, list[Value]]
    report: ReadReport


@dataclass(frozen=True)
class ConnectorSources:
    """The tuples of interfaces, read once per interface and choice of columns."""

    interfaces: Mapping[str, Interface]
    arrival_ns: int = field(default_factory=time.time_ns)
    """When all tuples arrived, by the clock on the wall."""
    _read: dict[tuple[str, tuple[Column, ...]], InterfaceRows] = field(default_factory=dict)

    @property
    def reports(self) -> Mapping[str, ReadReport]:
        """What reading saw, by interface; that of its last reading."""
        return {interface: reading.report for (interface, _), reading in self._read.items()}

    def rows(self, scan: Scan) -> list[Row]:
        given: list[Row] = []
        for interface in scan.interfaces:
            read = self.reading(interface, needed_columns(scan)).columns
            columns = {**read, IFACE: [interface_of(interface)] * len(read[POSITION])}
            chosen = [columns[connector_column(c)] for c in scan.columns]
            rows = zip(*chosen, strict=True)
            if scan.layer is not None:
                layered = zip(columns[LAYERS], rows, strict=True)
                given += [row for bits, row in layered if bits & scan.layer]
            else:
                given += rows
        return given

    def horizon(self, scan: Scan) -> Mapping[str, int]:
        columns = needed_columns(scan)
        furthest: dict[str, int] = {}
        for interface in scan.interfaces:
            seen = self.reading(interface, columns).report.horizon
            for c in scan.columns:
                if connector_column(c) in seen:
                    value = seen[connector_column(c)]
                    furthest[c.name] = max(furthest.get(c.name, value), value)
        return furthest

    def reading(self, interface: str, columns: tuple[Column, ...]) -> InterfaceRows:
        if (interface, columns) not in self._read:
            reading = InterfaceRows({column.name: [] for column in columns}, ReadReport())
            found = batches(self.interfaces[interface], columns, reading.report, self.arrival_ns)
            for batch in found:
                for column, values in zip(columns, batch.columns, strict=True):
                    reading.columns[column.name] += values.to_pylist()
            self._read[interface, columns] = reading
        return self._read[interface, columns]


def batches(
    interface: Interface, columns: tuple[Column, ...], report: ReadReport, arrival_ns: int
) -> Iterator[pa.RecordBatch]:
    """All tuples of an interface, in their order."""
    if isinstance(interface, DataFrameInterface):
        own = interface.batches(held_columns(columns), report)
        yield from with_arrival(own, columns, arrival_ns, report)
    for split in arrived(interface.splits(SPLIT_BYTES), columns, arrival_ns):
        yield from read_split(split, columns, report)


def needed_columns(scan: Scan) -> tuple[Column, ...]:
    """What a connector must deliver for a scan: each column once, `#pos` always, so that no
    reading is without columns.
    """
    read = (*scan.columns, *scan.checked)
    columns = {
        name: Column(name, c.type, c.clock)
        for c in read
        if (name := connector_column(c)) and c.name != IFACE
    }
    columns[POSITION] = Column(POSITION, Type.LLONG)
    if scan.layer is not None:
        columns[LAYERS] = Column(LAYERS, Type.LLONG)
    return tuple(columns.values())
