"""From packets to Arrow columns: only those asked for, without a Python object per packet.

In: `Records` of a window and the columns wanted. Out: record batches whose integer and address
buffers are the arrays the kernels filled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.connectors.base import (
    FILE_SHIFT,
    LAYERS,
    POSITION,
    Column,
    SourceError,
    Split,
    arrow_type,
)
from terascope.connectors.packets.compiled import Bytes, Ints
from terascope.connectors.packets.fields import FIELDS, TCP, TCP_FLAG_BITS, UDP, canonical
from terascope.connectors.packets.link import peel
from terascope.connectors.packets.network import TABLE_FIELDS, parse
from terascope.connectors.packets.payload import PayloadColumn, validity
from terascope.connectors.packets.reasons import FINE, UNSUPPORTED_LINK, wording
from terascope.connectors.packets.records import Records, empty_records
from terascope.types import Type

BATCH_PACKETS: Final = 1 << 16
BATCH_PAYLOAD: Final = 1 << 25
"""Bytes of payload after which a batch ends early."""
LINK_TABLE: Final = ("ethertype", "vlan", "srcMAC", "destMAC")
SECOND: Final = 1_000_000_000
ADDRESS_BYTES: Final = 17
PAYLOADS: Final = {
    "data": ("#data", 0),
    "TCP_data": ("#segment", TCP),
    "UDP_data": ("#segment", UDP),
}
"""Payload column -> which stretch of the packet, and the layer it needs."""
HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)


def native_type(name: str) -> Type | None:
    """The type of a field or pseudo-column by its canonical name; None when there is none."""
    if name in (POSITION, LAYERS):
        return Type.LLONG
    field = FIELDS.get(name)
    return field.type if field else None


def check_columns(columns: Sequence[Column]) -> None:
    """Refuse what packets do not have, in the user's words."""
    for column in columns:
        type = native_type(canonical(column.name))
        if type is None:
            raise SourceError(f"packets have no field '{column.name}'")
        if arrow_type(type) != arrow_type(column.type):
            raise SourceError(
                f"packet field '{column.name}' is {type.value}, not {column.type.value}; "
                f"declare it as {type.value} in the PROTOCOL"
            )


def table_fields_needed(names: set[str]) -> list[str]:
    """The table rows that the wanted columns are made of."""
    needed = {name for name in names if name in TABLE_FIELDS or name in LINK_TABLE}
    if names & TCP_FLAG_BITS.keys():
        needed.add("flags")
    for name in names & PAYLOADS.keys():
        needed |= {f"{PAYLOADS[name][0]}_at", f"{PAYLOADS[name][0]}_bytes"}
    return sorted(needed)


class Scratch:
    """Arrays that every batch of a split fills anew; what Arrow is to keep of them is copied."""

    def __init__(self) -> None:
        self.records: Records = empty_records(BATCH_PACKETS)
        self.version: Bytes = np.empty(BATCH_PACKETS, np.uint8)
        self.network: Ints = np.empty(BATCH_PACKETS, np.int64)
        self.layers: Ints = np.empty(BATCH_PACKETS, np.int64)


class Batch:
    """A batch in the making. Its own arrays are handed to Arrow as they are."""

    def __init__(self, split: Split, columns: Sequence[Column], scratch: Scratch) -> None:
        self._split = split
        self._columns = columns
        self._names = {canonical(column.name) for column in columns}
        needed = table_fields_needed(self._names)
        self._rows = {name: row for row, name in enumerate(needed)}
        self._table: Ints = np.empty((len(needed), BATCH_PACKETS), np.int64)
        self._payloads = {name: PayloadColumn() for name in self._names & PAYLOADS.keys()}
        self._addresses = {
            name: (
                np.zeros(BATCH_PACKETS + 1, np.int32),
                np.empty(BATCH_PACKETS * ADDRESS_BYTES if name in self._names else 0, np.uint8),
            )
            for name in ("srcIP", "destIP")
        }
        self._scratch = scratch
        self.records = scratch.records
        self.filled = 0

    @property
    def is_full(self) -> bool:
        return (
            self.filled == BATCH_PACKETS
            or sum(column.bytes_held for column in self._payloads.values()) >= BATCH_PAYLOAD
        )

    def decode(self, window: Bytes, filled: int) -> None:
        """Read the packets of rows `self.filled`..`filled`, which lie in `window`."""
        r, scratch, first = self.records, self._scratch, self.filled
        peel(
            window, r.data, r.caplen, r.link, first, filled,
            scratch.version, scratch.network, r.reason, self._table,
            *(self._rows.get(name, -1) for name in LINK_TABLE),
        )  # fmt: skip
        rows = np.array([self._rows.get(name, -1) for name in TABLE_FIELDS], np.int64)
        parse(
            window, r.data, r.caplen, r.wirelen, first, filled,
            scratch.version, scratch.network, scratch.layers, r.reason, rows, self._table,
            *self._addresses["srcIP"], *self._addresses["destIP"],
        )  # fmt: skip
        for name, payload in self._payloads.items():
            stretch, layer = PAYLOADS[name]
            at = self._table[self._rows[f"{stretch}_at"], first:filled]
            lengths = self._table[self._rows[f"{stretch}_bytes"], first:filled]
            if layer:
                lengths = np.where(scratch.layers[first:filled] & layer, lengths, -1)
            payload.add(window, at, lengths)
        self.filled = filled

    def count_malformed(self, malformed: Counter[str]) -> None:
        """Add the packets' reasons to a report."""
        reasons = self.records.reason[: self.filled]
        for code in np.flatnonzero(np.bincount(reasons)).tolist():
            if code == FINE:
                continue
            links = self.records.link[: self.filled][reasons == code]
            if code != UNSUPPORTED_LINK:
                malformed[wording(code, 0)] += len(links)
                continue
            kinds, counts = np.unique(links, return_counts=True)
            for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
                malformed[wording(code, kind)] += count

    def latest(self) -> int:
        """The largest timestamp of the batch, which is not empty."""
        return int(self.records.timestamp[: self.filled].max())

    def finish(self) -> pa.RecordBatch:
        """The columns asked for, in their order."""
        arrays = [self._array(canonical(column.name)) for column in self._columns]
        if not arrays:  # a count of packets alone needs no column, but the batch must have its rows
            rows = pa.StructArray.from_buffers(pa.struct([]), self.filled, [None])
            return pa.RecordBatch.from_struct_array(rows)
        schema = pa.schema([(c.name, arrow_type(c.type)) for c in self._columns])
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _array(self, name: str) -> pa.Array:
        r, n = self.records, self.filled
        match name:
            case "timestamp":
                return integers(r.timestamp[:n].copy())
            case "time":
                return integers(r.timestamp[:n] // SECOND)
            case "caplen":
                return integers(r.caplen[:n].copy())
            case "wirelen":
                return integers(r.wirelen[:n].copy())
            case "#pos":
                return integers(r.offset[:n] + (self._split.ordinal << FILE_SHIFT))
            case "#layers":
                return integers(self._scratch.layers[:n].copy())
            case "interface":
                return pa.repeat(pa.scalar(self._split.interface, pa.string()), n)
            case "srcIP" | "destIP":
                return addresses(*self._addresses[name], n)
            case "srcMAC" | "destMAC":
                return mac_texts(self._table[self._rows[name], :n])
            case "more_fragments":
                return booleans(self._table[self._rows[name], :n], 1)
            case "data" | "TCP_data" | "UDP_data":
                return self._payloads[name].finish()
            case _ if name in TCP_FLAG_BITS:
                return booleans(self._table[self._rows["flags"], :n], TCP_FLAG_BITS[name])
            case _:
                return nullable(self._table[self._rows[name], :n])


def integers(values: Ints) -> pa.Array:
    """Integers that are never NULL."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def nullable(values: Ints) -> pa.Array:
    """Integers of which -1 is NULL."""
    return pa.Array.from_buffers(
        pa.int64(), len(values), [validity(values >= 0), pa.py_buffer(values)]
    )


def booleans(values: Ints, bit: int) -> pa.Array:
    """Whether a bit is set; NULL where the value is -1."""
    bits = np.packbits((values & bit) != 0, bitorder="little")
    return pa.Array.from_buffers(
        pa.bool_(), len(values), [validity(values >= 0), pa.py_buffer(bits)]
    )


def addresses(ends: NDArray[np.int32], content: Bytes, count: int) -> pa.Array:
    """Addresses laid one after the other; an empty one is NULL."""
    ends = ends[: count + 1]
    return pa.Array.from_buffers(
        pa.binary(),
        count,
        [
            validity(ends[1:] != ends[:-1]),
            pa.py_buffer(ends),
            pa.py_buffer(content[: int(ends[-1])]),
        ],
    )


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
        [validity(values >= 0), pa.py_buffer(ends), pa.py_buffer(text)],
    )
