"""The catalogue of packet fields: the fields of each built-in packet protocol, under the papers'
names.

In: nothing. Out: plain data for the binder (fields, their order and clock, aliases) and for the
decoder (layer bits).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from terascope.connectors.base import Column
from terascope.types import Type


def declared(text: str) -> tuple[Column, ...]:
    """Fields, each by its name, its type and, of a clock, its unit. A clock is increasing."""
    fields = (field.split() for field in text.split(","))
    return tuple(Column(name, Type[type], *clock) for name, type, *clock in fields)


LINK_FIELDS: Final = declared(
    "time UINT s, timestamp ULLONG ns, interface STRING, caplen UINT, wirelen UINT, srcMAC STRING,"
    "destMAC STRING, ethertype UINT, vlan UINT"
)
NETWORK_FIELDS: Final = declared(
    "ipversion UINT, srcIP IP, destIP IP, protocol UINT, len UINT, hdr_length UINT, tos UINT,"
    "ttl UINT, id UINT, offset UINT, more_fragments BOOL, data BINARY"
)
PORT_FIELDS: Final = declared("srcPort UINT, destPort UINT")
TCP_FIELDS: Final = declared(
    "flags UINT, FIN BOOL, SYN BOOL, RST BOOL, PSH BOOL, ACK BOOL, URG BOOL, sequence_number UINT,"
    "ack_number UINT, window UINT, TCP_data BINARY"
)
TCP_FLAG_BITS: Final = {field.name: 1 << k for k, field in enumerate(TCP_FIELDS[1:7])}
UDP_FIELDS: Final = declared("UDP_data BINARY")
ICMP_FIELDS: Final = declared("icmp_type UINT, icmp_code UINT")
ALL_FIELDS: Final = (
    LINK_FIELDS + NETWORK_FIELDS + PORT_FIELDS + TCP_FIELDS + UDP_FIELDS + ICMP_FIELDS
)
"""Every field of every protocol; IP, IPV4, IPV6 and PKT have all of them, NULL where a packet has
none."""

FIELDS: Final[Mapping[str, Column]] = {field.name: field for field in ALL_FIELDS}

PROTOCOLS: Final[Mapping[str, tuple[Column, ...]]] = {
    "ETH": LINK_FIELDS,
    "PKT": ALL_FIELDS,
    "IP": ALL_FIELDS,
    "IPV4": ALL_FIELDS,
    "IPV6": ALL_FIELDS,
    "TCP": (*LINK_FIELDS, *NETWORK_FIELDS, *PORT_FIELDS, *TCP_FIELDS),
    "UDP": (*LINK_FIELDS, *NETWORK_FIELDS, *PORT_FIELDS, *UDP_FIELDS),
    "ICMP": (*LINK_FIELDS, *NETWORK_FIELDS, *ICMP_FIELDS),
}
"""The fields of each built-in protocol, in the order `SELECT *` gives them."""

LAYER_BITS: Final[Mapping[str, int]] = {name: 1 << k for k, name in enumerate(PROTOCOLS)}
"""The bit of each protocol in `#layers`; a packet has the bit of every protocol it belongs to."""
ETH, PKT, IP, IPV4, IPV6, TCP, UDP, ICMP = LAYER_BITS.values()

ALIASES: Final[Mapping[str, str]] = {
    "sourceIP": "srcIP",
    "dstIP": "destIP",
    "source_port": "srcPort",
    "dest_port": "destPort",
    "dstPort": "destPort",
    "length": "len",
    "bytes": "len",
    "seq": "sequence_number",
    "seq_nbr": "sequence_number",
    "seq_number": "sequence_number",
    "FYN": "FIN",
}
"""Other spellings the papers use -> the canonical name."""


def canonical(name: str) -> str:
    """The catalogue's name of a field given by its name or an alias."""
    return ALIASES.get(name, name)
