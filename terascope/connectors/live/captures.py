"""Growing captures: the records that are complete.

In: a pcap or pcapng file, plain or gzip, and how far it was. Out: its `Growth`. The walk over the
records starts where the last one stood, and takes the end of the file for a place where more may
come, never for the end of a record: so a record is offered when all of it is there, and what a
reader makes of it later, when the file is longer, is the same. A gzip file is offered once its
stream is complete.
"""

from __future__ import annotations

from terascope.connectors.base import Bounds, Options, Range, ReadReport
from terascope.connectors.file_bytes import (
    NO_END,
    GzipStream,
    PlainStream,
    opened_raw,
    starts_as_gzip,
)
from terascope.connectors.live.growth import INCOMPLETE_GZIP, FilePiece, Followed, Growth
from terascope.connectors.packets.connector import first_bytes, open_framing, starts_as_capture
from terascope.connectors.packets.memory import SlidingWindow
from terascope.connectors.packets.pcap import FILE_HEADER_BYTES
from terascope.connectors.packets.planning import CutRule, plan
from terascope.connectors.packets.records import empty_records
from terascope.connectors.packets.scan import (
    SECTION_OPTION,
    Framing,
    RecordScan,
    Section,
    section_from_json,
)

UNFINISHED_RECORD = "its last record is not complete"
STUCK = 2
"""Steps of a scan without movement that show that it needs more bytes."""


def capture_growth(file: Followed) -> Growth:
    """The growth of a capture."""
    cut = file.cuts.for_packets()
    with opened_raw(file.path) as raw:
        start = first_bytes(raw)
        packed = starts_as_gzip(raw)
    if packed:
        return packed_growth(file)
    state = file.state
    if len(start) < FILE_HEADER_BYTES or not starts_as_capture(start):
        if not file.final and starts_as_capture(start):
            return Growth((), 0, torn="its header is not complete" if start else None)
        if state.position:
            return Growth((), state.position)
        whole = FilePiece(0, file.size, file.options, (), file.size, empty=True)
        return Growth((whole,), file.size, closed=not file.size)
    if file.final:
        parts = plan_from(file, start, cut, file.size, NO_END)
        return Growth(as_pieces(file, parts), file.size, carried_at_end(file, start))
    end, carried, all_read = complete_records(file, start)
    torn = None if all_read else UNFINISHED_RECORD
    if end <= state.position:
        return Growth((), state.position, state.carried, torn=torn)
    parts = plan_from(file, start, cut, end, end)
    return Growth(as_pieces(file, parts), end, carried, torn=torn)


def framing_at(file: Followed, start: bytes) -> tuple[Framing, int]:
    """The framing of the records from the last position of the file, and that position."""
    carried = dict(file.state.carried).get(SECTION_OPTION)
    section = section_from_json(carried) if carried else Section()
    framing, header = open_framing(start, section)
    return framing, max(header, file.state.position)


def complete_records(file: Followed, start: bytes) -> tuple[int, Options, bool]:
    """The end of the last complete record, the options of a reader that starts there, and whether
    no incomplete record follows it.
    """
    framing, at = framing_at(file, start)
    end, carried = file.state.position, file.state.carried
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


def plan_from(file: Followed, start: bytes, cut: CutRule, size: int, stop: int) -> list[Range]:
    """The parts from where the file was to `size`."""
    framing, at = framing_at(file, start)
    state = file.state
    with opened_raw(file.path) as raw:
        window = SlidingWindow(PlainStream(raw, at), at, size)
        return list(plan(window, framing, at, size, cut, state.position, state.carried, stop))


def carried_at_end(file: Followed, start: bytes) -> Options:
    """The options at the end of a file, should it grow after all."""
    return complete_records(file, start)[1]


def packed_growth(file: Followed) -> Growth:
    """A gzip file: all of it, or nothing yet."""
    if not (file.settled or file.ended):
        return Growth((), 0, torn=INCOMPLETE_GZIP)
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
        return Growth((), 0, torn=INCOMPLETE_GZIP)
    whole = FilePiece(0, file.size, file.options, bounds, file.size, empty=not bounds)
    return Growth((whole,), file.size, closed=True)


def as_pieces(file: Followed, parts: list[Range]) -> tuple[FilePiece, ...]:
    """Parts as pieces; an end at which nothing more stands is none."""
    return tuple(
        FilePiece(
            part.start, part.end, file.options + part.options, part.bounds,
            part.end - part.start, empty=not part.bounds,
        )
        for part in parts
        if part.end > part.start or file.state.position == 0
    )  # fmt: skip
