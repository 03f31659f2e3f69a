"""The positions of packets: the arrays that the walk of each format fills, and its verdicts.

In: nothing. Out: `Records`, one row per packet, pointing into the window of bytes that is in
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from terascope.connectors.packets.memory import RECYCLER
from terascope.connectors.packets.words import Bytes, Ints

END: Final = 0  # the file ends on a record edge
MORE: Final = 1  # cannot go on without bytes beyond the window
STOPPED: Final = 2  # stands on the first record at or after the end of the split
FULL: Final = 3  # as many rows as were asked for
DAMAGED: Final = 4  # what stands here is no record header
TRUNCATED: Final = 5  # the file ends inside of a record
DESCRIBES: Final = 6  # a pcapng block that describes a section or an interface: for Python to read

RECORD_ROWS: Final = 1 << 13
"""Packets walked at once: as many as a window holds unless they are tiny, so that all arrays of the
decoder stay in a core's own cache."""


@dataclass(frozen=True)
class Records:
    """Columns of packets found; `data` is an index into the current window, `offset` one into the
    file.
    """

    offset: Ints
    data: Ints
    caplen: Ints
    wirelen: Ints
    timestamp: Ints
    link: Ints
    reason: Bytes

    @property
    def capacity(self) -> int:
        return len(self.offset)


def empty_records(capacity: int = RECORD_ROWS) -> Records:
    """Room for `capacity` packets."""
    offset, data, caplen, wirelen, timestamp, link = RECYCLER.array((6, capacity), np.int64)
    reason = RECYCLER.array((capacity,), np.uint8)
    return Records(offset, data, caplen, wirelen, timestamp, link, reason)
