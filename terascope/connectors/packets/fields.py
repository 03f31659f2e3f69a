"""The catalogue of packet fields: the fields of each built-in packet protocol, under the papers'
names.

In: nothing. Out: plain data for the binder (fields, their order and clock, aliases) and for the
decoder (layer bits).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from terascope.types import Type


@dataclass(frozen=True)
class PacketField:
    name: str
    type: Type
    order: str | None = None
    """`increasing` for the clocks; None when the field is not ordered."""
    clock: str | None = None
    """The unit, s or ns, when the field is wall-clock time."""


LINK_FIELDS: Final = (
    PacketField("time", Type.UINT, "increasing", "s"),
    PacketField("timestamp", Type.ULLONG, "increasing", "ns"),
    PacketField("interface", Type.STRING),
    PacketField("caplen", Type.UINT),
    PacketField("wirelen", Type.UINT),
    PacketField("srcMAC", Type.STRING),
    PacketField("destMAC", Type.STRING),
    PacketField("ethertype", Type.UINT),
    PacketField("vlan", Type.UINT),
)
NETWORK_FIELDS: Final = (
    PacketField("ipversion", Type.UINT),
    PacketField("srcIP", Type.IP),
    PacketField("destIP", Type.IP),
    PacketField("protocol", Type.UINT),
    PacketField("len", Type.UINT),
    PacketField("hdr_length", Type.UINT),
    PacketField("tos", Type.UINT),
    PacketField("ttl", Type.UINT),
    PacketField("id", Type.UINT),
    PacketField("offset", Type.UINT),
    PacketField("more_fragments", Type.BOOL),
    PacketField("data", Type.BINARY),
)
PORT_FIELDS: Final = (
    PacketField("srcPort", Type.UINT),
    PacketField("destPort", Type.UINT),
)
TCP_FLAG_BITS: Final = {
    flag: 1 << k for k, flag in enumerate(("FIN", "SYN", "RST", "PSH", "ACK", "URG"))
}
TCP_FIELDS: Final = (
    PacketField("flags", Type.UINT),
    *(PacketField(name, Type.BOOL) for name in TCP_FLAG_BITS),
    PacketField("sequence_number", Type.UINT),
    PacketField("ack_number", Type.UINT),
    PacketField("window", Type.UINT),
    PacketField("TCP_data", Type.BINARY),
)
UDP_FIELDS: Final = (PacketField("UDP_data", Type.BINARY),)
ICMP_FIELDS: Final = (
    PacketField("icmp_type", Type.UINT),
    PacketField("icmp_code", Type.UINT),
)
ALL_FIELDS: Final = (
    *LINK_FIELDS,
    *NETWORK_FIELDS,
    *PORT_FIELDS,
    *TCP_FIELDS,
    *UDP_FIELDS,
    *ICMP_FIELDS,
)
"""Every field of every protocol; IP, IPV4, IPV6 and PKT have all of them, NULL where a packet has
none."""

FIELDS: Final[Mapping[str, PacketField]] = {field.name: field for field in ALL_FIELDS}

PROTOCOLS: Final[Mapping[str, tuple[PacketField, ...]]] = {
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
