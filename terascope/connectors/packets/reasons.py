"""Why a packet counts as malformed: codes for the kernels, words for the report.

A packet has at most one reason, that of the first failure on the way up its headers.
"""

from __future__ import annotations

from typing import Final

REASONS: Final = (
    "",
    "unsupported link type",
    "truncated link header",
    "truncated VLAN tag",
    "truncated MPLS label",
    "truncated PPPoE header",
    "truncated LLC header",
    "bad IP version",
    "truncated IPv4 header",
    "bad IPv4 header length",
    "bad IPv4 total length",
    "IPv4 total length beyond the frame",
    "truncated IPv6 header",
    "IPv6 payload length beyond the frame",
    "truncated IPv6 extension header",
    "truncated TCP header",
    "bad TCP header length",
    "truncated UDP header",
    "bad UDP length",
    "truncated ICMP header",
    "packet of an undeclared interface",
)
(
    FINE,
    UNSUPPORTED_LINK,
    CUT_LINK,
    CUT_VLAN,
    CUT_MPLS,
    CUT_PPPOE,
    CUT_LLC,
    BAD_VERSION,
    CUT_IPV4,
    BAD_IHL,
    BAD_TOTAL,
    LONG_IPV4,
    CUT_IPV6,
    LONG_IPV6,
    CUT_EXTENSION,
    CUT_TCP,
    BAD_TCP,
    CUT_UDP,
    BAD_UDP,
    CUT_ICMP,
    NO_INTERFACE,
) = range(len(REASONS))
