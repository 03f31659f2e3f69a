"""The requested columns of packets, and the arrays that the decoder fills for them.

In: columns of a query, by any of their names. Out: `PacketLayout`, the same for all batches of a
split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from terascope.connectors.base import LAYERS, POSITION, Column, arrow_type
from terascope.connectors.packets.extract import RECORD_FIELDS
from terascope.connectors.packets.fields import FIELDS, ICMP, IP, TCP, TCP_FLAG_BITS, UDP, canonical
from terascope.connectors.packets.network import TABLE_FIELDS
from terascope.connectors.packets.regular import HAS_IDENT, HAS_PORTS
from terascope.connectors.packets.words import Ints
from terascope.diagnostic import SourceError
from terascope.types import Type

LINK_TABLE: Final = ("ethertype", "vlan", "srcMAC", "destMAC")
CODES: Final = {name: code for code, name in enumerate((*TABLE_FIELDS, *RECORD_FIELDS))}
"""The codes of the columns that `extract` fills."""
PAYLOADS: Final = {"data": "#data", "TCP_data": "#segment", "UDP_data": "#segment"}
"""Payload column -> which stretch of the packet it is."""
ADDRESSES: Final = {"srcIP": (12, 8), "destIP": (16, 24)}
"""Address column -> how far into the IPv4 and the IPv6 header it stands."""
LAYER_OF: Final = {
    **dict.fromkeys(("srcIP", "destIP"), IP),
    **dict.fromkeys(("ipversion", "protocol", "len", "hdr_length", "tos", "ttl", "offset"), IP),
    "more_fragments": IP,
    **dict.fromkeys(("flags", "sequence_number", "ack_number", "window", *TCP_FLAG_BITS), TCP),
    **dict.fromkeys(("icmp_type", "icmp_code"), ICMP),
    "data": IP,
    "TCP_data": TCP,
    "UDP_data": UDP,
}
"""Fields that just the packets of one layer have, all of them."""
TRAIT_OF: Final = {"srcPort": HAS_PORTS, "destPort": HAS_PORTS, "id": HAS_IDENT}
"""Fields that just the packets with a trait have. Those of the link are NULL where they are -1, and
those of the record never."""


def native_type(name: str) -> Type | None:
    """The type of a field or pseudo-column by its canonical name; None when there is none."""
    if name in (POSITION, LAYERS):
        return Type.LLONG
    field = FIELDS.get(name)
    return field.type if field else None


def check_columns(columns: Sequence[Column]) -> None:
    """Refuse columns that packets do not have, in the user's words."""
    for column in columns:
        type = native_type(canonical(column.name))
        if type is None:
            raise SourceError(f"packets have no field '{column.name}'")
        if arrow_type(type) != arrow_type(column.type):
            raise SourceError(
                f"packet field '{column.name}' is {type.label}, not {column.type.label}; "
                f"declare it as {type.label} in the PROTOCOL"
            )


def table_fields_needed(names: set[str]) -> list[str]:
    """The rows of the table from which the requested columns are made; those of `extract` first."""
    needed = {name for name in names if name in CODES and name != "more_fragments"}
    for name in names & PAYLOADS.keys():
        needed |= {f"{PAYLOADS[name]}_at", f"{PAYLOADS[name]}_bytes"}
    return sorted(needed) + [name for name in LINK_TABLE if name in names]


class PacketLayout:
    """What a batch consists of.

    Raises:
        SourceError: packets have no such column, or not of that type.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        check_columns(columns)
        self.names = [canonical(column.name) for column in columns]
        self.schema = pa.schema([(c.name, arrow_type(c.type)) for c in columns])
        wanted = set(self.names)
        needed = table_fields_needed(wanted)
        self.rows = {name: row for row, name in enumerate(needed)}
        """The rows of the table of integers, by their content."""
        self.fields: Ints = np.array([CODES[name] for name in needed if name in CODES], np.int64)
        """The fields that `extract` puts into the first rows."""
        self.link_rows = [self.rows.get(name, -1) for name in LINK_TABLE]
        self.payloads = sorted(wanted & PAYLOADS.keys())
        self.addresses = sorted(wanted & ADDRESSES.keys())
