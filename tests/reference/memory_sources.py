from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from terascope.connectors.base import LAYERS, POSITION
from terascope.functions.base import Value
from terascope.plan.rel import IFACE, POS, Scan, SourceField
from terascope.reference.rows import Row
from terascope.types import BIAS, Type


@dataclass(frozen=True)
class MemorySources:
    """Tables in memory: interface -> its tuples as dicts. A key that is absent is NULL; `#pos` is
    the place in the list unless given.
    """

    tables: Mapping[str, Sequence[Mapping[str, Value]]]

    def rows(self, scan: Scan) -> list[Row]:
        return [
            tuple(self.value(c, interface, place, row) for c in scan.columns)
            for interface in scan.interfaces
            for place, row in enumerate(self.tables[interface])
            if scan.layer is None or row.get(LAYERS, 0) & scan.layer
        ]

    def value(
        self, column: SourceField, interface: str, place: int, row: Mapping[str, Value]
    ) -> Value:
        if column.name == IFACE:
            return interface
        if column.name == POS:
            return row.get(POSITION, place)
        value = row.get(column.read_from)
        return value - BIAS if column.type is Type.WIDE and value is not None else value

    def horizon(self, scan: Scan) -> Mapping[str, int]:
        furthest: dict[str, int] = {}
        for c in scan.columns:
            values = [
                row[c.read_from]
                for interface in scan.interfaces
                for row in self.tables[interface]
                if c.type.is_integer and row.get(c.read_from) is not None
            ]
            if values:
                furthest[c.name] = max(values)
        return furthest
