"""From packets to columns of integers: one loop per column wanted.

In: the kinds and places of packets, and the fields of the odd ones among them. Out: rows of a table
of 64-bit integers, -1 where a packet has no such field.

A loop per column keeps to one stream of stores at a time, and its loads hit the cache in which the
loop before left the headers. Loads do not wait for a test of the packet's kind: the value of a
packet of another kind is thrown away. Copies are loops, too: numba compiles the assignment of a
slice ten times as long.
"""

from __future__ import annotations

from typing import Final

from terascope.connectors.packets import records as lines
from terascope.connectors.packets.network import (
    ACKNOWLEDGED,
    DATA_AT,
    DESTINATION_PORT,
    FLAGS,
    HEADER,
    IDENT,
    LENGTH,
    MORE_FRAGMENTS,
    OFFSET,
    PROTOCOL,
    SEGMENT_AT,
    SEGMENT_BYTES,
    SEQUENCE,
    SOURCE_PORT,
    TABLE_FIELDS,
    TOS,
    TTL,
    VERSION,
    WINDOW,
)
from terascope.connectors.packets.regular import FOUR, SIX, WITH_TCP
from terascope.connectors.packets.words import Bytes, Ints, load8, load16, load32_network
from terascope.machine_code import compiled

RECORD_FIELDS: Final = ("timestamp", "time", "caplen", "wirelen", "#pos", "#layers")
"""Columns that every packet has, whatever it carries; their codes follow those of TABLE_FIELDS."""
FIRST_RECORD_FIELD: Final = len(TABLE_FIELDS)
TIMESTAMP, TIME, CAPLEN, WIRELEN, POSITION, LAYERS = range(
    FIRST_RECORD_FIELD, FIRST_RECORD_FIELD + len(RECORD_FIELDS)
)
SECOND: Final = 1_000_000_000
ANY_REGULAR: Final = FOUR | SIX


@compiled
def transport_byte(
    buffer: Bytes, transport: Ints, delta: int, kinds: Bytes, kind: int, out: Ints
) -> None:
    for i in range(len(out)):
        value = load8(buffer, transport[i] + delta)
        out[i] = value if kinds[i] & kind else -1


@compiled
def transport_short(
    buffer: Bytes, transport: Ints, delta: int, kinds: Bytes, kind: int, out: Ints
) -> None:
    for i in range(len(out)):
        value = load16(buffer, transport[i] + delta)
        out[i] = value if kinds[i] & kind else -1


@compiled
def transport_word(
    buffer: Bytes, transport: Ints, delta: int, kinds: Bytes, kind: int, out: Ints
) -> None:
    for i in range(len(out)):
        value = load32_network(buffer, transport[i] + delta)
        out[i] = value if kinds[i] & kind else -1


@compiled
def by_kind(kinds: Bytes, kind: int, value: int, others: int, out: Ints) -> None:
    """One value for packets of a kind, another for all other regular ones."""
    for i in range(len(out)):
        regular = value if kinds[i] & kind else others
        out[i] = regular if kinds[i] else -1


@compiled
def network_field(buffer: Bytes, network: Ints, kinds: Bytes, field: int, out: Ints) -> None:
    """A field of the IP header, which stands in different places in the two versions."""
    if field == LENGTH:
        for i in range(len(out)):
            four = load16(buffer, network[i] + 2)
            six = load16(buffer, network[i] + 4) + 40
            value = four if kinds[i] & FOUR else six
            out[i] = value if kinds[i] else -1
    elif field == TTL:
        for i in range(len(out)):
            value = load8(buffer, network[i] + (8 if kinds[i] & FOUR else 7))
            out[i] = value if kinds[i] else -1
    elif field == TOS:
        for i in range(len(out)):
            start = load16(buffer, network[i])
            value = start & 0xFF if kinds[i] & FOUR else (start >> 4) & 0xFF
            out[i] = value if kinds[i] else -1
    elif field == IDENT:
        for i in range(len(out)):
            value = load16(buffer, network[i] + 4)
            out[i] = value if kinds[i] & FOUR else -1


@compiled
def payload_field(
    buffer: Bytes, transport: Ints, stops: Ints, kinds: Bytes, field: int, out: Ints
) -> None:
    """The position and the length of the payload of IP, TCP or UDP in the window."""
    for i in range(len(out)):
        size = stops[i] - transport[i]
        header = 0
        if kinds[i] == 0:
            out[i] = -1
            continue
        if field == SEGMENT_AT or field == SEGMENT_BYTES:
            if kinds[i] & WITH_TCP:
                header = (load8(buffer, transport[i] + 12) >> 4) * 4
            else:
                header = 8
                length = load16(buffer, transport[i] + 4)
                if length > 0:
                    size = min(length, size)
        if field == DATA_AT or field == SEGMENT_AT:
            out[i] = min(transport[i] + header, stops[i])
        else:
            out[i] = max(size - header, 0)


@compiled
def record_field(numbers: Ints, layers: Bytes, base: int, field: int, out: Ints) -> None:
    """A field of the record, which no packet lacks; positions count from `base`."""
    offset, timestamp = numbers[lines.OFFSET], numbers[lines.TIMESTAMP]
    caplen, wirelen = numbers[lines.CAPLEN], numbers[lines.WIRELEN]
    if field == TIMESTAMP:
        for i in range(len(out)):
            out[i] = timestamp[i]
    elif field == TIME:
        for i in range(len(out)):
            out[i] = timestamp[i] // SECOND
    elif field == CAPLEN:
        for i in range(len(out)):
            out[i] = caplen[i]
    elif field == WIRELEN:
        for i in range(len(out)):
            out[i] = wirelen[i]
    elif field == POSITION:
        for i in range(len(out)):
            out[i] = base + offset[i]
    elif field == LAYERS:
        for i in range(len(out)):
            out[i] = layers[i]


@compiled
def extract(
    buffer: Bytes,
    numbers: Ints,
    marks: Bytes,
    batch: Bytes,
    packets: Ints,
    odd_count: int,
    base: int,
    fields: Ints,
    table: Ints,
    first: int,
    last: int,
) -> None:
    """Fill places first..last of the rows of `table`, row k with field `fields[k]`."""
    network, transport = numbers[lines.NETWORK], numbers[lines.TRANSPORT]
    stops, odd = numbers[lines.STOP], numbers[lines.ODD]
    kinds, layers = marks[lines.KIND], batch[lines.LAYERS]
    for row in range(len(fields)):
        field = fields[row]
        out = table[row, first:last]
        if field >= FIRST_RECORD_FIELD:
            record_field(numbers, layers[first:last], base, field, out)
            continue
        if field == SOURCE_PORT or field == DESTINATION_PORT or field == WINDOW:
            delta = 0 if field == SOURCE_PORT else (2 if field == DESTINATION_PORT else 14)
            kind = WITH_TCP if field == WINDOW else ANY_REGULAR
            transport_short(buffer, transport, delta, kinds, kind, out)
        elif field == SEQUENCE or field == ACKNOWLEDGED:
            delta = 4 if field == SEQUENCE else 8
            transport_word(buffer, transport, delta, kinds, WITH_TCP, out)
        elif field == FLAGS:
            transport_byte(buffer, transport, 13, kinds, WITH_TCP, out)
        elif field == VERSION or field == PROTOCOL:
            kind = FOUR if field == VERSION else WITH_TCP
            value = 4 if field == VERSION else 6
            others = 6 if field == VERSION else 17
            by_kind(kinds, kind, value, others, out)
        elif field == OFFSET or field == MORE_FRAGMENTS:
            for i in range(len(out)):
                out[i] = 0
        elif field == HEADER:
            for i in range(len(out)):
                out[i] = transport[i] - network[i]
        elif field == LENGTH or field == TTL or field == TOS or field == IDENT:
            network_field(buffer, network, kinds, field, out)
        elif field >= DATA_AT:
            payload_field(buffer, transport, stops, kinds, field, out)
        else:
            for i in range(len(out)):
                out[i] = -1
        for k in range(odd_count):
            out[odd[k]] = packets[k, field]
