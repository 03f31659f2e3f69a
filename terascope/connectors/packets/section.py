"""The description of packets in a pcapng section: byte order and interfaces.

In: section header and interface description blocks. Out: `Section`, which a split carries as JSON,
so that reading may start at any block.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, replace

from terascope.connectors.packets.pcapng import BYTE_ORDER, SECTION_BLOCK

NAME_OPTION, RESOLUTION_OPTION, SHIFT_OPTION = 2, 9, 14
MICROSECONDS = 6


@dataclass(frozen=True)
class CaptureInterface:
    """An interface description: how its packets start and how their time is counted."""

    link: int
    snap: int
    resolution: int = MICROSECONDS
    shift: int = 0


@dataclass(frozen=True)
class Section:
    """The facts at a block: the section's byte order and interfaces, and the time of the packet
    before.
    """

    big: bool = False
    interfaces: tuple[CaptureInterface, ...] = ()
    latest: int = 0

    def to_json(self) -> str:
        """The form a split carries."""
        rows = [[i.link, i.snap, i.resolution, i.shift] for i in self.interfaces]
        return json.dumps({"big": self.big, "interfaces": rows, "latest": self.latest})


def section_from_json(text: str) -> Section:
    """The section that a split carries."""
    held = json.loads(text)
    return Section(
        bool(held["big"]),
        tuple(CaptureInterface(*row) for row in held["interfaces"]),
        int(held["latest"]),
    )


def describe(section: Section, block: bytes) -> Section:
    """The section after a whole section header or interface block; its two lengths are known to
    agree.
    """
    if struct.unpack_from("<I", block)[0] == SECTION_BLOCK:
        big = struct.unpack_from(">I", block, 8)[0] == BYTE_ORDER
        return Section(big, (), section.latest)
    if len(block) < 20:
        return section
    order = ">" if section.big else "<"
    link, _, snap = struct.unpack_from(order + "HHI", block, 8)
    found = CaptureInterface(link, snap)
    at = 16
    while at + 4 <= len(block) - 4:
        option, length = struct.unpack_from(order + "HH", block, at)
        value = block[at + 4 : at + 4 + length]
        if option == 0 or len(value) < length:
            break
        if option == RESOLUTION_OPTION and length == 1:
            found = replace(found, resolution=value[0])
        elif option == SHIFT_OPTION and length == 8:
            found = replace(found, shift=struct.unpack(order + "q", value)[0])
        at += 4 + (length + 3) // 4 * 4
    return replace(section, interfaces=(*section.interfaces, found))
