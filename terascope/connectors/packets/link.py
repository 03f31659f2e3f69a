"""Peeling the link layer: from the first byte of a frame to its IP header.

In: frames in a window. Out: per frame the version and place of its IP header (0 when it has none),
and the requested link fields.

Ethernet, Linux cooked v1 and v2, raw IP, BSD loopback, PPP and Cisco HDLC; in them any stack of
VLAN tags, MPLS labels, PPPoE, LLC/SNAP.
"""

from __future__ import annotations

from terascope.connectors.packets import records as lines
from terascope.connectors.packets.records import (
    BAD_VERSION,
    CUT_LINK,
    CUT_LLC,
    CUT_MPLS,
    CUT_PPPOE,
    CUT_VLAN,
    FINE,
    UNSUPPORTED_LINK,
)
from terascope.connectors.packets.words import Bytes, Ints, load8, load16, load32
from terascope.machine_code import compiled

NULL_LINK, ETHERNET, PPP, RAW_BSD, RAW_OPENBSD = 0, 1, 9, 12, 14
PPP_SERIAL, PPP_ETHERNET, RAW, CISCO_HDLC, LOOP = 50, 51, 101, 104, 108
COOKED, RAW_IPV4, RAW_IPV6, COOKED_2 = 113, 228, 229, 276

IPV4_TYPE, IPV6_TYPE, PPPOE_TYPE = 0x0800, 0x86DD, 0x8864
MPLS_TYPE, MPLS_MULTICAST_TYPE = 0x8847, 0x8848
FIRST_TYPE = 0x0600
"""Smaller values in an EtherType's place are a length, and an LLC header follows."""
NOT_TYPED = -1
BY_VERSION = -2  # an IP header whose first four bits tell the version
AS_PPP = -3  # a PPP protocol number follows


@compiled
def load48(buffer: Bytes, at: int) -> int:
    """A MAC address as a number."""
    return (load16(buffer, at) << 32) | load32(buffer, at + 2, True)


@compiled
def family_type(family: int) -> int:
    """The EtherType of a BSD address family; IPv6 has a number per system."""
    if family == 2:
        return IPV4_TYPE
    if family == 10 or family == 24 or family == 28 or family == 30:
        return IPV6_TYPE
    return NOT_TYPED


@compiled
def open_link(buffer: Bytes, at: int, end: int, link: int) -> tuple[int, int, int, int, int]:
    """The link type's own header: (where it ends, EtherType or kin, source MAC, destination MAC,
    reason).
    """
    size = end - at
    if link == ETHERNET:
        if size < 14:
            return at, NOT_TYPED, -1, -1, CUT_LINK
        return at + 14, load16(buffer, at + 12), load48(buffer, at + 6), load48(buffer, at), FINE
    if link == COOKED:
        if size < 16:
            return at, NOT_TYPED, -1, -1, CUT_LINK
        source = load48(buffer, at + 6) if load16(buffer, at + 4) == 6 else -1
        kind = load16(buffer, at + 14)
        if kind < FIRST_TYPE and kind != 4:
            kind = NOT_TYPED
        return at + 16, kind, source, -1, FINE
    if link == COOKED_2:
        if size < 20:
            return at, NOT_TYPED, -1, -1, CUT_LINK
        source = load48(buffer, at + 12) if buffer[at + 11] == 6 else -1
        kind = load16(buffer, at)
        if kind < FIRST_TYPE and kind != 4:
            kind = NOT_TYPED
        return at + 20, kind, source, -1, FINE
    if link == RAW or link == RAW_BSD or link == RAW_OPENBSD:
        return at, BY_VERSION, -1, -1, FINE
    if link == RAW_IPV4:
        return at, IPV4_TYPE, -1, -1, FINE
    if link == RAW_IPV6:
        return at, IPV6_TYPE, -1, -1, FINE
    if link == NULL_LINK or link == LOOP:
        if size < 4:
            return at, NOT_TYPED, -1, -1, CUT_LINK
        family = load32(buffer, at, True)
        if link == NULL_LINK and family > 0xFFFF:  # in the order of the machine that captured
            family = load32(buffer, at, False)
        return at + 4, family_type(family), -1, -1, FINE
    if link == PPP or link == PPP_SERIAL:
        if size < 2:
            return at, NOT_TYPED, -1, -1, CUT_LINK
        if buffer[at] == 0xFF and buffer[at + 1] == 0x03:
            at += 2
        elif link == PPP_SERIAL and (buffer[at] == 0x0F or buffer[at] == 0x8F):
            if size < 4:
                return at, NOT_TYPED, -1, -1, CUT_LINK
            return at + 4, load16(buffer, at + 2), -1, -1, FINE
        return at, AS_PPP, -1, -1, FINE
    if link == PPP_ETHERNET:
        return at, PPPOE_TYPE, -1, -1, FINE
    if link == CISCO_HDLC:
        if size < 4:
            return at, NOT_TYPED, -1, -1, CUT_LINK
        return at + 4, load16(buffer, at + 2), -1, -1, FINE
    return at, NOT_TYPED, -1, -1, UNSUPPORTED_LINK


@compiled
def open_ppp(buffer: Bytes, at: int, end: int) -> tuple[int, int]:
    """A PPP protocol number of one or two bytes: (where it ends, EtherType); (at, -4) when it is
    cut.
    """
    if at >= end:
        return at, -4
    if buffer[at] & 1:  # compressed: one odd byte
        number = load8(buffer, at)
        at += 1
    else:
        if at + 2 > end:
            return at, -4
        number = load16(buffer, at)
        at += 2
    if number == 0x0021:
        return at, IPV4_TYPE
    if number == 0x0057:
        return at, IPV6_TYPE
    if number == 0x0281 or number == 0x0283:
        return at, MPLS_TYPE
    return at, NOT_TYPED


@compiled
def peel(
    buffer: Bytes,
    numbers: Ints,
    marks: Bytes,
    count: int,
    first: int,
    table: Ints,
    rows: Ints,
) -> None:
    """Fill `version`, `network` and `reason` of `count` frames, and from place `first` on the rows
    of `table` that are not -1: for the EtherType, VLAN, source and destination.
    """
    data, caplen, link = numbers[lines.DATA], numbers[lines.CAPLEN], numbers[lines.LINK]
    network, version, reason = numbers[lines.NETWORK], marks[lines.VERSION], marks[lines.REASON]
    row_type, row_vlan, row_source, row_destination = rows[0], rows[1], rows[2], rows[3]
    plain = row_type < 0 and row_vlan < 0 and row_source < 0 and row_destination < 0
    for i in range(count):
        if plain and link[i] == ETHERNET and caplen[i] >= 14:  # nearly every frame
            kind = load16(buffer, data[i] + 12)
            if kind == IPV4_TYPE or kind == IPV6_TYPE:
                version[i] = 4 if kind == IPV4_TYPE else 6
                network[i] = data[i] + 14
                continue
        end = data[i] + caplen[i]
        vlan = -1
        if link[i] < 0:  # the scan could not tell the link type and has its reason
            at, kind, source, destination, why = data[i], NOT_TYPED, -1, -1, FINE
        else:
            at, kind, source, destination, why = open_link(buffer, data[i], end, link[i])
        shown = kind
        ip = 0
        while why == FINE:
            if kind == IPV4_TYPE:
                ip = 4
                break
            if kind == IPV6_TYPE:
                ip = 6
                break
            if kind == BY_VERSION:
                if at >= end:
                    why = CUT_LINK
                else:
                    ip = load8(buffer, at) >> 4
                    shown = IPV6_TYPE if ip == 6 else IPV4_TYPE
                    if ip != 4 and ip != 6:
                        shown = NOT_TYPED
                        why = BAD_VERSION
                break
            if kind == 0x8100 or kind == 0x88A8 or kind == 0x9100:
                if end - at < 4:
                    why = CUT_VLAN
                    break
                if vlan < 0:
                    vlan = load16(buffer, at) & 0x0FFF
                kind = load16(buffer, at + 2)
                shown = kind
                at += 4
            elif kind == MPLS_TYPE or kind == MPLS_MULTICAST_TYPE:
                bottom = False
                while not bottom and end - at >= 4:
                    bottom = buffer[at + 2] & 1 == 1
                    at += 4
                if not bottom or at >= end:
                    why = CUT_MPLS
                    break
                nibble = load8(buffer, at) >> 4
                if nibble == 4 or nibble == 6:  # else a pseudowire, which is a tunnel
                    ip = nibble
                break
            elif kind == PPPOE_TYPE:
                if end - at < 8:
                    why = CUT_PPPOE
                    break
                at, kind = open_ppp(buffer, at + 6, end)
                if kind == -4:
                    why = CUT_PPPOE
            elif kind == AS_PPP:
                at, kind = open_ppp(buffer, at, end)
                shown = kind
                if kind == -4:
                    why = CUT_LINK
            elif 0 <= kind < FIRST_TYPE:
                if end - at < 3:
                    why = CUT_LLC
                    break
                kind = NOT_TYPED
                if buffer[at] == 0xAA and buffer[at + 1] == 0xAA and buffer[at + 2] == 3:
                    if end - at < 8:
                        why = CUT_LLC
                        break
                    if load16(buffer, at + 3) == 0 and buffer[at + 5] == 0:
                        kind = load16(buffer, at + 6)
                        at += 8
                        if kind < FIRST_TYPE:
                            kind = NOT_TYPED
                elif buffer[at] == 0x06 and buffer[at + 1] == 0x06 and buffer[at + 2] == 3:
                    kind = BY_VERSION
                    at += 3
                shown = kind
            else:
                break
        version[i] = ip if why == FINE else 0
        network[i] = at
        if reason[i] == FINE:
            reason[i] = why
        if row_type >= 0:
            table[row_type, first + i] = shown if shown >= FIRST_TYPE else -1
        if row_vlan >= 0:
            table[row_vlan, first + i] = vlan
        if row_source >= 0:
            table[row_source, first + i] = source
        if row_destination >= 0:
            table[row_destination, first + i] = destination
