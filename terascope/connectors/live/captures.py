"""Growing captures: the records that are complete.

In: a pcap or pcapng file, plain or gzip, and how far it was. Out: what was `Found`. The walk over
the records starts where the last one stood, and takes the end of the file for a place where more
may come, never for the end of a record: so a record is offered when all of it is there, and what a
reader makes of it later, when the file is longer, is the same. A gzip file is offered once its
stream is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from terascope.connectors.base import Bounds, Options, ReadReport
from terascope.connectors.file_bytes import (
    NO_END,
    GzipStream,
    PlainStream,
    opened_raw,
    starts_as_gzip,
)
from terascope.connectors.live.growth import INCOMPLETE_GZIP, Followed
from terascope.connectors.live.journal import Entry, Found
from terascope.connectors.live.settings import PACKET_CLOCK
from terascope.connectors.packets.connector import first_bytes, open_framing, starts_as_capture
from terascope.connectors.packets.memory import SlidingWindow
from terascope.connectors.packets.pcap import FILE_HEADER_BYTES
from terascope.connectors.packets.planning import CutRule, plan
from terascope.connectors.packets.records import empty_records
from terascope.connectors.packets.scan import Framing, RecordScan, Section, section_of

UNFINISHED_RECORD = "its last record is not complete"
STUCK = 2
"""Steps of a scan without movement that show that it needs more bytes."""


def capture_growth(file: Followed) -> Found:
    with opened_raw(file.path) as raw:
        start = first_bytes(raw)
        packed = starts_as_gzip(raw)
    if packed:
        return packed_growth(file)
    if len(start) < FILE_HEADER_BYTES or not starts_as_capture(start):
        if not file.final and starts_as_capture(start):
            return file.nothing("its header is not complete" if start else None)
        if file.position:
            return file.nothing()
        found = file.whole(empty=True)
        return replace(found, file=replace(found.file, closed=not file.size))
    end, carried, all_read = complete_records(file, start)
    if file.final:
        # The options after the last record, should the file grow after all.
        return file.found(file.size, entries_until(file, start, file.size, NO_END), carried)
    torn = None if all_read else UNFINISHED_RECORD
    if end <= file.position:
        return file.nothing(torn)
    return file.found(end, entries_until(file, start, end, end), carried, torn=torn)


def framing_at(file: Followed, start: bytes) -> tuple[Framing, int]:
    """The framing of the records from the last position of the file, and that position."""
    framing, header = open_framing(start, section_of(dict(file.state.carried)))
    return framing, max(header, file.position)


def complete_records(file: Followed, start: bytes) -> tuple[int, Options, bool]:
    """The end of the last complete record, the options of a reader that starts there, and whether
    no incomplete record follows it.
    """
    framing, at = framing_at(file, start)
    end, carried = file.position, file.state.carried
    with opened_raw(file.path) as raw:
        window = SlidingWindow(PlainStream(raw, at), at, file.size, open_ended=True)
        scan = RecordScan(window, framing, at, NO_END, ReadReport())
        records = empty_records()
        stuck = 0
        while stuck < STUCK:
            before = scan.position
            if scan.fill(records, records.capacity):
                end, carried = scan.position, framing.carried(framing.latest)
            stuck = stuck + 1 if scan.position == before and window.is_dry else 0
        all_read = scan.position >= file.size and not scan.is_lost
    return end, carried, all_read


def entries_until(file: Followed, start: bytes, size: int, stop: int) -> Iterator[Entry]:
    """The parts from where the file was to `size`; an end at which nothing more stands is none."""
    framing, at = framing_at(file, start)
    cut, state = file.cuts.by_clock(PACKET_CLOCK), file.state
    with opened_raw(file.path) as raw:
        window = SlidingWindow(PlainStream(raw, at), at, size)
        for part in plan(window, framing, at, size, cut, state.position, state.carried, stop):
            if part.end > part.start or state.position == 0:
                yield file.entry(part, empty=not part.bounds)


def packed_growth(file: Followed) -> Found:
    """A gzip file: all of it, or nothing yet."""
    if not (file.settled or file.ended):
        return file.nothing(INCOMPLETE_GZIP)
    with opened_raw(file.path) as raw:
        start = first_bytes(raw)
        raw.seek(0)
        stream = GzipStream(raw)
        bounds: Bounds = ()
        if len(start) == FILE_HEADER_BYTES and starts_as_capture(start):
            framing, at = open_framing(start, Section())
            window = SlidingWindow(stream, 0, NO_END)
            uncut = CutRule(NO_END, NO_END, 0)
            bounds = next(iter(plan(window, framing, at, file.size, uncut))).bounds
        else:
            while stream.read_into(memoryview(bytearray(1 << 16))):
                pass
    if stream.damaged and not file.ended:
        return file.nothing(INCOMPLETE_GZIP)
    return file.whole(bounds, empty=not bounds)
