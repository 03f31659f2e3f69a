"""Splitting in this process, and reading back what came out, tuple by tuple and in order.

The partition of a tuple is computed here once more, in plain Python: nothing is shared with the
kernels of `partitioning.placing` but the definition of the hash.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from terascope.connectors.base import LAYERS, Column, ReadReport
from terascope.connectors.packets.fields import ALL_FIELDS
from terascope.connectors.registry import Interface, parse_interface, read_split
from terascope.functions.base import Value
from terascope.partitioning.partitions import partitions_of
from terascope.partitioning.sets import PartitionSet, parse_set
from terascope.plan.evaluate import compile_expr
from terascope.splitting.finished import split_finished
from terascope.splitting.rule import SplitRule
from terascope.splitting.splitter import SourceSplitter, SplitSettings
from terascope.types import Type

MASK = (1 << 64) - 1
Row = dict[str, Any]
PACKET_COLUMNS = (*ALL_FIELDS, Column(LAYERS, Type.LLONG))
SHARED = Path(__file__).resolve().parents[2] / "../shared/data"


# ---- the hash, as it is defined ------------------------------------------------------------------


def mixed(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def word(value: Value) -> int:
    match value:
        case None:
            return 0x4E554C4C
        case float():
            return int(struct.unpack("<Q", struct.pack("<d", value + 0.0))[0])
        case int():
            return value & MASK
        case str():
            return word(value.encode())
        case bytes():
            if len(value) < 8:
                return len(value) << 56 | int.from_bytes(value, "little")
            state = len(value)
            for at in range(0, len(value), 8):
                state = mixed(state ^ int.from_bytes(value[at : at + 8], "little"))
            return state | 1 << 63
    raise AssertionError(value)


def hashed(set: PartitionSet, row: Row) -> int:
    names = tuple(row)
    found = 0
    for expr in set.expressions:
        value = compile_expr(expr, names, {})(tuple(row.values()))
        found = mixed(found * 0x9E3779B97F4A7C15 & MASK ^ mixed((word(value) + 0x632BE5AB) & MASK))
    return found


def number_of(set: PartitionSet, row: Row, count: int) -> int:
    return hashed(set, row) * count >> 64


# ---- splitting and reading -----------------------------------------------------------------------


def split_into(
    folder: Path,
    source: str,
    by: str | None,
    count: int,
    options: dict[str, str] | None = None,
    even: bool = False,
    edge: int = 0,
) -> tuple[Interface, SourceSplitter]:
    """Split a source; without `by`, in turn."""
    interface = parse_interface(source, options)
    columns = interface.columns
    set = None if by is None else parse_set(by, columns)
    rule = SplitRule.even(set, count)
    settings = SplitSettings(interface, columns, rule, folder, edge=edge)
    return interface, split_finished(settings, even)


def rows_of(interface: Interface, columns: Sequence[Column] | None = None) -> list[Row]:
    """The tuples of a source, in order."""
    return rows_and_report(interface, columns)[0]


def rows_and_report(
    interface: Interface, columns: Sequence[Column] | None = None
) -> tuple[list[Row], ReadReport]:
    if columns is None:
        columns = PACKET_COLUMNS if interface.is_packets else interface.columns
    report = ReadReport()
    found: list[Row] = []
    for split in interface.splits(1 << 40):
        for batch in read_split(split, columns, report):
            found += batch.to_pylist()
    return found, report


def partitions_in(folder: Path, kind: str, name: str) -> list[Interface]:
    """The partitions as they are bound."""
    return partitions_of(Interface(name, kind, str(folder)), None)


def assert_split(folder: Path, source: Interface, by: str | None, count: int) -> list[list[Row]]:
    """Every partition has the tuples of the source that belong to it, in their order."""
    parts = partitions_in(folder, source.kind, source.name)
    assert len(parts) == count
    rows = rows_of(source)
    set = None if by is None else parse_set(by, source.columns)
    wanted: list[list[Row]] = [[] for _ in range(count)]
    for place, row in enumerate(rows):
        number = place % count if set is None else number_of(set, row, count)
        wanted[number].append(row)
    found = [rows_of(part) for part in parts]
    assert found == wanted
    return found
