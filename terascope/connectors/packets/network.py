"""Reading the fields of packets: regular ones column by column, all others packet by packet.

In: the kinds and places of packets. Out: rows of a table of 64-bit integers, -1 where a packet has
no such field. Of a packet that is not regular, the outermost IP header and TCP, UDP or ICMP behind
it are read at once, with its layers, and a reason when it is malformed.

A loop per column keeps to one stream of stores at a time, and its loads hit the cache in which the
loop before left the headers. Loads do not wait for a test of the packet's kind: the value of a
packet of another kind is thrown away. Copies are loops, too: numba compiles the assignment of a
slice ten times as long.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from terascope.connectors.packets import records, regular
from terascope.connectors.packets.fields import ETH, ICMP, IP, TCP, UDP
from terascope.connectors.packets.words import Bytes, Ints, load8, load16, load32, load32_network
from terascope.machine_code import compiled

TABLE_FIELDS: Final = tuple(
    "ipversion protocol len hdr_length tos ttl id offset more_fragments"
    " srcPort destPort flags sequence_number ack_number window icmp_type icmp_code"
    " #data_at #data_bytes #segment_at #segment_bytes".split()
)
"""The fields of a packet in the order of its line; the last four say where payloads lie in the
window.
"""

(
    VERSION, PROTOCOL, LENGTH, HEADER, TOS, TTL, IDENT, OFFSET, MORE_FRAGMENTS,
    SOURCE_PORT, DESTINATION_PORT, FLAGS, SEQUENCE, ACKNOWLEDGED, WINDOW, ICMP_TYPE, ICMP_CODE,
    DATA_AT, DATA_BYTES, SEGMENT_AT, SEGMENT_BYTES,
) = range(len(TABLE_FIELDS))  # fmt: skip

LARGEST_PADDING = 6
"""Bytes an Ethernet frame pads an IPv6 header without payload with."""


@compiled
def open_ipv4(
    buffer: Bytes, at: int, end: int, wire_end: int, packet: Ints
) -> tuple[int, int, int, int, bool]:
    """(layers, reason, payload, its end, whether a transport header starts there)."""
    if end > at and buffer[at] >> 4 != 4:
        return ETH, records.BAD_VERSION, at, at, False
    if end - at < 20:
        return ETH, records.CUT_IPV4, at, at, False
    header = (load8(buffer, at) & 15) * 4
    if header < 20:
        return ETH, records.BAD_IHL, at, at, False
    total = load16(buffer, at + 2)
    fragment = load16(buffer, at + 6)
    packet[VERSION] = 4
    packet[PROTOCOL] = buffer[at + 9]
    packet[LENGTH] = total
    packet[HEADER] = header
    packet[TOS] = buffer[at + 1]
    packet[TTL] = buffer[at + 8]
    packet[IDENT] = load16(buffer, at + 4)
    packet[OFFSET] = fragment & 0x1FFF
    packet[MORE_FRAGMENTS] = (fragment >> 13) & 1
    if end - at < header:
        return regular.IS_IPV4, records.CUT_IPV4, end, end, False
    if 0 < total < header:
        return regular.IS_IPV4, records.BAD_TOTAL, at + header, at + header, False
    # Total length 0: the network card was to cut the datagram (offload); all of the frame is its.
    stop = at + total if total > 0 else end
    why = records.LONG_IPV4 if stop > wire_end else records.FINE
    return regular.IS_IPV4, why, at + header, min(stop, end), fragment & 0x1FFF == 0


@compiled
def jumbo_length(buffer: Bytes, at: int, end: int) -> int:
    """The length in a jumbo payload option of the hop-by-hop header at `at`, or -1."""
    at += 2
    while at < end:
        if buffer[at] == 0:
            at += 1
            continue
        if at + 2 > end:
            break
        if buffer[at] == 0xC2 and buffer[at + 1] == 4 and at + 6 <= end:
            return load32(buffer, at + 2, True)
        at += 2 + load8(buffer, at + 1)
    return -1


@compiled
def open_ipv6(
    buffer: Bytes, at: int, end: int, wire_end: int, packet: Ints
) -> tuple[int, int, int, int, bool]:
    """(layers, reason, payload, its end, whether a transport header starts there)."""
    if end > at and buffer[at] >> 4 != 6:
        return ETH, records.BAD_VERSION, at, at, False
    if end - at < 40:
        return ETH, records.CUT_IPV6, at, at, False
    length = load16(buffer, at + 4)
    following = load8(buffer, at + 6)
    packet[VERSION] = 6
    packet[TOS] = (load16(buffer, at) >> 4) & 0xFF
    packet[TTL] = buffer[at + 7]
    packet[OFFSET] = 0
    packet[MORE_FRAGMENTS] = 0
    cursor = at + 40
    unbounded = False
    if length == 0:
        if following == 0 and end - cursor >= 8:
            headers = (load8(buffer, cursor + 1) + 1) * 8
            jumbo = jumbo_length(buffer, cursor, min(end, cursor + headers))
            length = max(jumbo, 0)
        # No length at all but more than padding behind: left to the network card (offload), as for
        # IPv4.
        unbounded = length == 0 and following != 59 and wire_end - cursor > LARGEST_PADDING
    stop = end if unbounded else cursor + length
    packet[LENGTH] = 40 + length
    why = records.LONG_IPV6 if stop > wire_end else records.FINE
    stop = min(stop, end)
    whole = True
    while whole:
        size = 0
        if following == 44:
            size = 8
        elif following == 51:
            size = 8 if stop - cursor < 2 else (load8(buffer, cursor + 1) + 2) * 4
        elif following in (0, 43, 60, 135, 139, 140):
            size = 8 if stop - cursor < 2 else (load8(buffer, cursor + 1) + 1) * 8
        if size == 0:
            break
        if stop - cursor < size:
            if why == records.FINE:
                why = records.CUT_EXTENSION
            whole = False
            break
        if following == 44:
            fragment = load16(buffer, cursor + 2)
            packet[OFFSET] = fragment >> 3
            packet[MORE_FRAGMENTS] = fragment & 1
            packet[IDENT] = load32(buffer, cursor + 4, True)
            whole = fragment >> 3 == 0
        following = load8(buffer, cursor)
        cursor += size
    packet[PROTOCOL] = following
    packet[HEADER] = cursor - at
    return regular.IS_IPV6, why, cursor, stop, whole


@compiled
def open_transport(buffer: Bytes, at: int, end: int, cut: bool, packet: Ints) -> tuple[int, int]:
    """(layer or 0, reason). `cut`: bytes of the payload are missing from the capture, or follow in
    other fragments.
    """
    protocol = packet[PROTOCOL]
    size = end - at
    if protocol == 6:
        if size < 20:
            return 0, records.CUT_TCP
        header = (load8(buffer, at + 12) >> 4) * 4
        packet[SOURCE_PORT] = load16(buffer, at)
        packet[DESTINATION_PORT] = load16(buffer, at + 2)
        packet[SEQUENCE] = load32(buffer, at + 4, True)
        packet[ACKNOWLEDGED] = load32(buffer, at + 8, True)
        packet[FLAGS] = buffer[at + 13]
        packet[WINDOW] = load16(buffer, at + 14)
        packet[SEGMENT_AT] = min(at + header, end)
        packet[SEGMENT_BYTES] = max(size - header, 0)
        if header < 20 or (header > size and not cut):
            packet[SEGMENT_BYTES] = 0
            return TCP, records.BAD_TCP
        return TCP, records.FINE
    if protocol == 17:
        if size < 8:
            return 0, records.CUT_UDP
        length = load16(buffer, at + 4)
        packet[SOURCE_PORT] = load16(buffer, at)
        packet[DESTINATION_PORT] = load16(buffer, at + 2)
        packet[SEGMENT_AT] = at + 8
        # Length 0 is right in a jumbogram, and where the network card was to fill it in.
        packet[SEGMENT_BYTES] = size - 8 if length == 0 else max(min(length, size) - 8, 0)
        if 0 < length < 8 or (length > size and not cut):
            return UDP, records.BAD_UDP
        return UDP, records.FINE
    if protocol == 1 or protocol == 58:
        if size < 4:
            return 0, records.CUT_ICMP
        packet[ICMP_TYPE] = buffer[at]
        packet[ICMP_CODE] = buffer[at + 1]
        return ICMP, records.FINE
    if (protocol == 132 or protocol == 33 or protocol == 136) and size >= 4:
        packet[SOURCE_PORT] = load16(buffer, at)  # SCTP, DCCP and UDP-Lite have ports as well
        packet[DESTINATION_PORT] = load16(buffer, at + 2)
    return 0, records.FINE


@compiled
def open_odd(
    buffer: Bytes,
    numbers: Ints,
    marks: Bytes,
    batch: Bytes,
    packets: Ints,
    count: int,
    first: int,
) -> None:
    """Read the packets that the first `count` entries of `odd` name: their fields into the lines of
    `packets`, their layers, traits and TCP flags from row `first` on, and their reasons.
    """
    data, caplen, wirelen = numbers[records.DATA], numbers[records.CAPLEN], numbers[records.WIRELEN]
    network, odd = numbers[records.NETWORK], numbers[records.ODD]
    version, reason = marks[records.VERSION], marks[records.REASON]
    layers, traits, flags = batch[records.LAYERS], batch[records.TRAITS], batch[records.FLAGS]
    for k in range(count):
        i = odd[k]
        packet = packets[k]
        for field in range(len(packet)):
            packet[field] = -1
        at = network[i]
        end = data[i] + caplen[i]
        wire_end = data[i] + max(wirelen[i], caplen[i])
        found = ETH
        why = records.FINE
        payload = stop = at
        transport = False
        if version[i] == 4:
            found, why, payload, stop, transport = open_ipv4(buffer, at, end, wire_end, packet)
        elif version[i] == 6:
            found, why, payload, stop, transport = open_ipv6(buffer, at, end, wire_end, packet)
        if found & IP:
            packet[DATA_AT] = payload
            packet[DATA_BYTES] = max(stop - payload, 0)
        if transport:
            cut = wirelen[i] > caplen[i] or packet[MORE_FRAGMENTS] == 1 or why != records.FINE
            layer, failure = open_transport(buffer, payload, stop, cut, packet)
            found |= layer
            if why == records.FINE:
                why = failure
        layers[first + i] = found
        traits[first + i] = (
            (regular.HAS_PORTS if packet[SOURCE_PORT] >= 0 else 0)
            | (regular.HAS_IDENT if packet[IDENT] >= 0 else 0)
            | (regular.IN_FRAGMENTS if packet[MORE_FRAGMENTS] == 1 else 0)
        )
        flags[first + i] = packet[FLAGS] & 0xFF
        if reason[i] == records.FINE:
            reason[i] = why


RECORD_FIELDS: Final = ("timestamp", "time", "caplen", "wirelen", "#pos", "#layers")
"""Columns that every packet has, whatever it carries; their codes follow those of TABLE_FIELDS."""
TIMESTAMP, TIME, CAPLEN, WIRELEN, POSITION, LAYERS = range(
    len(TABLE_FIELDS), len(TABLE_FIELDS) + len(RECORD_FIELDS)
)
RECORD_LINES: Final = np.array(
    [records.TIMESTAMP, records.TIMESTAMP, records.CAPLEN, records.WIRELEN, records.OFFSET],
    np.int64,
)
"""The line of `Records.numbers` that a record field is made of."""
REGULAR: Final = regular.FOUR | regular.SIX
PLACES: Final = np.zeros((len(TABLE_FIELDS), 7), np.int64)
"""For each field of a regular packet: whether it is in the transport header, the word that has it
in a packet of IPv4 and of IPv6, how far it is from the end of that word, its bits, the number to
add for IPv6, and the kinds of packets that have it."""
PLACES[LENGTH] = 0, 2, 4, 16, 0xFFFF, 40, REGULAR
PLACES[TTL] = 0, 8, 7, 24, 0xFF, 0, REGULAR
PLACES[IDENT] = 0, 4, 4, 16, 0xFFFF, 0, regular.FOUR
PLACES[OFFSET] = PLACES[MORE_FRAGMENTS] = 0, 0, 0, 0, 0, 0, REGULAR
PLACES[SOURCE_PORT] = 1, 0, 0, 16, 0xFFFF, 0, REGULAR
PLACES[DESTINATION_PORT] = 1, 2, 2, 16, 0xFFFF, 0, REGULAR
PLACES[FLAGS] = 1, 13, 13, 24, 0xFF, 0, regular.WITH_TCP
PLACES[SEQUENCE] = 1, 4, 4, 0, 0xFFFFFFFF, 0, regular.WITH_TCP
PLACES[ACKNOWLEDGED] = 1, 8, 8, 0, 0xFFFFFFFF, 0, regular.WITH_TCP
PLACES[WINDOW] = 1, 14, 14, 16, 0xFFFF, 0, regular.WITH_TCP


@compiled
def by_kind(kinds: Bytes, kind: int, value: int, others: int, out: Ints) -> None:
    """One value for packets of a kind, another for all other regular ones."""
    for i in range(len(out)):
        regular = value if kinds[i] & kind else others
        out[i] = regular if kinds[i] else -1


@compiled
def header_field(buffer: Bytes, headers: Ints, kinds: Bytes, place: Ints, out: Ints) -> None:
    """A field of the IP or transport header, by its line of PLACES."""
    _, in_four, in_six, shift, bits, more, kind = place
    if in_four == in_six:
        for i in range(len(out)):
            value = (load32_network(buffer, headers[i] + in_four) >> shift) & bits
            out[i] = value if kinds[i] & kind else -1
        return
    for i in range(len(out)):
        four = load32_network(buffer, headers[i] + in_four) >> shift
        six = load32_network(buffer, headers[i] + in_six) >> shift
        value = four & bits if kinds[i] & regular.FOUR else (six & bits) + more
        out[i] = value if kinds[i] & kind else -1


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
            if kinds[i] & regular.WITH_TCP:
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
    if field == LAYERS:
        for i in range(len(out)):
            out[i] = layers[i]
        return
    held = numbers[RECORD_LINES[field - TIMESTAMP]]
    if field == TIME:
        for i in range(len(out)):
            out[i] = held[i] // records.SECOND
        return
    start = base if field == POSITION else 0
    for i in range(len(out)):
        out[i] = start + held[i]


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
    network, transport = numbers[records.NETWORK], numbers[records.TRANSPORT]
    stops, odd = numbers[records.STOP], numbers[records.ODD]
    kinds, layers = marks[records.KIND], batch[records.LAYERS]
    for row in range(len(fields)):
        field = fields[row]
        out = table[row, first:last]
        if field >= TIMESTAMP:
            record_field(numbers, layers[first:last], base, field, out)
            continue
        if field == HEADER:
            for i in range(len(out)):
                out[i] = transport[i] - network[i]
        elif field == TOS:
            for i in range(len(out)):
                start = load16(buffer, network[i])
                value = start & 0xFF if kinds[i] & regular.FOUR else (start >> 4) & 0xFF
                out[i] = value if kinds[i] else -1
        elif field == VERSION:
            by_kind(kinds, regular.FOUR, 4, 6, out)
        elif field == PROTOCOL:
            by_kind(kinds, regular.WITH_TCP, 6, 17, out)
        elif field >= DATA_AT:
            payload_field(buffer, transport, stops, kinds, field, out)
        else:
            headers = transport if PLACES[field, 0] else network
            header_field(buffer, headers, kinds, PLACES[field], out)
        for k in range(odd_count):
            out[odd[k]] = packets[k, field]
