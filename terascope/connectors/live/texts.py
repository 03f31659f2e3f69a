"""Growing CSV and JSON lines: the records that are complete.

In: a file and how far it was. Out: what was `Found`. A record is complete when the line feed that
ends it is there; a quoted line feed of CSV ends none. Bytes after the last complete record stay
pending until the file is final.
"""

from __future__ import annotations

from terascope.connectors.base import FileFault, Range, ReadReport
from terascope.connectors.file_bytes import head, is_gzip, read_chunks
from terascope.connectors.live.growth import (
    INCOMPLETE_GZIP,
    Followed,
    timed_entries,
    with_clock_bounds,
)
from terascope.connectors.live.journal import Found
from terascope.connectors.tables.csv import layout_of, scanner
from terascope.connectors.tables.kernels import Bytes
from terascope.connectors.tables.records import (
    Arrays,
    CsvOptions,
    RecordReader,
    Scan,
    byte_order_mark,
    row_limit,
)

UNFINISHED_LINE = "its last line is not complete"


def text_growth(file: Followed) -> Found:
    if is_gzip(file.path):
        return packed_growth(file)
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
    options = dict(file.interface.options)
    if file.connector.kind != "csv":
        end = records_end(file, lines_end, row_limit(options))
        return end, end
    dialect = CsvOptions.of(options, file.path)
    end = records_end(file, scanner(dialect, Arrays.of(0), ()), dialect.max_row_bytes)
    if file.position == 0 and end:
        layout = layout_of(file.path, dialect)
        if layout is None or end <= layout.data_start:
            return 0, end
    return end, end


def records_end(file: Followed, scan: Scan, max_record: int) -> int:
    """The end of the last complete record beyond the last position of the file."""
    report = ReadReport()
    reader = RecordReader(scan, Arrays.of(0), max_record, report)
    start = file.position or byte_order_mark(head(file.path, 3))
    for _ in reader.read(read_chunks(file.path, start, file.size, report), start, final=False):
        pass
    return reader.position if reader.position > start else file.position


def lines_end(data: Bytes, begin: int, final: bool) -> tuple[int, int]:
    """A scan of lines that tells none apart: where the last one ends."""
    return 0, data.tobytes().rfind(b"\n") + 1


def packed_growth(file: Followed) -> Found:
    """A gzip file: all of it, or nothing yet."""
    if not (file.settled or file.ended):
        return file.nothing(INCOMPLETE_GZIP)
    report = ReadReport()
    for _ in read_chunks(file.path, 0, file.size, report):
        pass
    if report.malformed[FileFault.DAMAGED_GZIP.value] and not file.ended:
        return file.nothing(INCOMPLETE_GZIP)
    return file.whole(with_clock_bounds(file, Range(0, file.size)).bounds)
