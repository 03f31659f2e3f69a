"""From packets to Arrow columns: only the requested ones, without a Python object per packet.

In: `Records` of a window and the requested columns, by any of their names. Out: record batches
whose integer and address buffers are the arrays that the kernels filled. `PacketLayout` has the
arrays that the decoder fills for the columns; it is the same for all batches of a split.

Addresses and payloads are copied out of the window before it slides: Arrow's variable-size binary,
values one behind the other; a packet that has no such part is NULL. An address is a version byte
and the address in network order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.connectors import base
from terascope.connectors.base import Column, ReadReport, Split, arrow_type
from terascope.connectors.packets import fields
from terascope.connectors.packets.fields import IPV4, IPV6, TCP_FLAG_BITS, canonical
from terascope.connectors.packets.link import peel
from terascope.connectors.packets.memory import RECYCLER
from terascope.connectors.packets.network import RECORD_FIELDS, TABLE_FIELDS, extract, open_odd
from terascope.connectors.packets.records import NETWORK, RECORD_ROWS, TIMESTAMP, Records
from terascope.connectors.packets.regular import HAS_IDENT, HAS_PORTS, IN_FRAGMENTS, classify
from terascope.connectors.packets.words import SLACK, Bytes, Ints, load64, store64
from terascope.diagnostic import SourceError
from terascope.machine_code import compiled
from terascope.types import Type

LINK_TABLE: Final = ("ethertype", "vlan", "srcMAC", "destMAC")
CODES: Final = {name: code for code, name in enumerate((*TABLE_FIELDS, *RECORD_FIELDS))}
"""The codes of the columns that `extract` fills."""
PAYLOADS: Final = {"data": "#data", "TCP_data": "#segment", "UDP_data": "#segment"}
"""Payload column -> which stretch of the packet it is."""
ADDRESSES: Final = {"srcIP": (12, 8), "destIP": (16, 24)}
"""Address column -> how far into the IPv4 and the IPv6 header it stands."""
TRAIT_OF: Final = {"srcPort": HAS_PORTS, "destPort": HAS_PORTS, "id": HAS_IDENT}
"""Fields that just the packets with a trait have. Those of the link are NULL where they are -1, and
those of the record never."""
LAYER_OF: Final = {
    field.name: layer
    for layer, held in (
        (fields.IP, fields.NETWORK_FIELDS),
        (fields.TCP, fields.TCP_FIELDS),
        (fields.UDP, fields.UDP_FIELDS),
        (fields.ICMP, fields.ICMP_FIELDS),
    )
    for field in held
    if field.name not in TRAIT_OF
}
"""Fields that just the packets of one layer have, all of them."""


def native_type(name: str) -> Type | None:
    """The type of a field or pseudo-column by its canonical name; None when there is none."""
    if name in (base.POSITION, base.LAYERS):
        return Type.LLONG
    field = fields.FIELDS.get(name)
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


class PacketLayout:
    """The columns of a batch, and the arrays from which they are made.

    Raises:
        SourceError: packets have no such column, or not of that type.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        check_columns(columns)
        self.names = [canonical(column.name) for column in columns]
        self.columns = columns
        wanted = set(self.names)
        needed = wanted & CODES.keys() - {"more_fragments"}
        for name in wanted & PAYLOADS.keys():
            needed |= {f"{PAYLOADS[name]}_at", f"{PAYLOADS[name]}_bytes"}
        extracted = sorted(needed)
        self.fields: Ints = np.array([CODES[name] for name in extracted], np.int64)
        """The fields that `extract` puts into the first rows."""
        linked = [name for name in LINK_TABLE if name in wanted]
        self.rows = {name: row for row, name in enumerate([*extracted, *linked])}
        """The rows of the table of integers, by their content."""
        self.link_rows: Ints = np.array([self.rows.get(n, -1) for n in LINK_TABLE], np.int64)
        self.payloads = sorted(wanted & PAYLOADS.keys())
        self.addresses = sorted(wanted & ADDRESSES.keys())


LONGEST: Final = 17
FIRST_BYTES: Final = 1 << 20


@compiled
def append_addresses(
    buffer: Bytes,
    network: Ints,
    in_four: int,
    in_six: int,
    layers: Bytes,
    first: int,
    last: int,
    ends: NDArray[np.int32],
    content: Bytes,
) -> None:
    """Append the addresses at this offset in the headers, for rows first..last.

    Stores are whole words: excess bytes are overwritten by the next address.
    """
    to = int(ends[first])
    for i in range(first, last):
        at = network[i - first]
        if layers[i] & IPV4:
            store64(content, to, (load64(buffer, at + in_four) << 8) | 4)
            to += 5
        elif layers[i] & IPV6:
            store64(content, to, (load64(buffer, at + in_six) << 8) | 6)
            store64(content, to + 8, load64(buffer, at + in_six + 7))
            store64(content, to + 16, load64(buffer, at + in_six + 15))
            to += LONGEST
        ends[i + 1] = to


@compiled
def append_payloads(
    buffer: Bytes,
    at: Ints,
    lengths: Ints,
    layers: Bytes,
    layer: int,
    first: int,
    last: int,
    ends: NDArray[np.int32],
    content: Bytes,
) -> None:
    """Concatenate the payloads of rows first..last.

    Copied by whole words: excess bytes are overwritten by the next payload.
    """
    to = int(ends[first])
    for i in range(first, last):
        if layers[i] & layer:
            start = at[i]
            for k in range(0, lengths[i], 32):
                one = load64(buffer, start + k)
                two = load64(buffer, start + k + 8)
                three = load64(buffer, start + k + 16)
                four = load64(buffer, start + k + 24)
                store64(content, to + k, one)
                store64(content, to + k + 8, two)
                store64(content, to + k + 16, three)
                store64(content, to + k + 24, four)
            to += lengths[i]
        ends[i + 1] = to


class BytesColumn:
    """Values of any length, one behind the other."""

    def __init__(self, room: int) -> None:
        self.ends: NDArray[np.int32] = RECYCLER.array((BATCH_PACKETS + 1,), np.int32)
        self.ends[0] = 0
        self.content: Bytes = RECYCLER.array((room,), np.uint8)
        self.reserved = 0
        """Bytes of the values for which room was made."""

    def reserve(self, more: int) -> None:
        """Make room for values of so many bytes."""
        held = self.reserved
        self.reserved += more
        if self.reserved + SLACK > len(self.content):
            room = FIRST_BYTES
            while room < self.reserved + SLACK:  # few sizes, so that they are found again
                room *= 2
            grown: Bytes = RECYCLER.array((room,), np.uint8)
            grown[:held] = self.content[:held]
            self.content = grown

    def finish(self, count: int, valid: pa.Buffer | None) -> pa.Array:
        ends = self.ends[: count + 1]
        content = self.content[: int(ends[-1])]
        return pa.Array.from_buffers(
            pa.binary(), count, [valid, pa.py_buffer(ends), pa.py_buffer(content)]
        )


BATCH_PACKETS: Final = 1 << 16
BATCH_PAYLOAD: Final = 1 << 25
"""Bytes of payload after which a batch ends early."""
HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)


class PacketBatch:
    """A batch in the making. Its own arrays are handed to Arrow as they are."""

    def __init__(self, split: Split, layout: PacketLayout, records: Records) -> None:
        self._split = split
        self._layout = layout
        self._rows = layout.rows
        self._table: Ints = RECYCLER.array((len(layout.rows), BATCH_PACKETS), np.int64)
        self._payloads = {name: BytesColumn(FIRST_BYTES) for name in layout.payloads}
        room = BATCH_PACKETS * LONGEST + SLACK
        self._addresses = {name: BytesColumn(room) for name in layout.addresses}
        self._validities: dict[tuple[int, int], pa.Buffer | None] = {}
        self._records = records
        self._layers, self._traits, self._flags = records.batch
        self.filled = 0
        self.latest = 0
        """The largest timestamp so far."""

    @property
    def room(self) -> int:
        """The number of packets it takes at once; 0 when it is full."""
        if sum(column.reserved for column in self._payloads.values()) >= BATCH_PAYLOAD:
            return 0
        return min(BATCH_PACKETS - self.filled, RECORD_ROWS)

    def decode(self, window: Bytes, count: int, report: ReadReport) -> None:
        """Add the first `count` packets of the records, which lie in `window`."""
        first, last = self.filled, self.filled + count
        layout, layers, table = self._layout, self._layers, self._table
        numbers, marks = self._records.numbers, self._records.marks
        arrays = (window, numbers, marks, self._records.batch)
        packets = self._records.odd_fields
        peel(window, numbers, marks, count, first, table, layout.link_rows)
        odd = classify(*arrays, count, first)
        if odd:
            open_odd(*arrays, packets, odd, first)
        place = self._split.ordinal << base.FILE_SHIFT
        extract(*arrays, packets, odd, place, layout.fields, table, first, last)
        for name, column in self._addresses.items():
            places = (window, numbers[NETWORK], *ADDRESSES[name])
            append_addresses(*places, layers, first, last, column.ends, column.content)
        for name, column in self._payloads.items():
            at = table[self._rows[f"{PAYLOADS[name]}_at"]]
            lengths = table[self._rows[f"{PAYLOADS[name]}_bytes"]]
            layer = LAYER_OF[name]
            column.reserve(int(lengths[first:last] @ (layers[first:last] & layer != 0)))
            parts = (window, at, lengths, layers, layer)
            append_payloads(*parts, first, last, column.ends, column.content)
        self._records.count_malformed(count, self._split.path, report)
        self.latest = max(self.latest, int(numbers[TIMESTAMP, :count].max()))
        self.filled = last

    def finish(self) -> pa.RecordBatch:
        arrays = [self._array(name) for name in self._layout.names]
        return base.record_batch(self._layout.columns, arrays, self.filled)

    def _array(self, name: str) -> pa.Array:
        n = self.filled
        match name:
            case "interface":
                return pa.repeat(pa.scalar(self._split.source, pa.string()), n)
            case "srcIP" | "destIP":
                return self._addresses[name].finish(n, self._validity(name))
            case "srcMAC" | "destMAC":
                return mac_texts(self._table[self._rows[name], :n])
            case "more_fragments":
                return self._booleans(name, self._traits, IN_FRAGMENTS)
            case "data" | "TCP_data" | "UDP_data":
                return self._payloads[name].finish(n, self._validity(name))
            case _ if name in TCP_FLAG_BITS:
                return self._booleans(name, self._flags, TCP_FLAG_BITS[name])
            case _:
                values = pa.py_buffer(self._table[self._rows[name], :n])
                return pa.Array.from_buffers(pa.int64(), n, [self._validity(name), values])

    def _booleans(self, name: str, values: Bytes, bit: int) -> pa.Array:
        bits = bitmap(values[: self.filled], bit)
        return pa.Array.from_buffers(pa.bool_(), self.filled, [self._validity(name), bits])

    def _validity(self, name: str) -> pa.Buffer | None:
        if name in RECORD_FIELDS:
            return None
        layer, trait = LAYER_OF.get(name, 0), TRAIT_OF.get(name, 0)
        if not layer and not trait:
            return validity_by_sign(self._table[self._rows[name], : self.filled])
        if (layer, trait) not in self._validities:
            values = (self._layers if layer else self._traits)[: self.filled]
            is_everywhere = (values & (layer | trait)).all()
            bits = None if is_everywhere else bitmap(values, layer | trait)
            self._validities[layer, trait] = bits
        return self._validities[layer, trait]


def mac_texts(values: Ints) -> pa.Array:
    """MAC addresses as aa:bb:cc:dd:ee:ff; NULL where the value is -1."""
    text = np.full((len(values), 17), ord(":"), np.uint8)
    for place in range(6):
        octet = (values >> (40 - 8 * place)) & 0xFF
        text[:, 3 * place] = HEX[octet >> 4]
        text[:, 3 * place + 1] = HEX[octet & 15]
    ends = np.arange(len(values) + 1, dtype=np.int32) * 17
    return pa.Array.from_buffers(
        pa.string(),
        len(values),
        [validity_by_sign(values), pa.py_buffer(ends), pa.py_buffer(text)],
    )


def bitmap(values: Bytes, bit: int) -> pa.Buffer:
    """Whether each byte has a bit."""
    return pa.py_buffer(np.packbits(values & bit, bitorder="little"))


def validity_by_sign(values: Ints) -> pa.Buffer | None:
    """The rows that are not negative are valid; None when all are."""
    valid = values >= 0
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
