"""Telling regular packets from odd ones: nearly all are whole TCP or UDP over plain IP.

In: the place of each packet's IP header. Out: for the regular ones their kind and where the
transport header and the payload's end lie, which is all that is needed to read their fields column
by column; the others, whatever they are, as a list for `network`.

Regular is decided by the conditions under which `network` finds nothing to complain about, no
fragment and no extension header; a test compares the two on the same packets.
"""

from __future__ import annotations

from typing import Final

from terascope.connectors.packets import records
from terascope.connectors.packets.fields import ETH, IP, IPV4, IPV6, PKT, TCP, UDP
from terascope.connectors.packets.words import Bytes, Ints, load8, load16
from terascope.machine_code import compiled

ODD: Final = 0
FOUR: Final = 1
SIX: Final = 2
WITH_TCP: Final = 4
WITH_UDP: Final = 8
"""The kind of a regular packet is one of FOUR and SIX with one of WITH_TCP and WITH_UDP."""

IS_IPV4: Final = ETH | PKT | IP | IPV4
IS_IPV6: Final = ETH | PKT | IP | IPV6

HAS_PORTS: Final = 1
HAS_IDENT: Final = 2
IN_FRAGMENTS: Final = 4
"""Traits of a packet that its layers do not tell; the last is the value of `more_fragments`."""


@compiled
def classify(
    buffer: Bytes, numbers: Ints, marks: Bytes, batch: Bytes, count: int, first: int
) -> int:
    """Fill `kinds`, `transport` and `stops` of `count` packets, and from row `first` on the
    `layers`, `traits` and TCP `flags` of the regular ones; how many are odd.
    """
    data, caplen, wirelen = numbers[records.DATA], numbers[records.CAPLEN], numbers[records.WIRELEN]
    network, transport = numbers[records.NETWORK], numbers[records.TRANSPORT]
    stops, odd = numbers[records.STOP], numbers[records.ODD]
    version, kinds = marks[records.VERSION], marks[records.KIND]
    layers, traits, flags = batch[records.LAYERS], batch[records.TRAITS], batch[records.FLAGS]
    found = 0
    for i in range(count):
        at = network[i]
        end = data[i] + caplen[i]
        wire_end = data[i] + max(wirelen[i], caplen[i])
        kind = ODD
        if version[i] == 4:
            start = load8(buffer, at)
            header = (start & 15) * 4
            payload = at + header
            stop = at + load16(buffer, at + 2)
            protocol = load8(buffer, at + 9)
            unbroken = load16(buffer, at + 6) & 0x3FFF == 0
            if start >> 4 == 4 and header >= 20 and unbroken:
                kind = FOUR
        else:
            payload = at + 40
            stop = payload + load16(buffer, at + 4)
            protocol = load8(buffer, at + 6)
            if version[i] == 6 and load8(buffer, at) >> 4 == 6:
                kind = SIX
        # So many bytes behind the IP header mean as well that the header itself was captured, and
        # that its length field is not shorter than it.
        size = min(stop, end) - payload
        if kind != ODD and stop <= wire_end and size >= 8:
            cut = wirelen[i] > caplen[i]
            if protocol == 6:
                header = (load8(buffer, payload + 12) >> 4) * 4
                fits = size >= 20 and header >= 20 and (header <= size or cut)
                kind = kind | WITH_TCP if fits else ODD
            elif protocol == 17:
                length = load16(buffer, payload + 4)
                fits = length == 0 or (length >= 8 and (length <= size or cut))
                kind = kind | WITH_UDP if fits else ODD
            else:
                kind = ODD
        else:
            kind = ODD
        kinds[i] = kind
        if kind == ODD:
            odd[found] = i
            found += 1
            transport[i] = at
            stops[i] = at
        else:
            transport[i] = payload
            stops[i] = payload + size
            layers[first + i] = (IS_IPV4 if kind & FOUR else IS_IPV6) | (
                TCP if kind & WITH_TCP else UDP
            )
            traits[first + i] = HAS_PORTS | HAS_IDENT if kind & FOUR else HAS_PORTS
            flags[first + i] = load8(buffer, payload + 13)
    return found
