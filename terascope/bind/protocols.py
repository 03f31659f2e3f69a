"""Protocols: the fields that a PROTOCOL declares, and the columns of a source they are read from.

In: the declaration of a field. Out: a `SourceField`, and what is wrong with the declaration. In: a
protocol and an interface. Out: the fields that are missing, each with the mistake that a query
makes by reading it; and the hidden columns that tell where a tuple stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from terascope.connectors.arrival import ACCESSOR, arrival_column, is_arrival
from terascope.connectors.base import INTERFACE, POSITION, Column
from terascope.connectors.dataframe import KIND as DATAFRAME
from terascope.connectors.packets import fields as packets
from terascope.connectors.registry import Interface
from terascope.connectors.tables.csv import positional
from terascope.diagnostic import NOWHERE, Diagnostic, mistake
from terascope.functions.base import Slope, Trend
from terascope.plan.build import call
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import IFACE, POS, TS, ClockUnit, Project, Scan, SourceField
from terascope.syntax import ast
from terascope.types import Type, type_names

FINEST_FIRST: tuple[ClockUnit, ...] = ("ns", "us", "ms", "s")
PROPERTIES: Mapping[str, Slope] = {
    "increasing": Slope(Trend.INCREASING),
    "nondecreasing": Slope(Trend.INCREASING),
    "strictly_increasing": Slope(Trend.INCREASING, strict=True),
    "decreasing": Slope(Trend.DECREASING),
    "nonincreasing": Slope(Trend.DECREASING),
    "strictly_decreasing": Slope(Trend.DECREASING, strict=True),
}
BANDED = {"banded_increasing": Trend.INCREASING, "banded_decreasing": Trend.DECREASING}
FIELD_HINTS: Mapping[str, str] = {
    "required": "what a query reads is decoded, no more",
    "snap_len": "what a query reads is decoded, no more",
    "low_cardinality": "how many values a field has is seen while it is read",
}
"""Properties of GS-Lite's schemas that steer how it runs, and why they are not needed here."""
UNPACKING = "what a query reads is unpacked, by functions of our own"
MISSPELT = 0.8
"""The likeness to a known property from which on an unknown one is a mistake."""


def declared_field(
    declared: ast.FieldDeclaration, mistakes: list[Diagnostic]
) -> SourceField | None:
    """The field that a PROTOCOL declares; what is wrong with it is added to the mistakes."""
    known = packets.FIELDS.get(packets.canonical(declared.name))
    type = declared_type(declared.type_name)
    if declared.type_name is None and known is not None:
        type = known.type
    if type is None:
        text = (
            f"unknown type '{declared.type_name}'"
            if declared.type_name
            else f"field '{declared.name}' has no type"
        )
        names = ", ".join(sorted({t.value for t in type_names.values()}))
        mistakes.append(Diagnostic("unknown-type", text, declared.span, help=f"types are {names}"))
        return None
    slope: Slope | None = None
    clock: ClockUnit | None = None
    for prop in declared.properties:
        word = prop.name.lower()
        if word in BANDED and (prop.argument or "").isdigit():
            slope = Slope(BANDED[word], band=int(prop.argument or 0))
        elif word in FIELD_HINTS:
            text = f"'{prop.name}' has no effect: {FIELD_HINTS[word]}"
            mistakes.append(Diagnostic("hint-without-effect", text, prop.span, severity="warning"))
        elif word in PROPERTIES and prop.argument is None:
            slope = PROPERTIES[word]
        elif word == "clock" and prop.argument in FINEST_FIRST:
            clock = next(u for u in FINEST_FIRST if u == prop.argument)
        else:
            mistakes.append(unknown_property(prop))
    if clock and slope is None:
        slope = PROPERTIES["increasing"]
    if slope and clock is None and declared.type_name is None and known and known.clock:
        clock = next(u for u in FINEST_FIRST if u == known.clock)
    if slope and not type.is_numeric:
        text = f"only a number can be ordered, '{declared.name}' is {type.label}"
        mistakes.append(Diagnostic("bad-property", text, declared.span))
    made = SourceField(declared.name, type, slope, clock)
    if declared.accessor != ACCESSOR:
        return made
    mistakes += arrival_mistakes(made, declared)
    return as_arrival(made)


def as_arrival(declared: SourceField) -> SourceField:
    """A field that tells when a tuple arrived: seconds, or ticks of the clock it is declared to be.
    Ordered, it is a clock.
    """
    unit = declared.clock or "s"
    clock = unit if declared.slope is not None else None
    return replace(declared, clock=clock, column=arrival_column(unit))


def arrival_mistakes(made: SourceField, declared: ast.FieldDeclaration) -> Iterable[Diagnostic]:
    """The declarations that the time of a tuple's arrival cannot have."""
    if not made.type.is_integer:
        text = f"the time of arrival is an integer, '{made.name}' is {made.type.value}"
        yield Diagnostic("wrong-type", text, declared.span, help="declare it UINT or ULLONG")
    elif made.type is Type.UINT and made.clock not in (None, "s"):
        text = f"'{made.name}' is UINT, which cannot hold the time of arrival in {made.clock}"
        yield Diagnostic("wrong-type", text, declared.span, help="declare it ULLONG")
    if made.slope is not None and (made.falls or made.slope.strict):
        text = f"'{made.name}' is the time of arrival, which many tuples have in common"
        if made.falls:
            text = f"'{made.name}' is the time of arrival, which does not fall"
        yield Diagnostic("bad-property", text, declared.span, help="declare it increasing")


def declared_type(name: str | None) -> Type | None:
    return None if name is None else type_names.get(name.split("(")[0].strip().upper())


def unpacking_hints(statement: ast.ProtocolStatement) -> Iterable[Diagnostic]:
    for unpacking in (statement.unpacked_by, *(each.unpacked_by for each in statement.fields)):
        if unpacking is not None:
            text = f"'[{', '.join(unpacking.names)}]' has no effect: {UNPACKING}"
            yield Diagnostic("hint-without-effect", text, unpacking.span, severity="warning")


def unknown_property(prop: ast.FieldProperty) -> Diagnostic:
    """A property that fields do not have: a hint for somebody else, unless it is a known one that
    is misspelt or has the wrong argument, which would change what the stream is.
    """
    text = prop.name + (f"({prop.argument})" if prop.argument is not None else "")
    known = ", ".join([*PROPERTIES, *(f"{b}(n)" for b in BANDED), "clock(s|ms|us|ns)"])
    words = (*PROPERTIES, *BANDED, "clock")
    message = f"unknown field property '{text}'"
    if prop.name in words:
        return Diagnostic("unknown-property", message, prop.span, help=f"known: {known}")
    if close := get_close_matches(prop.name, words, 1, MISSPELT):
        help = f"did you mean {close[0]}? known: {known}"
        return Diagnostic("unknown-property", message, prop.span, help=help)
    message = f"{message} has no effect"
    help = f"known: {known}"
    return Diagnostic("unknown-hint", message, prop.span, help=help, severity="warning")


# ---- what a source provides ----------------------------------------------------------------------

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
        """The fields that a source must have; every source knows when a tuple arrived."""
        return tuple(f for f in self.fields if not is_arrival(f.read_from))

    def read_from(self, declared: SourceField, interface: Interface) -> str:
        """The column of an interface that a field is read from."""
        if interface.kind == "csv" and declared.name in self.positions:
            return positional(self.positions[declared.name])
        return declared.read_from


def packet_field(known: Column) -> SourceField:
    slope = PROPERTIES["increasing"] if known.clock else None
    clock: ClockUnit | None = next((u for u in FINEST_FIRST if u == known.clock), None)
    return SourceField(known.name, known.type, slope, clock)


def has_signed_integers(interface: Interface, column: str) -> bool:
    """Whether a column holds nothing above 2^63 - 1 and never will: it is an integer or a time of a
    DataFrame, or of the one Parquet file that is named. Of a folder, other files may follow.
    """
    if interface.kind != DATAFRAME and not (interface.kind == "parquet" and interface.names_file):
        return False
    own = next((c.type for c in interface.columns if c.name == column), None)
    return own is not None and own.is_integer and own is not Type.ULLONG


def missing_columns(interface: Interface, protocol: Protocol) -> dict[str, Diagnostic]:
    """The fields of a protocol that a source does not have. JSON has no columns: a key that a row
    lacks is NULL there, also when many rows lack it.
    """
    if interface.kind == "json":
        return {}
    offered = [c.name for c in interface.columns]
    known = {*offered, *(positional(k + 1) for k in range(len(offered)))}
    missing: dict[str, Diagnostic] = {}
    for declared in protocol.own_fields:
        column = protocol.read_from(declared, interface)
        if column in known:
            continue
        place = protocol.positions.get(declared.name)
        which = f"column '{declared.read_from}'" if place is None else f"column {place}"
        help = f"its columns are {', '.join(sorted(offered))}"
        if interface.kind == "csv":
            help += csv_help(interface, protocol)
        message = f"{interface.described} has no {which} that {protocol.name} names"
        missing[declared.name] = Diagnostic("missing-column", message, help=help)
    return missing


def csv_help(interface: Interface, protocol: Protocol) -> str:
    """The options that help when the columns of a CSV file are not recognised."""
    names = ",".join(f.name for f in protocol.fields)
    return (
        "; if its first line is no header, say so:"
        f" --source-option {interface.name}.header=false --source-option {interface.name}.names="
        f"{names}; if its columns are not separated by commas, --source-option"
        f" {interface.name}.delimiter=tab (or ';', '|', space)"
    )


def check_packet_fields(protocol: Protocol) -> dict[str, Diagnostic]:
    """A declared protocol can only name what packets have, and as what it is. Fields that packets
    do not have are returned, with what is said of them when a query reads one.
    """
    missing: dict[str, Diagnostic] = {}
    for declared in protocol.own_fields:
        known = packets.FIELDS.get(packets.canonical(declared.name))
        if known is None:
            message = f"packets have no field '{declared.name}' that {protocol.name} names"
            help = f"their fields are {', '.join(packets.FIELDS)}"
            missing[declared.name] = Diagnostic("missing-column", message, help=help)
            continue
        same = known.type is declared.type or (known.type.is_integer and declared.type.is_integer)
        if not same:
            message = (
                f"'{declared.name}' of a packet is {known.type.label}, "
                f"{protocol.name} declares {declared.type.label}"
            )
            help = "leave the type out, or declare that one"
            raise mistake("wrong-type", message, NOWHERE, help)
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


def rising(column: Col) -> Expr:
    """A value that rises where a column falls. For integers it is ~x = -x - 1, which exists for
    every x.
    """
    return call("~" if column.type.is_integer else "neg", column)
