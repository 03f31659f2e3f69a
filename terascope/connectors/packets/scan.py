"""Scanning: a capture file as a run of packets, whatever its format and however damaged.

In: a window and where to start and stop. Out: rows of `Records`, and in the report what was not a
packet.

The same scan plans and reads. Planning walks the record headers of the whole file and cuts only
where the walk stands on a record, so no payload, not even a capture file carried inside of packets,
is ever taken for records of the file, and the splits together are exactly the unsplit walk.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Protocol

import numpy as np

from terascope.connectors.base import ReadReport
from terascope.connectors.malformed import RecordFault
from terascope.connectors.packets.pcap import PcapHeader, find_chain, walk_pcap
from terascope.connectors.packets.pcapng import find_blocks, walk_pcapng
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
from terascope.connectors.packets.section import Section, describe
from terascope.connectors.packets.window import SlidingWindow
from terascope.connectors.packets.words import Ints

SECTION_OPTION: Final = "pcapng-section"
"""The split's option that holds the section a pcapng range starts in."""


class Framing(Protocol):
    """The way in which records of one format follow one another."""

    def walk(
        self, window: SlidingWindow, at: int, stop: int, records: Records, most: int
    ) -> tuple[int, int, int]:
        """Up to `most` records from index `at` of the window: (verdict, index, how many)."""
        ...

    def find(self, window: SlidingWindow, at: int) -> tuple[int, int]:
        """Look for records from index `at` on: a verdict below zero, MORE or DAMAGED, and how far
        it looked.
        """
        ...

    def take_lies(self) -> tuple[int, int]:
        """Packets stepped over since the last call: because their blocks lie about them, and
        because their times are out of range.
        """
        ...

    @property
    def latest(self) -> int:
        """The time of the last packet walked, where one without a time of its own takes it."""
        ...

    def carried(self, latest: int) -> tuple[tuple[str, str], ...]:
        """The options for the reader of a split that starts on a record of the last walk, after a
        packet of time `latest`.
        """
        ...


class PcapFraming:
    """Records of a pcap file."""

    def __init__(self, header: PcapHeader) -> None:
        self._header = header
        self._untimed = 0

    def walk(
        self, window: SlidingWindow, at: int, stop: int, records: Records, most: int
    ) -> tuple[int, int, int]:
        h, r = self._header, records
        verdict, at, filled, untimed = walk_pcap(
            window.view, at, window.base, window.final, stop,
            h.big, h.record_bytes, h.parts, h.snap, h.longest, h.link,
            r.offset, r.data, r.caplen, r.wirelen, r.timestamp, r.link, r.reason, most,
        )  # fmt: skip
        self._untimed += untimed
        return verdict, at, filled

    def find(self, window: SlidingWindow, at: int) -> tuple[int, int]:
        h = self._header
        end = len(window.view)
        verdict, found = find_chain(
            window.view, at, end, window.final, h.big, h.record_bytes, h.parts, h.snap
        )
        return (MORE, found) if verdict == DAMAGED and not window.final else (verdict, found)

    def take_lies(self) -> tuple[int, int]:
        untimed, self._untimed = self._untimed, 0
        return 0, untimed

    latest = 0  # every record has its own time

    def carried(self, latest: int) -> tuple[tuple[str, str], ...]:
        return ()


class PcapngFraming:
    """Blocks of a pcapng file; keeps the section the walk is in."""

    def __init__(self, section: Section) -> None:
        self._lies = 0
        self._untimed = 0
        self._enter(section)

    def _enter(self, section: Section) -> None:
        rows = [(i.link, i.snap, i.resolution, i.shift) for i in section.interfaces]
        table = np.array(rows, np.int64).reshape(-1, 4)
        self.section = section
        self._tables: list[Ints] = [np.ascontiguousarray(table[:, k]) for k in range(4)]

    def walk(
        self, window: SlidingWindow, at: int, stop: int, records: Records, most: int
    ) -> tuple[int, int, int]:
        r, filled = records, 0
        while True:
            links, snaps, resolutions, shifts = self._tables
            verdict, at, filled, latest, lies, untimed = walk_pcapng(
                window.view, at, window.base, window.final, stop,
                self.section.big, links, snaps, resolutions, shifts, self.section.latest,
                r.offset, r.data, r.caplen, r.wirelen, r.timestamp, r.link, r.reason, filled, most,
            )  # fmt: skip
            self._lies += lies
            self._untimed += untimed
            self.section = replace(self.section, latest=latest)
            if verdict != DESCRIBES:
                return verdict, at, filled
            if filled:  # so that the section is the same for all records of one walk
                return FULL, at, filled
            at += self._describe(window, at)

    def _describe(self, window: SlidingWindow, at: int) -> int:
        head = window.view[at : at + 12].tobytes()
        big = self.section.big
        if head[:4] == b"\x0a\x0d\x0d\x0a":
            big = head[8:12] == b"\x1a\x2b\x3c\x4d"
        total = int.from_bytes(head[4:8], "big" if big else "little")
        self._enter(describe(self.section, window.view[at : at + total].tobytes()))
        return total

    def find(self, window: SlidingWindow, at: int) -> tuple[int, int]:
        return find_blocks(window.view, at, window.final, self.section.big)

    def take_lies(self) -> tuple[int, int]:
        lies, untimed = self._lies, self._untimed
        self._lies = self._untimed = 0
        return lies, untimed

    @property
    def latest(self) -> int:
        return self.section.latest

    def carried(self, latest: int) -> tuple[tuple[str, str], ...]:
        return ((SECTION_OPTION, replace(self.section, latest=latest).to_json()),)


class RecordScan:
    """One pass over records that start in [start, stop)."""

    def __init__(
        self, window: SlidingWindow, framing: Framing, start: int, stop: int, report: ReadReport
    ) -> None:
        self._window = window
        self._framing = framing
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
        lies, untimed = self._framing.take_lies()
        if lies:
            self._report.malformed[RecordFault.BAD_PACKET_BLOCK.value] += lies
        if untimed:
            self._report.malformed[RecordFault.BAD_TIME.value] += untimed
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
        if verdict == MORE:
            self._hungry = True
            return
        if verdict == DAMAGED:
            self.position = window.base + len(window.view)
            self.done = True
        self._report.malformed[RecordFault.DAMAGED_RECORD.value] += 1
        self._report.skipped[RecordFault.DAMAGED_RECORD.value] += self.position - damaged_from
        self._damaged_from = None
