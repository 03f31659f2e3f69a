"""Packets become bytes: pcap records of Ethernet frames with correct lengths and checksums.

In: PACKET records in order of time. Out: bytes of a nanosecond pcap file. Compiled.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from terascope.machine_code import compiled, inlined
from terascope.traffic import payloads as contents
from terascope.traffic.conversations import SYN
from terascope.traffic.flows import ICMP, ICMPV6, TCP, UDP
from terascope.traffic.payloads import Payloads
from terascope.traffic.population import put_ipv6
from terascope.traffic.randomness import Array, signed

ETHERNET: Final = 14
RECORD_HEADER: Final = 16
LARGEST_RECORD: Final = RECORD_HEADER + 2048
_SECOND: Final = 1_000_000_000


def file_header(snaplen: int) -> bytes:
    """Little-endian, nanoseconds, Ethernet."""
    return struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snaplen, 1)


@compiled
def put_records(
    packets: Array, begin: int, out: Array, snaplen: int, custom: Array, tables: Payloads
) -> tuple[int, int]:
    """Write records from packet `begin` on, until `out` is full.

    Returns the next packet and the end of the bytes.
    """
    text, spans, filler_sums = tables
    index, at = begin, 0
    while index < len(packets) and at + LARGEST_RECORD <= len(out):
        packet = packets[index]
        transport = 8  # bytes of the TCP, UDP or ICMP header
        if packet.protocol == TCP:
            transport = 32 if packet.flags & SYN else 20
        datagram = (40 if packet.version == 6 else 20) + transport + packet.payload
        wire = ETHERNET + datagram
        captured = min(wire, snaplen)
        _put_record_header(out, at, packet.time, captured, wire)
        frame = at + RECORD_HEADER
        at = frame + captured
        _put_frame(out, frame, at, packet, transport, datagram, custom, text, spans, filler_sums)
        index += 1
    return index, at


@inlined
def _little32(out: Array, at: int, value: int) -> None:
    for index in range(4):
        out[at + index] = (value >> (8 * index)) & 0xFF


@inlined
def _big16(out: Array, at: int, value: int) -> None:
    out[at] = (value >> 8) & 0xFF
    out[at + 1] = value & 0xFF


@inlined
def _big32(out: Array, at: int, value: int) -> None:
    _big16(out, at, value >> 16)
    _big16(out, at + 2, value)


@inlined
def _put_record_header(out: Array, at: int, time: int, captured: int, wire: int) -> None:
    _little32(out, at, time // _SECOND)
    _little32(out, at + 4, time % _SECOND)
    _little32(out, at + 8, captured)
    _little32(out, at + 12, wire)


@inlined
def _sum(out: Array, at: int, count: int) -> int:
    """The sum of big-endian 16-bit words, an odd last byte filled up with zero."""
    total = 0
    for word in range(count >> 1):
        place = np.uint64(at + 2 * word)
        total += (signed(out[place]) << 8) + signed(out[place + np.uint64(1)])
    if count & 1:
        total += signed(out[at + count - 1]) << 8
    return total


@inlined
def _fold(total: int) -> int:
    """The internet checksum of a sum of words."""
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@inlined
def _put_frame(
    out: Array,
    at: int,
    end: int,
    packet: Any,
    transport: int,
    datagram: int,
    custom: Array,
    text: Array,
    spans: Array,
    filler_sums: Array,
) -> None:
    """Write a frame at `at`; bytes from `end` on are not captured."""
    out[at], out[at + 1] = 0x02, 0x00
    _big32(out, at + 2, signed(packet.dst))
    out[at + 6], out[at + 7] = 0x02, 0x00
    _big32(out, at + 8, signed(packet.src))
    ip = at + ETHERNET
    if packet.version == 6:
        _big16(out, at + 12, 0x86DD)
        _put_ipv6_header(out, ip, packet, datagram, custom)
        addresses, above = ip + 8, ip + 40
    else:
        _big16(out, at + 12, 0x0800)
        _put_ipv4_header(out, ip, packet, datagram)
        addresses, above = ip + 12, ip + 20
    checksum_at = _put_transport_header(out, above, packet, transport, text, spans)
    data = above + transport
    head = _put_head(out, data, packet, text, spans)
    total = _put_filler(out, data, end, head, packet, text, filler_sums)
    # Addresses, header and head of the payload stand side by side: one sum covers them.
    begin = addresses
    if packet.protocol == ICMP:
        begin = above  # no pseudo-header
    else:
        total += signed(packet.protocol) + transport + signed(packet.payload)
    checksum = _fold(total + _sum(out, begin, data + head - begin))
    if checksum == 0 and packet.protocol == UDP:
        checksum = 0xFFFF  # zero would mean: none
    _big16(out, checksum_at, checksum)


@inlined
def _put_ipv4_header(out: Array, ip: int, packet: Any, datagram: int) -> None:
    out[ip], out[ip + 1] = 0x45, packet.tos
    _big16(out, ip + 2, datagram)
    _big16(out, ip + 4, signed(packet.ident))
    _big16(out, ip + 6, 0x4000)  # do not fragment
    out[ip + 8], out[ip + 9] = packet.ttl, packet.protocol
    _big32(out, ip + 12, signed(packet.src))
    _big32(out, ip + 16, signed(packet.dst))
    total = 0x4500 + signed(packet.tos) + datagram + signed(packet.ident) + 0x4000
    total += (signed(packet.ttl) << 8) + signed(packet.protocol)
    total += (signed(packet.src) >> 16) + (signed(packet.src) & 0xFFFF)
    total += (signed(packet.dst) >> 16) + (signed(packet.dst) & 0xFFFF)
    _big16(out, ip + 10, _fold(total))


@inlined
def _put_ipv6_header(out: Array, ip: int, packet: Any, datagram: int, custom: Array) -> None:
    _big32(out, ip, (6 << 28) | (signed(packet.tos) << 20))
    _big16(out, ip + 4, datagram - 40)
    out[ip + 6], out[ip + 7] = packet.protocol, packet.ttl
    put_ipv6(out, ip + 8, signed(packet.src), custom)
    put_ipv6(out, ip + 24, signed(packet.dst), custom)


@inlined
def _put_transport_header(
    out: Array, at: int, packet: Any, transport: int, text: Array, spans: Array
) -> int:
    """The header above IP with a checksum of zero; returns where the checksum stands."""
    first = at + 4 if packet.protocol == ICMP or packet.protocol == ICMPV6 else at
    _big16(out, first, signed(packet.sport))
    _big16(out, first + 2, signed(packet.dport))
    if packet.protocol == TCP:
        _big32(out, at + 4, signed(packet.seq))
        _big32(out, at + 8, signed(packet.ack))
        out[at + 12], out[at + 13] = transport << 2, packet.flags
        _big16(out, at + 14, signed(packet.window))
        _big32(out, at + 16, 0)
        if transport == 32:
            _copy_entry(out, at + 20, contents.OPTIONS, text, spans)
        return at + 16
    if packet.protocol == UDP:
        _big16(out, at + 4, 8 + signed(packet.payload))
        _big16(out, at + 6, 0)
        return at + 6
    out[at], out[at + 1] = packet.flags, 0
    _big16(out, at + 2, 0)
    return at + 2


@inlined
def _put_head(out: Array, at: int, packet: Any, text: Array, spans: Array) -> int:
    """Write what the payload begins with; returns its length."""
    content = packet.content
    size = signed(packet.payload)
    salt = signed(packet.salt)
    variant = salt & (contents.VARIANTS - 1)
    if content == contents.NOTHING or content == contents.FILLER:
        return 0
    if content == contents.TLS_RECORD:  # one record of application data in each packet
        out[at], out[at + 1], out[at + 2] = 0x17, 0x03, 0x03
        _big16(out, at + 3, size - 5)
        out[at + 5] = 0x61  # the filler goes on at an even place
        return 6
    if content == contents.HTTP_GET:
        return _copy_entry(out, at, contents.GET + variant, text, spans)
    if content == contents.HTTP_POST:
        head = _copy_entry(out, at, contents.POST + variant, text, spans)
        _put_digits(out, at + head - contents.DIGITS_FROM_END, salt >> 8)
        return head
    if content == contents.HTTP_RESPONSE:
        head = _copy_entry(out, at, contents.RESPONSE, text, spans)
        _put_digits(out, at + head - contents.DIGITS_FROM_END, salt)
        return head
    return _put_dns(out, at, content, salt, variant, text, spans)


@inlined
def _put_filler(
    out: Array, at: int, end: int, head: int, packet: Any, text: Array, filler_sums: Array
) -> int:
    """Fill up a payload that begins at `at`; returns the sum of the filler, captured or not.

    Filler is chosen by the sequence number: a packet sent again carries the same bytes.
    """
    count = signed(packet.payload) - head
    if count <= 0:
        return 0
    source = (signed(packet.seq) % (contents.FILLER_SIZE - 2048)) & ~1
    written = max(0, min(count, end - at - head))
    _copy(out, at + head, text, source, written)
    total = filler_sums[(source + count) >> 1] - filler_sums[source >> 1]
    if count & 1:
        total += signed(text[source + count - 1]) << 8
    return signed(total)


@inlined
def _copy(out: Array, at: int, source: Array, begin: int, count: int) -> int:
    """Copy bytes; unsigned places spare a test for negative ones and allow a block move."""
    for index in range(count):
        out[np.uint64(at + index)] = source[np.uint64(begin + index)]
    return count


@inlined
def _copy_entry(out: Array, at: int, entry: int, text: Array, spans: Array) -> int:
    return _copy(out, at, text, spans[entry, 0], spans[entry, 1])


@inlined
def _put_digits(out: Array, at: int, value: int) -> None:
    for index in range(8):
        out[at + 7 - index] = 48 + value % 10
        value //= 10


@inlined
def _put_dns(
    out: Array, at: int, content: int, salt: int, variant: int, text: Array, spans: Array
) -> int:
    """A question, alone or with its answer. Returns the bytes written."""
    is_query = content == contents.DNS_QUERY
    amplified = content == contents.DNS_AMPLIFIED
    answers = 0 if is_query else (4 + (salt & 1) if amplified else 1 + (variant & 3))
    _big16(out, at, salt >> 8)
    _big16(out, at + 2, 0x0100 if is_query else 0x8180)
    _big16(out, at + 4, 1)
    _big16(out, at + 6, answers)
    _big32(out, at + 8, 0)
    end = at + 12
    end += _copy_entry(out, end, contents.NAME + variant, text, spans)
    _big16(out, end, 255 if amplified else 1)
    _big16(out, end + 2, 1)
    end += 4
    for answer in range(answers):
        _big16(out, end, 0xC00C)  # the name of the question
        _big16(out, end + 2, 16 if amplified else 1)
        _big16(out, end + 4, 1)
        _big32(out, end + 6, 300)
        if amplified:
            _big16(out, end + 10, 256)
            out[end + 12] = 255
            for index in range(255):
                out[end + 13 + index] = 97 + (index + answer) % 26
            end += contents.TXT_RECORD
        else:
            _big16(out, end + 10, 4)
            _big32(out, end + 12, (198 << 24) + (18 << 16) + (variant << 8) + 10 + answer)
            end += contents.ADDRESS_RECORD
    return end - at
