"""Records of a text file: one scan's findings, and the driver that scans a stream of blocks.

In: chunks of bytes and a scanner (CSV or JSON lines).
Out: `Scanned` pieces of at most `BATCH_ROWS` records, each with its offset in the unpacked file. A
record may be longer than a chunk, but not than `max_record`: a longer one is malformed and skipped
without being held.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from terascope.connectors.base import ReadReport, RecordFault
from terascope.connectors.tables.kernels import LF, Bytes, Int32s, Int64s

BATCH_ROWS: Final = 65_536
MAX_RECORD: Final = 16 * 1024 * 1024

GOOD: Final = 0
FAULTS: Final = (
    RecordFault.WRONG_FIELDS,
    RecordFault.UNCLOSED_QUOTE,
    RecordFault.BAD_QUOTE,
    RecordFault.TOO_LONG,
    RecordFault.INVALID_JSON,
    RecordFault.NOT_OBJECT,
    RecordFault.INVALID_UTF8,
)
"""The fault of each status of a record after GOOD."""
WRONG_FIELDS, UNCLOSED_QUOTE, BAD_QUOTE, TOO_LONG, INVALID_JSON, NOT_OBJECT, INVALID_UTF8 = range(
    1, len(FAULTS) + 1
)


def reason_of(status: int) -> str:
    """Why a record that is not GOOD was not used."""
    return FAULTS[status - 1].value


class Arrays(NamedTuple):
    """The arrays of a scanner, one entry per record; for fields, one line per column."""

    starts: Int64s
    ends: Int64s
    counts: Int32s
    status: Bytes
    field_starts: Int64s
    field_ends: Int64s
    field_modes: Bytes

    @staticmethod
    def of(slots: int, rows: int = BATCH_ROWS) -> Arrays:
        starts, ends = np.empty((2, rows), np.int64)
        field_starts, field_ends = np.empty((2, slots, rows), np.int64)
        modes = np.empty((slots, rows), np.uint8)
        counts, status = np.empty(rows, np.int32), np.empty(rows, np.uint8)
        return Arrays(starts, ends, counts, status, field_starts, field_ends, modes)


Scan = Callable[[Bytes, int, bool], tuple[int, int]]
"""(block, begin, final) -> (records found, where the next one begins)."""


@dataclass(frozen=True)
class Scanned:
    """Records that a scan found in `data`; `base` is the offset of data[0] in the unpacked file."""

    data: Bytes
    base: int
    arrays: Arrays
    rows: int
    begin: int
    end: int

    def offsets(self) -> Int64s:
        """The start of each record in the unpacked file."""
        return self.arrays.starts[: self.rows] + self.base

    def good_rows(self, report: ReadReport, fields: int | None = None) -> Int64s:
        """The usable records; the others are counted with their reason. `fields`: how many of them
        every record has.
        """
        status = self.arrays.status[: self.rows]
        if fields is not None:
            wrong = self.arrays.counts[: self.rows] != fields
            status[wrong & (status == GOOD)] = WRONG_FIELDS
        if not is_utf8(self.data[self.begin : self.end]):
            status[self._invalid_utf8() & (status == GOOD)] = INVALID_UTF8
        good: Int64s = np.flatnonzero(status == GOOD)
        if good.size < self.rows:
            for code, count in zip(
                *np.unique(status[status != GOOD], return_counts=True), strict=True
            ):
                report.malformed[reason_of(int(code))] += int(count)
        return good

    def _invalid_utf8(self) -> npt.NDArray[np.bool_]:
        """Records that do not decode: looked for among those beyond ASCII, when a piece fails."""
        starts, ends = self.arrays.starts[: self.rows], self.arrays.ends[: self.rows]
        beyond_ascii = self.begin + np.flatnonzero(self.data[self.begin : self.end] >= 0x80)
        owners = np.searchsorted(starts, beyond_ascii, "right") - 1
        bad = np.zeros(self.rows, np.bool_)
        for row in np.unique(owners[owners >= 0]):
            bad[row] = not is_utf8(self.data[starts[row] : ends[row]])
        return bad


def is_utf8(data: Bytes) -> bool:
    offsets = np.array([0, data.size], np.int32)
    text = pa.StringArray.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(data))
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


@dataclass
class RecordReader:
    """Feeds chunks to a scanner, carrying over the record that a chunk cuts in two."""

    scan: Scan
    arrays: Arrays
    max_record: int
    report: ReadReport
    position: int = 0
    """The end of the last whole record."""

    def read(self, chunks: Iterable[bytes], offset: int, final: bool = True) -> Iterator[Scanned]:
        """Every record of the chunks, whose first byte is at `offset` of the unpacked file. The
        last one need not end in a line feed if they are `final`.
        """
        rest = b""
        skipping = False
        for chunk in chunks:
            if skipping:
                skipped = chunk.find(LF) + 1 or len(chunk)
                skipping = chunk[skipped - 1] != LF
                chunk = chunk[skipped:]
                offset += skipped
            block = rest + chunk
            used = yield from self._scan_block(block, offset, final=False)
            offset += used
            rest = block[used:]
            self.position = self.position if skipping else offset
            if len(rest) > self.max_record + 1:
                # No line ends in it, or the scanner would have cut it there: go to the next.
                self.report.malformed[reason_of(TOO_LONG)] += 1
                skipping = True
                offset += len(rest)
                rest = b""
        if final:
            yield from self._scan_block(rest, offset, final=True)

    def _scan_block(self, block: bytes, base: int, final: bool) -> Generator[Scanned, None, int]:
        """Yield the records of a block, return how many of its bytes they take."""
        data = np.frombuffer(block, np.uint8)
        begin = 0
        while begin < data.size:
            rows, end = self.scan(data, begin, final)
            if rows:
                yield Scanned(data, base, self.arrays, rows, begin, end)
            if end == begin or rows < BATCH_ROWS:
                return end
            begin = end
        return begin
