"""The catalog: protocols, interfaces and interface sets, and what `FROM x` means.

In: PROTOCOL statements and the interfaces bound outside of the query. Out: `Scan`s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from terascope.bind.protocols import (
    POSITION_ACCESSOR,
    TYPED_KINDS,
    Protocol,
    check_packet_fields,
    declared_field,
    has_signed_integers,
    missing_columns,
    packet_field,
    place_fields,
    read_as_packet,
    unpacking_hints,
    with_rising_place,
)
from terascope.connectors.arrival import is_arrival
from terascope.connectors.packets import fields as packets
from terascope.connectors.registry import Interface
from terascope.connectors.tables.csv import positional
from terascope.connectors.tables.jsonlines import sampled_keys
from terascope.diagnostic import NOWHERE, Diagnostic, Mistake, mistake
from terascope.plan.rel import Project, Scan, SourceField
from terascope.syntax import ast
from terascope.types import Type

SYNONYMS = {"DataProtocol": "PKT"}


BUILT_IN: Mapping[str, Protocol] = {
    name: Protocol(name, tuple(map(packet_field, fields)), packets.LAYER_BITS[name])
    for name, fields in packets.PROTOCOLS.items()
}


@dataclass
class Catalog:
    """Everything that can stand behind FROM, apart from the streams of the set itself."""

    interfaces: Mapping[str, Interface] = field(default_factory=dict)
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By interface: its partitions. A scan of the interface is the merge of all of them."""
    open_world: bool = False
    """No sources are bound (check, fmt, explain without --source): any interface may exist."""
    protocols: dict[str, Protocol] = field(default_factory=lambda: dict(BUILT_IN))
    absent: dict[str, Diagnostic] = field(default_factory=dict)
    """Declared fields that a source does not have, by name: a mistake when a query reads one."""
    unseen: dict[str, str] = field(default_factory=dict)
    """Declared keys that no row of a sample of a JSON file has, and what is to be said of each."""

    def find(self, name: str) -> Protocol | None:
        return self.protocols.get(SYNONYMS.get(name, name))

    # ---- declarations

    def declare(self, statement: ast.ProtocolStatement) -> list[Diagnostic]:
        """Add a PROTOCOL, with the fields of its parents before its own."""
        mistakes = [*unpacking_hints(statement)]
        fields: dict[str, SourceField] = {}
        positions: dict[str, int] = {}
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
            made = declared_field(declared, mistakes)
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

    # ---- FROM

    def scan(self, ref: ast.StreamRef) -> Scan | Project:
        """The scan a reference means."""
        protocol = self.find(ref.name)
        if ref.interface is not None:
            if protocol is None:
                message = f"unknown protocol '{ref.name}'"
                help = self.suggest(ref.name) or self.protocol_help()
                raise mistake("unknown-protocol", message, NOWHERE, help)
            names = self.members(ref.interface) if ref.interface_set else (ref.interface,)
            for name in names:
                self.absent |= self.not_provided(name, protocol)
            return self.scan_of(names, protocol)
        if protocol is not None:
            return self.scan_of(self.providers(protocol), protocol)
        if ref.name in self.interfaces:
            return self.own_columns(self.interfaces[ref.name])
        message = f"nothing is called '{ref.name}'"
        help = (
            self.suggest(ref.name)
            or "FROM takes a query of the set, a protocol or an interface; " + self.protocol_help()
        )
        raise mistake("unknown-stream", message, NOWHERE, help)

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
        message = f"no interface set '{name}'"
        help = f"make one with --set {name}=interface1,interface2"
        raise mistake("unknown-interface", message, NOWHERE, help)

    def not_provided(self, name: str, protocol: Protocol) -> Mapping[str, Diagnostic]:
        """The fields of a protocol that an interface does not have: a query may not read them. An
        interface that has none of them does not provide the protocol.
        """
        interface = self.interfaces.get(name)
        if interface is None:
            if self.open_world:
                return {}
            known = ", ".join(sorted(self.interfaces)) or "none"
            message = f"no interface '{name}'"
            help = f"bind it with --source {name}=KIND:LOCATION; bound are: {known}"
            raise mistake("unknown-interface", message, NOWHERE, help)
        if interface.is_packets and protocol.layer is None:
            raise mistake(
                "wrong-protocol",
                f"interface '{name}' delivers packets, and '{protocol.name}' is not of packets",
                NOWHERE,
                "declare it with a packet protocol as its parent, or read PKT",
            )
        if not interface.is_packets:
            self.check_columns(interface, protocol)
        missing = self.lacking(interface, protocol)
        if missing and len(missing) == len(protocol.own_fields):
            raise Mistake(next(iter(missing.values())))
        return missing

    def check_columns(self, interface: Interface, protocol: Protocol) -> None:
        """Refuse a protocol of packets, and types that an interface without packets cannot hold."""
        name = interface.name
        if protocol.name in BUILT_IN and self.protocols[protocol.name] == BUILT_IN[protocol.name]:
            message = f"interface '{name}' is {interface.noun} and delivers no packets"
            help = f"declare a PROTOCOL with its columns, or read FROM {name}"
            raise mistake("wrong-protocol", message, NOWHERE, help)
        for declared in protocol.own_fields:
            column = protocol.read_from(declared, interface)
            if (refused := interface.cannot_hold(column, declared.type)) is not None:
                message, help = refused
                raise mistake("wrong-type", message, NOWHERE, help)

    def lacking(self, interface: Interface, protocol: Protocol) -> Mapping[str, Diagnostic]:
        """The fields of a protocol that a source does not have. If it has to be there and is not,
        whoever reads it will say so.
        """
        if interface.is_packets:
            return check_packet_fields(protocol) if protocol.layer is not None else {}
        return missing_columns(interface, protocol) if interface.is_there else {}

    def providers(self, protocol: Protocol) -> tuple[str, ...]:
        """All interfaces that can provide a protocol, in order of name."""
        found: list[str] = []
        partly: dict[str, Mapping[str, Diagnostic]] = {}
        almost: list[Diagnostic] = []
        for name in sorted(self.interfaces):
            try:
                missing = self.not_provided(name, protocol)
            except Mistake as wrong:
                almost += (d for d in wrong.diagnostics if d.code != "wrong-protocol")
                continue
            if missing:
                partly[name] = missing
            else:
                found.append(name)
        if not found and len(partly) == 1:  # of several, none is meant more than another
            found = list(partly)
            self.absent |= partly[found[0]]
        elif not found:
            almost += [next(iter(missing.values())) for missing in partly.values()]
        if not found and not self.open_world:
            message = f"no bound interface provides '{protocol.name}'"
            help = (
                "; ".join(f"{m.message}: {m.help}" for m in almost)
                or "bind one with --source [INTERFACE=]KIND:LOCATION, such as pcap:trace.pcap"
            )
            raise mistake("unknown-interface", message, NOWHERE, help)
        return tuple(found)

    def own_columns(self, interface: Interface) -> Scan | Project:
        """An interface read by its own columns; a packet interface as PKT."""
        if interface.is_packets:
            return self.scan_of((interface.name,), self.protocols["PKT"])
        fields = tuple(SourceField(c.name, c.type) for c in interface.columns)
        return self.scan_of((interface.name,), Protocol(interface.name, fields))

    def scan_of(self, names: tuple[str, ...], protocol: Protocol) -> Scan | Project:
        here = [self.interfaces[n] for n in names if n in self.interfaces]
        layer = protocol.layer if all(one.is_packets for one in here) else None
        lacking = {field for one in here for field in self.lacking(one, protocol)}
        for one in here:
            self.note_unseen(one, protocol)
        declared = [f for f in protocol.fields if f.name not in lacking]
        if here and all(one.kind == "csv" for one in here):
            columns = {name: positional(place) for name, place in protocol.positions.items()}
            declared = [replace(f, column=columns.get(f.name, f.column)) for f in declared]
        if layer is None:
            declared = [self.in_full(f, here) for f in declared]
        fields = tuple(read_as_packet(f) if layer else f for f in declared)
        checked = tuple(f for f in fields if any(self.may_fail(n, f) for n in names))
        whole = (*fields, *place_fields(fields))
        names = tuple(part for name in names for part in self.partitions.get(name, (name,)))
        return with_rising_place(Scan(names, protocol.name, whole, layer, checked))

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

    def note_unseen(self, interface: Interface, protocol: Protocol) -> None:
        """Note the keys of a protocol that no row of a sample of a JSON file has."""
        if interface.kind != "json" or not interface.is_there:
            return
        seen = sampled_keys(interface.files)
        for one in protocol.own_fields:
            if one.read_from not in seen:
                self.unseen[one.name] = (
                    f"no row at the beginning of {interface.described} has the key"
                    f" '{one.read_from}' that {protocol.name} names: it is NULL where it is missing"
                )

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
