"""Scanning: a capture file as a run of packets, whatever its format and however damaged.

In: a window and where to start and stop. Out: rows of `Records`, and in the report what was not a
packet. The description of packets in a pcapng section, byte order and interfaces, is a `Section`,
which a split carries as JSON, so that reading may start at any block.

The same scan plans and reads. Planning walks the record headers of the whole file and cuts only
where the walk stands on a record, so no payload, not even a capture file carried inside of packets,
is ever taken for records of the file, and the splits together are exactly the unsplit walk.
"""

from __future__ import annotations

import json
import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from terascope.connectors.base import Options, ReadReport, RecordFault
from terascope.connectors.packets import pcap
from terascope.connectors.packets.memory import SlidingWindow
from terascope.connectors.packets.pcapng import BYTE_ORDER, SECTION_BLOCK, find_blocks, walk_pcapng
from terascope.connectors.packets.records import (
    DAMAGED,
    DESCRIBES,
    END,
    FULL,
    MORE,
    STOPPED,
    TRUNCATED,
    Records,
)
from terascope.connectors.packets.words import Ints

PCAPNG_MAGIC: Final = SECTION_BLOCK.to_bytes(4, "big")
SECTION_OPTION: Final = "pcapng-section"
"""The split's option that holds the section a pcapng range starts in."""
RESOLUTION_OPTION, SHIFT_OPTION = 9, 14
MICROSECONDS = 6


class CaptureInterface(NamedTuple):
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


def section_of(options: Mapping[str, str]) -> Section:
    """The section in which a range of a file starts, by the options of its split."""
    if SECTION_OPTION not in options:
        return Section()
    held = json.loads(options[SECTION_OPTION])
    interfaces = tuple(CaptureInterface(*row) for row in held["interfaces"])
    return Section(held["big"], interfaces, held["latest"])


def describe(section: Section, buffer: memoryview, at: int) -> tuple[Section, int]:
    """The section after the section header or interface block at `at`, and the length of the block;
    its two lengths are known to agree.
    """
    is_header = struct.unpack_from("<I", buffer, at)[0] == SECTION_BLOCK
    if is_header:
        big = struct.unpack_from(">I", buffer, at + 8)[0] == BYTE_ORDER
        section = Section(big, (), section.latest)
    order = ">" if section.big else "<"
    (total,) = struct.unpack_from(order + "I", buffer, at + 4)
    if is_header or total < 20:
        return section, total
    link, _, snap = struct.unpack_from(order + "HHI", buffer, at + 8)
    found = CaptureInterface(link, snap)
    end = at + total - 4
    at += 16
    while at + 4 <= end:
        option, length = struct.unpack_from(order + "HH", buffer, at)
        value = bytes(buffer[at + 4 : min(at + 4 + length, end + 4)])
        if option == 0 or len(value) < length:
            break
        if option == RESOLUTION_OPTION and length == 1:
            found = found._replace(resolution=value[0])
        elif option == SHIFT_OPTION and length == 8:
            found = found._replace(shift=struct.unpack(order + "q", value)[0])
        at += 4 + (length + 3) // 4 * 4
    return replace(section, interfaces=(*section.interfaces, found)), total


class Framing(ABC):
    """The way in which records of one format follow one another."""

    report: ReadReport
    """The report of the scan, where packets are counted that a walk steps over."""

    def step_over(self, fault: RecordFault, packets: int) -> None:
        if packets:
            self.report.malformed[fault.value] += packets

    @abstractmethod
    def walk(
        self, window: SlidingWindow, at: int, stop: int, records: Records, most: int
    ) -> tuple[int, int, int]:
        """Up to `most` records from index `at` of the window: (verdict, index, how many). The
        packets that it steps over are counted.
        """

    @abstractmethod
    def find(self, window: SlidingWindow, at: int) -> tuple[int, int]:
        """Look for records from index `at` on: a verdict below zero, MORE, or DAMAGED when the
        window has none, and how far it looked.
        """

    @property
    def latest(self) -> int:
        """The time of the last packet walked, where one without a time of its own takes it."""
        return 0

    def carried(self, latest: int) -> Options:
        """The options for the reader of a split that starts on a record of the last walk, after a
        packet of time `latest`.
        """
        return ()


class PcapFraming(Framing):
    def __init__(self, header: pcap.PcapHeader) -> None:
        self._header = header

    def walk(
        self, window: SlidingWindow, at: int, stop: int, records: Records, most: int
    ) -> tuple[int, int, int]:
        verdict, at, filled, untimed = pcap.walk_pcap(
            window.view, at, window.base, window.final, stop, self._header,
            records.numbers, records.marks, most,
        )  # fmt: skip
        self.step_over(RecordFault.BAD_TIME, untimed)
        return verdict, at, filled

    def find(self, window: SlidingWindow, at: int) -> tuple[int, int]:
        return pcap.find_chain(window.view, at, len(window.view), window.final, self._header)


class PcapngFraming(Framing):
    """Blocks of a pcapng file; keeps the section the walk is in."""

    def __init__(self, section: Section) -> None:
        self._enter(section)

    def _enter(self, section: Section) -> None:
        self.section = section
        self._interfaces: Ints = np.array(section.interfaces, np.int64).reshape(-1, 4)

    def walk(
        self, window: SlidingWindow, at: int, stop: int, records: Records, most: int
    ) -> tuple[int, int, int]:
        filled = 0
        while True:
            verdict, at, filled, latest, lies, untimed = walk_pcapng(
                window.view, at, window.base, window.final, stop, self.section.big,
                self._interfaces, self.section.latest, records.numbers, records.marks, filled, most,
            )  # fmt: skip
            self.step_over(RecordFault.BAD_PACKET_BLOCK, lies)
            self.step_over(RecordFault.BAD_TIME, untimed)
            self.section = replace(self.section, latest=latest)
            if verdict != DESCRIBES:
                return verdict, at, filled
            if filled:  # so that the section is the same for all records of one walk
                return FULL, at, filled
            section, total = describe(self.section, window.view.data, at)
            self._enter(section)
            at += total

    def find(self, window: SlidingWindow, at: int) -> tuple[int, int]:
        return find_blocks(window.view, at, window.final, self.section.big)

    @property
    def latest(self) -> int:
        return self.section.latest

    def carried(self, latest: int) -> Options:
        return ((SECTION_OPTION, json.dumps(vars(replace(self.section, latest=latest)))),)


def open_framing(start: bytes, options: Options = ()) -> tuple[Framing, int]:
    """The framing of the records of a capture that begins with `start`, and the position of the
    first. `options` are those of the reader of a range, where that is not the first one.
    """
    if start.startswith(PCAPNG_MAGIC):
        return PcapngFraming(section_of(dict(options))), 0
    header = pcap.parse_header(start)
    assert header is not None, "a file without a header is not opened"
    return PcapFraming(header), pcap.FILE_HEADER_BYTES


class RecordScan:
    """One pass over records that start in [start, stop)."""

    def __init__(
        self, window: SlidingWindow, framing: Framing, start: int, stop: int, report: ReadReport
    ) -> None:
        self._window = window
        self._framing = framing
        framing.report = report
        self._stop = stop
        self._report = report
        self._damaged_from: int | None = None
        self._hungry = False
        self.position = start
        self.done = False

    @property
    def is_lost(self) -> bool:
        """Whether it stands in damage, and looks for the next record."""
        return self._damaged_from is not None

    def fill(self, records: Records, most: int) -> int:
        """The records at hand, up to `most`: until the window must slide, or the scan is done.

        They point into the window as it is until the next call.
        """
        window = self._window
        if self._hungry:
            window.slide(self.position)
            self._hungry = False
        if self._damaged_from is not None:
            self._recover(self._damaged_from)
            return 0
        verdict, at, found = self._framing.walk(
            window, self.position - window.base, self._stop, records, most
        )
        self.position = window.base + at
        if verdict == MORE:
            self._hungry = True
        elif verdict in (STOPPED, END):
            self.done = True
        elif verdict == DAMAGED:
            self._damaged_from = self.position
            self.position += 1
        elif verdict == TRUNCATED:
            self._report.malformed[RecordFault.CUT_RECORD.value] += 1
            self.position = window.base + len(window.view)
            self.done = True
        else:
            assert verdict == FULL, verdict
        return found

    def _recover(self, damaged_from: int) -> None:
        window = self._window
        verdict, found = self._framing.find(window, self.position - window.base)
        self.position = window.base + found
        if verdict == MORE or (verdict == DAMAGED and not window.final):
            self._hungry = True
            return
        if verdict == DAMAGED:
            self.position = window.base + len(window.view)
            self.done = True
        self._report.malformed[RecordFault.DAMAGED_RECORD.value] += 1
        self._report.skipped[RecordFault.DAMAGED_RECORD.value] += self.position - damaged_from
        self._damaged_from = None
