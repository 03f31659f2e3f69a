"""The catalog: protocols, interfaces and interface sets, and what `FROM x` means.

In: PROTOCOL statements and the interfaces bound outside of the query. Out: `Scan`s.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from terascope.bind.stream_order import rising
from terascope.connectors.arrival import ACCESSOR, arrival_column, is_arrival
from terascope.connectors.base import INTERFACE, POSITION
from terascope.connectors.dataframe import KIND as DATAFRAME
from terascope.connectors.packets import fields as packets
from terascope.connectors.registry import Interface
from terascope.connectors.tables.csv import positional
from terascope.connectors.tables.jsonlines import sampled_keys
from terascope.diagnostic import Diagnostic
from terascope.functions.base import Slope, Trend
from terascope.plan.expr import Col
from terascope.plan.rel import IFACE, POS, TS, ClockUnit, Project, Scan, SourceField
from terascope.syntax import ast
from terascope.types import Type, type_names

SYNONYMS = {"DataProtocol": "PKT"}
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
"""How alike an unknown property and a known one are, from which on it is a mistake."""
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


def packet_field(known: packets.Field) -> SourceField:
    slope = PROPERTIES[known.order] if known.order else None
    clock: ClockUnit | None = next((u for u in FINEST_FIRST if u == known.clock), None)
    return SourceField(known.name, known.type, slope, clock)


BUILT_IN: Mapping[str, Protocol] = {
    name: Protocol(name, tuple(map(packet_field, fields)), packets.LAYER_BITS[name])
    for name, fields in packets.PROTOCOLS.items()
}


class UnknownSource(Exception):
    """A FROM that names nothing that is there."""

    def __init__(self, code: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.help = code, message, help


@dataclass
class Catalog:
    """What can stand behind FROM, apart from the streams of the set itself."""

    interfaces: Mapping[str, Interface] = field(default_factory=dict)
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    open_world: bool = False
    """No sources are bound (check, fmt, explain without --source): any interface may exist."""
    protocols: dict[str, Protocol] = field(default_factory=lambda: dict(BUILT_IN))
    absent: dict[str, UnknownSource] = field(default_factory=dict)
    """Declared fields that a source does not have, by name: a mistake when a query reads one."""
    unseen: dict[str, str] = field(default_factory=dict)
    """Declared keys that no row of a sample of a JSON file has, and what is to be said of each."""

    def find(self, name: str) -> Protocol | None:
        return self.protocols.get(SYNONYMS.get(name, name))

    # ---- declarations

    def declare(self, statement: ast.ProtocolStatement) -> list[Diagnostic]:
        """Add a PROTOCOL, with the fields of its parents before its own."""
        mistakes: list[Diagnostic] = []
        fields: dict[str, SourceField] = {}
        positions: dict[str, int] = {}
        mistakes += map(unpacked_by_us, unpacking_lists(statement))
        layer = BUILT_IN[statement.name].layer if statement.name in BUILT_IN else None
        for parent in statement.parents:
            known = self.find(parent)
            if known is None:
                text = f"unknown parent protocol '{parent}'"
                mistakes.append(Diagnostic("unknown-protocol", text, statement.span))
                continue
            fields |= {f.name: f for f in known.fields}
            positions |= known.positions
            layer = known.layer if layer is None else layer
        for declared in statement.fields:
            made = self.declared_field(declared, mistakes)
            if made:
                fields[made.name] = made
                positions.pop(made.name, None)
                if found := POSITION_ACCESSOR.fullmatch(declared.accessor or ""):
                    positions[made.name] = int(found[1])
        own = [f for f in fields.values() if not is_arrival(f.read_from)]
        if layer is None and all(packets.canonical(f.name) in packets.FIELDS for f in own):
            layer = packets.LAYER_BITS["PKT"]
        self.protocols[statement.name] = Protocol(
            statement.name, tuple(fields.values()), layer, positions
        )
        return mistakes

    def declared_field(
        self, declared: ast.FieldDeclaration, mistakes: list[Diagnostic]
    ) -> SourceField | None:
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
            mistakes.append(
                Diagnostic("unknown-type", text, declared.span, help=f"types are {names}")
            )
            return None
        slope: Slope | None = None
        clock: ClockUnit | None = None
        for prop in declared.properties:
            word = prop.name.lower()
            if word in BANDED and (prop.argument or "").isdigit():
                slope = Slope(BANDED[word], band=int(prop.argument or 0))
            elif word in FIELD_HINTS:
                text = f"'{prop.name}' has no effect: {FIELD_HINTS[word]}"
                mistakes.append(
                    Diagnostic("hint-without-effect", text, prop.span, severity="warning")
                )
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

    # ---- FROM

    def scan(self, ref: ast.StreamRef) -> Scan | Project:
        """The scan a reference means.

        Raises:
            UnknownSource: no protocol, interface or set of that name.
        """
        if ref.interface is not None:
            protocol = self.find(ref.name)
            if protocol is None:
                raise UnknownSource(
                    "unknown-protocol",
                    f"unknown protocol '{ref.name}'",
                    self.suggest(ref.name) or self.protocol_help(),
                )
            names = self.members(ref.interface) if ref.interface_set else (ref.interface,)
            for name in names:
                self.check_provides(name, protocol)
            return self.scan_of(names, protocol)
        protocol = self.find(ref.name)
        if protocol is not None:
            return self.scan_of(self.providers(protocol), protocol)
        if ref.name in self.interfaces:
            return self.own_columns(self.interfaces[ref.name])
        raise UnknownSource(
            "unknown-stream",
            f"nothing is called '{ref.name}'",
            self.suggest(ref.name)
            or "FROM takes a query of the set, a protocol or an interface; " + self.protocol_help(),
        )

    def suggest(self, name: str) -> str | None:
        """Names are written one way only; the case is what people get wrong."""
        same = [k for k in (*self.protocols, *self.interfaces) if k.lower() == name.lower()]
        return f"did you mean '{same[0]}'? the case of letters counts" if same else None

    def protocol_help(self) -> str:
        names = ", ".join(sorted(self.protocols))
        known = ", ".join(sorted(self.interfaces))
        return f"protocols: {names}" + (f"; interfaces: {known}" if known else "")

    def members(self, name: str) -> tuple[str, ...]:
        if name in self.sets:
            return self.sets[name]
        if self.open_world or name in self.interfaces:
            return (name,)
        raise UnknownSource(
            "unknown-interface",
            f"no interface set '{name}'",
            f"make one with --set {name}=interface1,interface2",
        )

    def check_provides(self, name: str, protocol: Protocol) -> None:
        interface = self.interfaces.get(name)
        if interface is None:
            if self.open_world:
                return
            known = ", ".join(sorted(self.interfaces)) or "none"
            raise UnknownSource(
                "unknown-interface",
                f"no interface '{name}'",
                f"bind it with --source {name}=KIND:LOCATION; bound are: {known}",
            )
        if interface.is_packets:
            if protocol.layer is None:
                raise UnknownSource(
                    "wrong-protocol",
                    f"interface '{name}' delivers packets, and '{protocol.name}' is not of packets",
                    "declare it with a packet protocol as its parent, or read PKT",
                )
            self.lack(protocol, check_packet_fields(protocol))
            return
        if protocol.name in BUILT_IN and self.protocols[protocol.name] == BUILT_IN[protocol.name]:
            raise UnknownSource(
                "wrong-protocol",
                f"interface '{name}' is {interface.noun} and delivers no packets",
                f"declare a PROTOCOL with its columns, or read FROM {name}",
            )
        for declared in protocol.own_fields:
            column = protocol.read_from(declared, interface)
            if (refused := interface.cannot_hold(column, declared.type)) is not None:
                raise UnknownSource("wrong-type", *refused)
        if not interface.is_there:
            return  # whoever reads it will say so, if it has to be there
        self.lack(protocol, missing_columns(interface, protocol))

    def lack(self, protocol: Protocol, missing: Mapping[str, UnknownSource]) -> None:
        """Note the fields of a protocol that a source does not have: a query may not read them.

        Raises:
            UnknownSource: it has none of them.
        """
        if missing and len(missing) == len(protocol.own_fields):
            raise next(iter(missing.values()))
        self.absent |= missing

    def providers(self, protocol: Protocol) -> tuple[str, ...]:
        """All interfaces that can provide a protocol, in order of name."""
        found, partly = [], []
        almost: list[UnknownSource] = []
        for name in sorted(self.interfaces):
            before = dict(self.absent)
            try:
                self.check_provides(name, protocol)
            except UnknownSource as mistake:
                if mistake.code != "wrong-protocol":
                    almost.append(mistake)
                continue
            if self.lacking(name, protocol):
                partly.append(name)
                self.absent = before
            else:
                found.append(name)
        if not found and len(partly) == 1:  # of several, none is meant more than another
            found = partly
            self.check_provides(partly[0], protocol)
        elif not found:
            almost += [self.lacking(name, protocol)[0] for name in partly]
        if not found and not self.open_world:
            raise UnknownSource(
                "unknown-interface",
                f"no bound interface provides '{protocol.name}'",
                "; ".join(f"{m.message}: {m.help}" for m in almost)
                or "bind one with --source [INTERFACE=]KIND:LOCATION, such as pcap:trace.pcap",
            )
        return tuple(found)

    def lacking(self, name: str, protocol: Protocol) -> list[UnknownSource]:
        """Why an interface does not provide all fields of a protocol, field by field."""
        interface = self.interfaces[name]
        if interface.is_packets:
            return list(check_packet_fields(protocol).values())
        return list(missing_columns(interface, protocol).values()) if interface.is_there else []

    def own_columns(self, interface: Interface) -> Scan | Project:
        """An interface read by its own columns; a packet interface as PKT."""
        if interface.is_packets:
            return self.scan_of((interface.name,), self.protocols["PKT"])
        fields = tuple(SourceField(c.name, c.type) for c in interface.columns)
        return self.scan_of((interface.name,), Protocol(interface.name, fields))

    def scan_of(self, interfaces: Iterable[str], protocol: Protocol) -> Scan | Project:
        names = tuple(interfaces)
        on_packets = all(self.interfaces[n].is_packets for n in names if n in self.interfaces)
        layer = protocol.layer if on_packets else None
        here = [self.interfaces[n] for n in names if n in self.interfaces]
        lacking = {field for one in here for field in self.lacked(one, protocol)}
        declared = [f for f in protocol.fields if f.name not in lacking]
        if here and all(one.kind == "csv" for one in here):
            declared = [replace(f, column=placed(f, protocol)) for f in declared]
        if layer is None:
            declared = [self.in_full(f, here) for f in declared]
        fields = tuple(read_as_packet(f) if layer else f for f in declared)
        checked = tuple(f for f in fields if any(self.may_fail(n, f) for n in names))
        columns = (*fields, *place_fields(fields))
        return with_rising_place(Scan(names, protocol.name, columns, layer, checked))

    def in_full(self, declared: SourceField, read: Sequence[Interface]) -> SourceField:
        """A ULLONG field with all of its 64 bits, unless it is ordered or no source has so many: an
        order is followed in signed 64-bit numbers.
        """
        if declared.type is not Type.ULLONG or declared.slope is not None:
            return declared
        if any(one.is_packets for one in read):
            return declared
        if read and all(has_signed_integers(one, declared.read_from) for one in read):
            return declared
        return replace(declared, type=Type.WIDE)

    def lacked(self, interface: Interface, protocol: Protocol) -> Iterable[str]:
        """The names of the fields that an interface does not have."""
        if interface.is_packets:
            return check_packet_fields(protocol) if protocol.layer is not None else ()
        if not interface.is_there:
            return ()
        if interface.kind == "json":
            seen = sampled_keys(interface.files)
            for one in protocol.own_fields:
                if one.read_from not in seen:
                    self.unseen[one.name] = (
                        f"no row at the beginning of {interface.described} has the key"
                        f" '{one.read_from}' that {protocol.name} names: it is NULL where it is"
                        " missing"
                    )
        return missing_columns(interface, protocol)

    def may_fail(self, name: str, field: SourceField) -> bool:
        """Whether a value of the source may be no value of the declared type."""
        interface = self.interfaces.get(name)
        if interface is None or interface.is_packets or is_arrival(field.read_from):
            return False
        if interface.kind not in TYPED_KINDS or not interface.is_there:
            return True
        own = next((c.type for c in interface.columns if c.name == field.read_from), None)
        if own is field.type or (own is Type.ULLONG and field.type is Type.WIDE):
            return False
        if field.type is Type.WIDE and own is not None:
            return own is not Type.UINT
        if own is None or not own.is_numeric or not field.type.is_numeric:
            return True
        return field.type.is_unsigned and own is not Type.UINT


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


def as_arrival(declared: SourceField) -> SourceField:
    """A field that tells when a tuple arrived: seconds, or ticks of the clock it is declared to be.
    Ordered, it is a clock.
    """
    unit = declared.clock or "s"
    clock = unit if declared.slope is not None else None
    return replace(declared, clock=clock, column=arrival_column(unit))


def arrival_mistakes(made: SourceField, declared: ast.FieldDeclaration) -> Iterable[Diagnostic]:
    """What cannot be said of the time at which a tuple arrived."""
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


def unpacking_lists(statement: ast.ProtocolStatement) -> list[ast.AccessList]:
    own = [statement.unpacked_by, *(each.unpacked_by for each in statement.fields)]
    return [each for each in own if each is not None]


def unpacked_by_us(unpacking: ast.AccessList) -> Diagnostic:
    text = f"'[{', '.join(unpacking.names)}]' has no effect: {UNPACKING}"
    return Diagnostic("hint-without-effect", text, unpacking.span, severity="warning")


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
    return Diagnostic(
        "unknown-hint",
        f"{message} has no effect",
        prop.span,
        help=f"known: {known}",
        severity="warning",
    )
