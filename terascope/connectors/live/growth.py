"""The growth of a file of each kind: the entries that can be read now, and the position after them.

In: a file and its last position, as a `Followed`. Out: a `Found`.

The walk over the records of a capture starts where the last one stood, and takes the end of the
file for a place where more may come, never for the end of a record: so a record is offered when all
of it is there, and what a reader makes of it later, when the file is longer, is the same. A record
of CSV or JSON lines is complete when the line feed that ends it is there; a quoted line feed of CSV
ends none. Bytes after the last complete record stay pending until the file is final.

A gzip file is offered once its stream is complete, a Parquet file once its footer can be read, and
files of other kinds once they have stopped growing. For a paced replay, the row groups of a Parquet
file are cut by ranges of the clock: every range reads the whole row group, so there is a limit to
how many a group is cut into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors import file_bytes
from terascope.connectors.base import Bounds, FileFault, Range, ReadReport
from terascope.connectors.live.followed import Followed, timed_entries, with_clock_bounds
from terascope.connectors.live.journal import Found
from terascope.connectors.packets.connector import looked_at
from terascope.connectors.packets.memory import SlidingWindow
from terascope.connectors.packets.planning import CutRule, plan
from terascope.connectors.packets.scan import open_framing
from terascope.connectors.tables import parquet_plan
from terascope.connectors.tables import records as texts
from terascope.connectors.tables.csv import CsvOptions, layout_of, record_reader
from terascope.connectors.tables.kernels import Bytes
from terascope.connectors.tables.parquet_plan import Group, RowRange
from terascope.types import INT_MAX, INT_MIN

UNFINISHED_RECORD: Final = "its last record is not complete"
UNFINISHED_LINE: Final = "its last line is not complete"
INCOMPLETE_GZIP: Final = "its gzip stream is not complete"
INCOMPLETE_PARQUET: Final = "it is not a Parquet file, or not complete"
MOST_RANGES: Final = 32
"""The most ranges of one row group."""


def capture_growth(file: Followed) -> Found:
    state = file.state
    with file_bytes.opened_raw(file.path) as raw:
        if file_bytes.starts_as_gzip(raw):
            return packed_capture(file, raw)
        start, fault = looked_at(raw)
        if fault is not None:
            return not_a_capture(file, fault)
        framing, header = open_framing(start, state.carried)
        at = max(header, file.position)
        stream = file_bytes.PlainStream(raw, at)
        window = SlidingWindow(stream, at, file.size, open_ended=not file.final)
        cut = file.link.cut_rule
        found = plan(window, framing, at, file.size, cut, state.position, state.carried)
    torn = None if file.final or found.is_complete else UNFINISHED_RECORD
    if found.end <= file.position and not file.final:
        return file.nothing(torn)
    entries = [
        file.entry(part, empty=not part.bounds)
        for part in found.parts
        if part.end > part.start or state.position == 0
    ]
    return file.found(found.end, entries, found.carried, torn=torn)


def not_a_capture(file: Followed, fault: FileFault) -> Found:
    """A file that is no capture, or not yet: its header may not be complete."""
    if not file.final and fault is not FileFault.NOT_A_CAPTURE:
        return file.nothing("its header is not complete" if file.size else None)
    if file.position:
        return file.nothing()
    whole = file.whole(empty=True)
    return replace(whole, file=replace(whole.file, closed=not file.size))


def packed_capture(file: Followed, raw: BinaryIO) -> Found:
    """A gzip file: all of it, or nothing yet."""
    if not (file.settled or file.ended):
        return file.nothing(INCOMPLETE_GZIP)
    start, fault = looked_at(raw)
    raw.seek(0)
    stream = file_bytes.GzipStream(raw)
    bounds: Bounds = ()
    if fault is None:
        framing, at = open_framing(start)
        window = SlidingWindow(stream, 0, file_bytes.NO_END)
        uncut = CutRule(file_bytes.NO_END, file_bytes.NO_END, 0)
        bounds = plan(window, framing, at, file.size, uncut).parts[0].bounds
    else:
        while stream.read_into(memoryview(bytearray(1 << 16))):
            pass
    if stream.damaged and not file.ended:
        return file.nothing(INCOMPLETE_GZIP)
    return file.whole(bounds, empty=not bounds)


def text_growth(file: Followed) -> Found:
    if file_bytes.is_gzip(file.path):
        return packed_text(file)
    end = whole = file.size
    if not file.final:
        end, whole = complete_records(file)
    torn = UNFINISHED_LINE if whole < file.size else None
    if end <= file.position and not (file.final and file.position == 0):
        return file.nothing(torn)
    if not file.size:
        return file.whole(empty=True)
    return file.found(end, timed_entries(file, Range(file.position, end)), torn=torn)


def complete_records(file: Followed) -> tuple[int, int]:
    """The end of the last complete record that can be read, and of the last one of all: a header is
    read with its first row.
    """
    options = dict(file.link.interface.options)
    if file.connector.kind != "csv":
        reader = texts.RecordReader(lines_end, texts.Arrays.of(0), texts.row_limit(options))
        end = records_end(file, reader)
        return end, end
    dialect = CsvOptions.of(options, file.path)
    end = records_end(file, record_reader(dialect, ()))
    if file.position == 0 and end:
        layout = layout_of(file.path, dialect)
        if layout is None or end <= layout.data_start:
            return 0, end
    return end, end


def records_end(file: Followed, reader: texts.RecordReader) -> int:
    """The end of the last complete record beyond the last position of the file."""
    report = ReadReport()
    start = file.position or texts.byte_order_mark(file_bytes.head(file.path, 3))
    chunks = file_bytes.read_chunks(file.path, start, file.size, report)
    for _ in reader.read(chunks, start, report, final=False):
        pass
    return reader.position if reader.position > start else file.position


def lines_end(data: Bytes, begin: int, final: bool) -> tuple[int, int]:
    """A scan of lines that tells none apart: where the last one ends."""
    return 0, data.tobytes().rfind(b"\n") + 1


def packed_text(file: Followed) -> Found:
    """A gzip file: all of it, or nothing yet."""
    if not (file.settled or file.ended):
        return file.nothing(INCOMPLETE_GZIP)
    report = ReadReport()
    for _ in file_bytes.read_chunks(file.path, 0, file.size, report):
        pass
    if report.malformed[FileFault.DAMAGED_GZIP.value] and not file.ended:
        return file.nothing(INCOMPLETE_GZIP)
    return file.whole(with_clock_bounds(file, Range(0, file.size)).bounds)


def whole_growth(file: Followed) -> Found:
    """All of a file, once it has stopped growing: for kinds that have no growth of their own."""
    if not (file.settled or file.ended):
        return file.nothing("it may still grow")
    link, options = file.link, dict(file.link.interface.options)
    parts = list(file.connector.ranges(file.path, options, link.split_bytes, link.edge))
    size = file.size // max(len(parts), 1)
    entries = [file.entry(with_clock_bounds(file, part), size) for part in parts]
    return file.found(file.size, entries, closed=True)


def columnar_growth(file: Followed) -> Found:
    """All of a Parquet file, or nothing yet."""
    if not file.size:
        return file.whole(empty=True) if file.ended else file.nothing()
    try:
        with file_bytes.opened(file.path) as raw:
            groups = parquet_plan.read_groups(pq.ParquetFile(raw))
    except (pa.ArrowException, OSError):
        if not file.final:
            return file.nothing(INCOMPLETE_PARQUET)
        return file.unusable(FileFault.NOT_PARQUET, file.size)
    entries = []
    for part in parts_of(file, groups):
        empty, size = part.start == part.end, part_bytes(groups, part)
        part = part if empty else with_clock_bounds(file, part)
        entries.append(file.entry(part, size, empty=empty))
    return file.found(file.size, entries, closed=True)


def parts_of(file: Followed, groups: Sequence[Group]) -> Sequence[Range]:
    """Runs of row groups, or for a paced replay the ranges of each."""
    link, clock, piece_ns = file.link, file.link.clock, file.link.settings.piece_ns
    if piece_ns is None or clock is None:
        return parquet_plan.cut_groups(groups, link.split_bytes, link.edge)
    if not parquet_plan.in_order(groups, clock.column):
        return parquet_plan.cut_groups(groups, 1, None)
    return list(ranges_of(groups, clock.column, max(piece_ns // clock.tick_ns, 1)))


def ranges_of(groups: Sequence[Group], column: str, step: int) -> Iterator[Range]:
    """Every row group cut where `step` of the column ends, into few enough ranges."""
    for number, group in enumerate(groups):
        low, high = group.bounds[column]
        wide = step * -(-(high // step - low // step + 1) // MOST_RANGES)
        starts = [INT_MIN, *range((low // wide + 1) * wide, high + 1, wide), INT_MAX + 1]
        for first, following in pairwise(starts):
            rows = RowRange(column, first, following - 1)
            yield parquet_plan.part_of(groups, number, number + 1, rows)


def part_bytes(groups: Sequence[Group], part: Range) -> int:
    """About the bytes of a part: of a range of rows, its share of the time of its row groups."""
    whole = sum(group.size for group in groups[part.start : part.end])
    rows = parquet_plan.range_of(dict(part.options))
    if rows.is_all:
        return whole
    held = [group.bounds[rows.column] for group in groups[part.start : part.end]]
    low, high = min(one[0] for one in held), max(one[1] for one in held)
    first, last = max(rows.first, low), min(rows.last, high)
    return whole * (last + 1 - first) // (high + 1 - low)


GROWTHS: Final[Mapping[str, Callable[[Followed], Found]]] = {
    "pcap": capture_growth,
    "csv": text_growth,
    "json": text_growth,
    "parquet": columnar_growth,
}
"""Kinds of files that are read while they grow, or that need a look when they are complete."""


def growth_of(file: Followed) -> Found:
    return GROWTHS.get(file.connector.kind, whole_growth)(file)
