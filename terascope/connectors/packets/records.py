"""The positions of packets and their parts: arrays that kernels fill; codes of verdicts, reasons.

In: nothing. Out: `Records`, a column for each packet, pointing into the window of bytes that is in
memory. A packet has at most one reason why it counts as malformed, that of the first failure on the
way up its headers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from terascope.connectors.base import ReadReport
from terascope.connectors.packets.memory import RECYCLER
from terascope.connectors.packets.words import Bytes, Ints

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
    FINE, UNSUPPORTED_LINK, CUT_LINK, CUT_VLAN, CUT_MPLS, CUT_PPPOE, CUT_LLC,
    BAD_VERSION, CUT_IPV4, BAD_IHL, BAD_TOTAL, LONG_IPV4, CUT_IPV6, LONG_IPV6, CUT_EXTENSION,
    CUT_TCP, BAD_TCP, CUT_UDP, BAD_UDP, CUT_ICMP, NO_INTERFACE,
) = range(len(REASONS))  # fmt: skip

END: Final = 0  # the file ends on a record edge
MORE: Final = 1  # cannot go on without bytes beyond the window
STOPPED: Final = 2  # stands on the first record at or after the end of the split
FULL: Final = 3  # as many rows as were asked for
DAMAGED: Final = 4  # what stands here is no record header
TRUNCATED: Final = 5  # the file ends inside of a record
DESCRIBES: Final = 6  # a pcapng block that describes a section or an interface: for Python to read

SECOND: Final = 1_000_000_000
"""Nanoseconds."""
RECORD_ROWS: Final = 1 << 13
"""Packets walked at once: as many as a window holds unless they are tiny, so that all arrays of the
decoder stay in a core's own cache."""


OFFSET, DATA, CAPLEN, WIRELEN, TIMESTAMP, LINK, NETWORK, TRANSPORT, STOP, ODD = range(10)
"""The lines of `Records.numbers`: the positions of a record in the file and of its packet in the
window, lengths, time and link type, which a walk fills; the positions of the IP header, the
transport header and the end of the IP payload; and the numbers of the packets that are not regular.
"""
REASON, VERSION, KIND = range(3)
"""The lines of `Records.marks`: the reason why a packet is malformed, the version of its IP header
(0 without one), and the kind of a regular packet (`regular`).
"""
LAYERS, TRAITS, FLAGS = range(3)
"""The lines of `Records.batch`: the bits that decide which columns are NULL, and TCP flags."""


@dataclass(frozen=True)
class Records:
    """Packets of the current window, a column for each. Kernels take the arrays as they are."""

    numbers: Ints
    marks: Bytes
    batch: Bytes
    """The layers, traits and flags of the packets of a whole batch."""
    odd_fields: Ints
    """All fields of the packets of the window that are not regular."""

    def count_malformed(self, count: int, path: str, report: ReadReport) -> None:
        """Count the reasons of the first `count` packets, which are of the file at `path`."""
        reasons = self.marks[REASON, :count]
        if not np.count_nonzero(reasons):
            return
        for code, packets in enumerate(np.bincount(reasons).tolist()):
            if code == FINE or not packets:
                continue
            report.malformed[REASONS[code]] += packets
            if code == UNSUPPORTED_LINK:
                link = int(self.numbers[LINK, np.argmax(reasons == code)])
                report.name_file(path, f"{REASONS[code]} {link}")


def empty_records(batch: int = 0, fields: int = 0) -> Records:
    """Room for the packets of a window, and for the marks of the packets of a batch."""
    return Records(
        RECYCLER.array((10, RECORD_ROWS), np.int64),
        RECYCLER.array((3, RECORD_ROWS), np.uint8),
        RECYCLER.array((3, batch), np.uint8),
        RECYCLER.array((RECORD_ROWS, fields), np.int64),
    )
