"""Reading any IP packet and what it carries: the outermost IP header, and TCP, UDP or ICMP behind
it.

In: the places of the IP headers of packets that are not regular. Out: their layers, a reason when
one is malformed, and all their fields (-1 is NULL).
"""

from __future__ import annotations

from typing import Final

from terascope.connectors.packets import records as lines
from terascope.connectors.packets.fields import ETH, ICMP, IP, TCP, UDP
from terascope.connectors.packets.records import (
    BAD_IHL,
    BAD_TCP,
    BAD_TOTAL,
    BAD_UDP,
    BAD_VERSION,
    CUT_EXTENSION,
    CUT_ICMP,
    CUT_IPV4,
    CUT_IPV6,
    CUT_TCP,
    CUT_UDP,
    FINE,
    LONG_IPV4,
    LONG_IPV6,
)
from terascope.connectors.packets.regular import (
    HAS_IDENT,
    HAS_PORTS,
    IN_FRAGMENTS,
    IS_IPV4,
    IS_IPV6,
)
from terascope.connectors.packets.words import Bytes, Ints, load8, load16, load32
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
        return ETH, BAD_VERSION, at, at, False
    if end - at < 20:
        return ETH, CUT_IPV4, at, at, False
    header = (load8(buffer, at) & 15) * 4
    if header < 20:
        return ETH, BAD_IHL, at, at, False
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
        return IS_IPV4, CUT_IPV4, end, end, False
    if 0 < total < header:
        return IS_IPV4, BAD_TOTAL, at + header, at + header, False
    # Total length 0: the network card was to cut the datagram (offload); all of the frame is its.
    stop = at + total if total > 0 else end
    why = LONG_IPV4 if stop > wire_end else FINE
    return IS_IPV4, why, at + header, min(stop, end), fragment & 0x1FFF == 0


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
        return ETH, BAD_VERSION, at, at, False
    if end - at < 40:
        return ETH, CUT_IPV6, at, at, False
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
    why = LONG_IPV6 if stop > wire_end else FINE
    stop = min(stop, end)
    whole = True
    while whole:
        size = 0
        if following == 44:
            size = 8
        elif following == 51:
            size = 8 if stop - cursor < 2 else (load8(buffer, cursor + 1) + 2) * 4
        elif (
            following == 0
            or following == 43
            or following == 60
            or following == 135
            or following == 139
            or following == 140
        ):
            size = 8 if stop - cursor < 2 else (load8(buffer, cursor + 1) + 1) * 8
        if size == 0:
            break
        if stop - cursor < size:
            if why == FINE:
                why = CUT_EXTENSION
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
    return IS_IPV6, why, cursor, stop, whole


@compiled
def open_transport(buffer: Bytes, at: int, end: int, cut: bool, packet: Ints) -> tuple[int, int]:
    """(layer or 0, reason). `cut`: bytes of the payload are missing from the capture, or follow in
    other fragments.
    """
    protocol = packet[PROTOCOL]
    size = end - at
    if protocol == 6:
        if size < 20:
            return 0, CUT_TCP
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
            return TCP, BAD_TCP
        return TCP, FINE
    if protocol == 17:
        if size < 8:
            return 0, CUT_UDP
        length = load16(buffer, at + 4)
        packet[SOURCE_PORT] = load16(buffer, at)
        packet[DESTINATION_PORT] = load16(buffer, at + 2)
        packet[SEGMENT_AT] = at + 8
        # Length 0 is right in a jumbogram, and where the network card was to fill it in.
        packet[SEGMENT_BYTES] = size - 8 if length == 0 else max(min(length, size) - 8, 0)
        if 0 < length < 8 or (length > size and not cut):
            return UDP, BAD_UDP
        return UDP, FINE
    if protocol == 1 or protocol == 58:
        if size < 4:
            return 0, CUT_ICMP
        packet[ICMP_TYPE] = buffer[at]
        packet[ICMP_CODE] = buffer[at + 1]
        return ICMP, FINE
    if (protocol == 132 or protocol == 33 or protocol == 136) and size >= 4:
        packet[SOURCE_PORT] = load16(buffer, at)  # SCTP, DCCP and UDP-Lite have ports as well
        packet[DESTINATION_PORT] = load16(buffer, at + 2)
    return 0, FINE


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
    data, caplen, wirelen = numbers[lines.DATA], numbers[lines.CAPLEN], numbers[lines.WIRELEN]
    network, odd = numbers[lines.NETWORK], numbers[lines.ODD]
    version, reason = marks[lines.VERSION], marks[lines.REASON]
    layers, traits, flags = batch[lines.LAYERS], batch[lines.TRAITS], batch[lines.FLAGS]
    for k in range(count):
        i = odd[k]
        packet = packets[k]
        for field in range(len(packet)):
            packet[field] = -1
        at = network[i]
        end = data[i] + caplen[i]
        wire_end = data[i] + max(wirelen[i], caplen[i])
        found = ETH
        why = FINE
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
            cut = wirelen[i] > caplen[i] or packet[MORE_FRAGMENTS] == 1 or why != FINE
            layer, failure = open_transport(buffer, payload, stop, cut, packet)
            found |= layer
            if why == FINE:
                why = failure
        layers[first + i] = found
        traits[first + i] = (
            (HAS_PORTS if packet[SOURCE_PORT] >= 0 else 0)
            | (HAS_IDENT if packet[IDENT] >= 0 else 0)
            | (IN_FRAGMENTS if packet[MORE_FRAGMENTS] == 1 else 0)
        )
        flags[first + i] = packet[FLAGS] & 0xFF
        if reason[i] == FINE:
            reason[i] = why
