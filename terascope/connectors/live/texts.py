"""Growing CSV and JSON lines: the records that are complete.

In: a file and how far it was. Out: its `Growth`. A record is complete when the line feed that ends
it is there; a quoted line feed of CSV ends none. Bytes after the last complete record stay pending
until the file is final.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from terascope.connectors.base import FileFault, ReadReport
from terascope.connectors.file_bytes import is_gzip, read_chunks
from terascope.connectors.live.growth import (
    INCOMPLETE_GZIP,
    FilePiece,
    Followed,
    Growth,
    timed_pieces,
    with_clock_bounds,
)
from terascope.connectors.tables.csv import layout_of, scanner
from terascope.connectors.tables.kernels import LF
from terascope.connectors.tables.records import BATCH_ROWS, Arrays
from terascope.connectors.tables.text_formats import CsvOptions, byte_order_mark

UNFINISHED_LINE = "its last line is not complete"
Consumed = Callable[[bytes], int]
"""The bytes of a block that are whole records."""


def text_growth(file: Followed) -> Growth:
    """The growth of a text file."""
    if is_gzip(file.path):
        return packed_growth(file)
    position = file.state.position
    end = whole = file.size
    if not file.final:
        end, whole = complete_records(file)
    torn = UNFINISHED_LINE if whole < file.size else None
    if end <= position and not (file.final and position == 0):
        return Growth((), position, torn=torn)
    if not file.size:
        return Growth((FilePiece(0, 0, file.options, (), 0, empty=True),), 0, closed=True)
    return Growth(
        tuple(timed_pieces(file, file.split(position, end, file.options))), end, torn=torn
    )


def complete_records(file: Followed) -> tuple[int, int]:
    """The end of the last complete record that can be read, and of the last one of all: a header is
    read with its first row.
    """
    position = file.state.position
    if file.connector.kind != "csv":
        end = position + whole_records(file, lambda block: block.rfind(LF) + 1, 0)
        return end, end
    dialect = CsvOptions.of(dict(file.options), file.path)
    end = position + whole_records(file, partial(whole_rows, dialect), dialect.max_row_bytes)
    if position == 0 and end:
        layout = layout_of(file.path, dialect)
        if layout is None or end <= layout.data_start:
            return 0, end
    return end, end


def whole_records(file: Followed, consumed: Consumed, longest: int) -> int:
    """The bytes from the last position of the file that are whole records."""
    position = file.state.position
    rest = b""
    whole = passed = 0
    for chunk in read_chunks(file.path, position, file.size, ReadReport()):
        passed += len(chunk)
        block = rest + chunk
        if position == 0 and not whole and not rest:
            block = block[byte_order_mark(block) :]
        used = consumed(block)
        rest = block[used:]
        if used:
            whole = passed - len(rest)
        if longest == 0:
            rest = b""  # only the last line feed counts
    return whole


def whole_rows(dialect: CsvOptions, block: bytes) -> int:
    """Bytes of the CSV records of a block that end in it."""
    data = np.frombuffer(block, np.uint8)
    scan = scanner(dialect, Arrays.of(0), ())
    begin = 0
    while begin < data.size:
        rows, end = scan(data, begin, False)
        if end == begin or rows < BATCH_ROWS:
            return end
        begin = end
    return begin


def packed_growth(file: Followed) -> Growth:
    """A gzip file: all of it, or nothing yet."""
    if not (file.settled or file.ended):
        return Growth((), 0, torn=INCOMPLETE_GZIP)
    report = ReadReport()
    for _ in read_chunks(file.path, 0, file.size, report):
        pass
    if report.malformed[FileFault.DAMAGED_GZIP.value] and not file.ended:
        return Growth((), 0, torn=INCOMPLETE_GZIP)
    whole = FilePiece(0, file.size, file.options, (), file.size)
    return Growth((with_clock_bounds(file, whole),), file.size, closed=True)
