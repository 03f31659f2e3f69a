"""The fields of a protocol that an interface provides, and the columns they are read from.

In: a protocol and an interface. Out: the fields that are missing, each with the mistake that a
query makes by reading it; and the hidden columns that tell where a tuple stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from terascope.bind.declared_fields import (
    FINEST_FIRST,
    PROPERTIES,
)
from terascope.bind.stream_order import rising
from terascope.connectors.arrival import is_arrival
from terascope.connectors.base import INTERFACE, POSITION
from terascope.connectors.dataframe import KIND as DATAFRAME
from terascope.connectors.packets import fields as packets
from terascope.connectors.registry import Interface
from terascope.connectors.tables.csv import positional
from terascope.plan.expr import Col
from terascope.plan.rel import IFACE, POS, TS, ClockUnit, Project, Scan, SourceField
from terascope.types import Type

POSITION_ACCESSOR = re.compile(r"get_csv_\w+_pos([1-9]\d{0,5})")
"""GS-Lite's accessors of CSV fields, which count from 1."""


TYPED_KINDS = frozenset({"parquet", "dataframe"})
"""Kinds whose columns have types of their own, so that most values cannot be malformed."""


@dataclass(frozen=True)
class Protocol:
    """A schema tuples are read by. `layer`: the bit of `#layers`, for one that packets provide."""

    name: str
    fields: tuple[SourceField, ...]
    layer: int | None = None
    positions: Mapping[str, int] = field(default_factory=dict)
    """Fields that are bound by their position in a line of a CSV file, not by name."""

    @property
    def own_fields(self) -> tuple[SourceField, ...]:
        """Those that a source must have; when a tuple arrived is known of every source."""
        return tuple(f for f in self.fields if not is_arrival(f.read_from))

    def read_from(self, declared: SourceField, interface: Interface) -> str:
        """The column of an interface that a field is read from."""
        if interface.kind == "csv" and declared.name in self.positions:
            return positional(self.positions[declared.name])
        return declared.read_from


def packet_field(known: packets.PacketField) -> SourceField:
    slope = PROPERTIES[known.order] if known.order else None
    clock: ClockUnit | None = next((u for u in FINEST_FIRST if u == known.clock), None)
    return SourceField(known.name, known.type, slope, clock)


class UnknownSource(Exception):
    """A FROM that names nothing that is there."""

    def __init__(self, code: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.help = code, message, help


def has_signed_integers(interface: Interface, column: str) -> bool:
    """Whether a column holds nothing above 2^63 - 1 and never will: it is an integer or a time of a
    DataFrame, or of the one Parquet file that is named. Of a folder, other files may follow.
    """
    if interface.kind != DATAFRAME and not (interface.kind == "parquet" and interface.names_file):
        return False
    own = next((c.type for c in interface.columns if c.name == column), None)
    return own is not None and own.is_integer and own is not Type.ULLONG


def placed(declared: SourceField, protocol: Protocol) -> str | None:
    """The column of a CSV file that a field is read from, when it is not called as the field is."""
    if declared.name in protocol.positions:
        return positional(protocol.positions[declared.name])
    return declared.column


def missing_columns(interface: Interface, protocol: Protocol) -> dict[str, UnknownSource]:
    """The fields of a protocol that a source does not have. JSON has no columns: a key that a row
    lacks is NULL there, also when many rows lack it.
    """
    if interface.kind == "json":
        return {}
    offered = [c.name for c in interface.columns]
    known = {*offered, *(positional(k + 1) for k in range(len(offered)))}
    missing: dict[str, UnknownSource] = {}
    for declared in protocol.own_fields:
        column = protocol.read_from(declared, interface)
        if column in known:
            continue
        place = protocol.positions.get(declared.name)
        which = f"column '{declared.read_from}'" if place is None else f"column {place}"
        help = f"its columns are {', '.join(sorted(offered))}"
        if interface.kind == "csv":
            help += csv_help(interface, protocol)
        missing[declared.name] = UnknownSource(
            "missing-column",
            f"{interface.described} has no {which} that {protocol.name} names",
            help,
        )
    return missing


def csv_help(interface: Interface, protocol: Protocol) -> str:
    """Options that help when the columns of a CSV file are not told right."""
    names = ",".join(f.name for f in protocol.fields)
    return (
        "; if its first line is no header, say so:"
        f" --source-option {interface.name}.header=false --source-option {interface.name}.names="
        f"{names}; if its columns are not separated by commas, --source-option"
        f" {interface.name}.delimiter=tab (or ';', '|', space)"
    )


def check_packet_fields(protocol: Protocol) -> dict[str, UnknownSource]:
    """A declared protocol can only name what packets have, and as what it is. Fields that packets
    do not have are returned, with what is said of them when a query reads one.
    """
    missing: dict[str, UnknownSource] = {}
    for declared in protocol.own_fields:
        known = packets.FIELDS.get(packets.canonical(declared.name))
        if known is None:
            missing[declared.name] = UnknownSource(
                "missing-column",
                f"packets have no field '{declared.name}' that {protocol.name} names",
                f"their fields are {', '.join(packets.FIELDS)}",
            )
            continue
        same = known.type is declared.type or (known.type.is_integer and declared.type.is_integer)
        if not same:
            raise UnknownSource(
                "wrong-type",
                f"'{declared.name}' of a packet is {known.type.label}, "
                f"{protocol.name} declares {declared.type.label}",
                "leave the type out, or declare that one",
            )
    return missing


def read_as_packet(field: SourceField) -> SourceField:
    """A declared field under an alias is read from the packet column it stands for."""
    name = packets.canonical(field.name)
    return (
        field if name == field.name or is_arrival(field.read_from) else replace(field, column=name)
    )


def place_fields(fields: Iterable[SourceField]) -> tuple[SourceField, ...]:
    """The hidden columns that tell where a tuple stands: finest clock, interface, position. A field
    that falls is taken only where none rises, and when tuples arrived only where no clock of their
    own tells their time.
    """
    ordered = sorted((f for f in fields if f.slope is not None), key=lambda f: f.falls)
    clocks = [f for f in ordered if f.clock is not None]
    clocks = [f for f in clocks if not is_arrival(f.read_from)] or clocks
    finest = min(clocks, key=lambda f: FINEST_FIRST.index(f.clock or "s"), default=None)
    first = finest or next(iter(ordered), None)
    place = [SourceField(IFACE, Type.STRING, column=INTERFACE)]
    place.append(SourceField(POS, Type.LLONG, column=POSITION))
    if first is not None:
        place.insert(0, replace(first, name=TS, column=first.read_from))
    return tuple(place)


def with_rising_place(scan: Scan) -> Scan | Project:
    """A hidden time that falls is turned round: hidden columns sort tuples in ascending order."""
    if not any(c.name == TS and c.falls for c in scan.columns):
        return scan
    columns = [Col(f.name, f.type) for f in scan.fields]
    return Project(scan, tuple((c.name, rising(c) if c.name == TS else c) for c in columns))
