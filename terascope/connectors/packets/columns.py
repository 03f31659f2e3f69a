"""From packets to Arrow columns: only the requested ones, without a Python object per packet.

In: `Records` of a window and the requested columns. Out: record batches whose integer and address
buffers are the arrays that the kernels filled.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from terascope.connectors.base import FILE_SHIFT, ReadReport, Split
from terascope.connectors.packets.addresses import AddressColumn
from terascope.connectors.packets.extract import RECORD_FIELDS, extract
from terascope.connectors.packets.fields import TCP_FLAG_BITS
from terascope.connectors.packets.layout import (
    ADDRESSES,
    LAYER_OF,
    PAYLOADS,
    TRAIT_OF,
    PacketLayout,
)
from terascope.connectors.packets.link import peel
from terascope.connectors.packets.memory import RECYCLER
from terascope.connectors.packets.network import TABLE_FIELDS, open_odd
from terascope.connectors.packets.payload import PayloadColumn
from terascope.connectors.packets.reasons import FINE, REASONS, UNSUPPORTED_LINK
from terascope.connectors.packets.records import Records, empty_records
from terascope.connectors.packets.regular import IN_FRAGMENTS, classify
from terascope.connectors.packets.words import Bytes, Ints

BATCH_PACKETS: Final = 1 << 16
BATCH_PAYLOAD: Final = 1 << 25
"""Bytes of payload after which a batch ends early."""
HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)


class Scratch:
    """Arrays that every window's packets fill anew: where the parts of packets lie."""

    def __init__(self) -> None:
        self.records: Records = empty_records()
        rows = self.records.capacity
        self.network, self.transport, self.stops, self.odd = RECYCLER.array((4, rows), np.int64)
        self.version, self.kinds = RECYCLER.array((2, rows), np.uint8)
        self.packets: Ints = RECYCLER.array((rows, len(TABLE_FIELDS)), np.int64)
        self.layers, self.traits, self.flags = RECYCLER.array((3, BATCH_PACKETS), np.uint8)
        """For a whole batch: the bits that decide which columns are NULL, and its booleans."""


class PacketBatch:
    """A batch in the making. Its own arrays are handed to Arrow as they are."""

    def __init__(self, split: Split, layout: PacketLayout, scratch: Scratch) -> None:
        self._split = split
        self._layout = layout
        self._rows = layout.rows
        self._table: Ints = RECYCLER.array((len(layout.rows), BATCH_PACKETS), np.int64)
        self._payloads = {
            name: PayloadColumn(LAYER_OF[name], BATCH_PACKETS) for name in layout.payloads
        }
        self._addresses = {
            name: AddressColumn(*ADDRESSES[name], BATCH_PACKETS) for name in layout.addresses
        }
        self._validities: dict[tuple[int, int], pa.Buffer | None] = {}
        self._scratch = scratch
        self.filled = 0
        self.latest = 0
        """The largest timestamp so far."""

    @property
    def room(self) -> int:
        """The number of packets it takes at once; 0 when it is full."""
        if sum(column.bytes_held for column in self._payloads.values()) >= BATCH_PAYLOAD:
            return 0
        return min(BATCH_PACKETS - self.filled, self._scratch.records.capacity)

    def decode(self, window: Bytes, count: int, report: ReadReport) -> None:
        """Add the first `count` packets of the scratch's records, which lie in `window`."""
        s, first, last = self._scratch, self.filled, self.filled + count
        r = s.records
        peel(
            window, r.data, r.caplen, r.link, count, s.version, s.network, r.reason,
            first, self._table, *self._layout.link_rows,
        )  # fmt: skip
        odd = classify(
            window, r.data, r.caplen, r.wirelen, s.version, s.network, count,
            first, s.kinds, s.transport, s.stops, s.layers, s.traits, s.flags, s.odd,
        )  # fmt: skip
        if odd:
            open_odd(
                window, r.data, r.caplen, r.wirelen, s.version, s.network,
                first, s.odd, odd, s.packets, s.layers, s.traits, s.flags, r.reason,
            )  # fmt: skip
        extract(
            window, r.offset, r.caplen, r.wirelen, r.timestamp, s.network, s.transport, s.stops,
            s.kinds, s.layers, s.odd, odd, s.packets, self._split.ordinal << FILE_SHIFT,
            self._layout.fields, self._table, first, last,
        )  # fmt: skip
        for address in self._addresses.values():
            address.add(window, s.network, s.layers, first, last)
        for name, payload in self._payloads.items():
            at = self._table[self._rows[f"{PAYLOADS[name]}_at"]]
            lengths = self._table[self._rows[f"{PAYLOADS[name]}_bytes"]]
            payload.add(window, at, lengths, s.layers, first, last)
        self._count_malformed(count, report)
        self.latest = max(self.latest, int(r.timestamp[:count].max()))
        self.filled = last

    def _count_malformed(self, count: int, report: ReadReport) -> None:
        reasons = self._scratch.records.reason[:count]
        if not np.count_nonzero(reasons):
            return
        numbers = np.bincount(reasons).tolist()
        for code in range(FINE + 1, len(numbers)):
            if numbers[code]:
                report.malformed[REASONS[code]] += numbers[code]
        if len(numbers) > UNSUPPORTED_LINK and numbers[UNSUPPORTED_LINK]:
            first = np.flatnonzero(reasons == UNSUPPORTED_LINK)[0]
            link = int(self._scratch.records.link[first])
            report.name_file(self._split.path, f"{REASONS[UNSUPPORTED_LINK]} {link}")

    def finish(self) -> pa.RecordBatch:
        """The requested columns, in their order."""
        arrays = [self._array(name) for name in self._layout.names]
        if not arrays:  # a count of packets alone needs no column, but the batch must have its rows
            rows = pa.StructArray.from_buffers(pa.struct([]), self.filled, [None])
            return pa.RecordBatch.from_struct_array(rows)
        return pa.RecordBatch.from_arrays(arrays, schema=self._layout.schema)

    def _array(self, name: str) -> pa.Array:
        n = self.filled
        match name:
            case "interface":
                return pa.repeat(pa.scalar(self._split.interface, pa.string()), n)
            case "srcIP" | "destIP":
                return self._addresses[name].finish(n, self._validity(name))
            case "srcMAC" | "destMAC":
                return mac_texts(self._table[self._rows[name], :n])
            case "more_fragments":
                return self._booleans(name, self._scratch.traits, IN_FRAGMENTS)
            case "data" | "TCP_data" | "UDP_data":
                return self._payloads[name].finish(n, self._validity(name))
            case _ if name in TCP_FLAG_BITS:
                return self._booleans(name, self._scratch.flags, TCP_FLAG_BITS[name])
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
            values = self._scratch.layers if layer else self._scratch.traits
            self._validities[layer, trait] = validity_by_bit(values[: self.filled], layer | trait)
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


def validity_by_bit(values: Bytes, bit: int) -> pa.Buffer | None:
    """The rows that have a bit are valid; None when all have it."""
    return None if (values & bit).all() else bitmap(values, bit)


def validity_by_sign(values: Ints) -> pa.Buffer | None:
    """The rows that are not negative are valid; None when all are."""
    valid = values >= 0
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
