"""The text formats: records, lines, options as the user writes them, types of undeclared columns.

In: chunks of bytes and a scanner (CSV or JSON lines). Out: `Scanned` pieces of at most `BATCH_ROWS`
records, each with its offset in the unpacked file, and batches of their columns. A record may be
longer than a chunk, but not than `max_record`: a longer one is malformed and skipped without being
held.

A file can be cut between two lines. The type of a column follows from a sample of its texts: INT if
all texts are integers, FLOAT if all are numbers, BOOL if all are words for true or false, IP if all
are addresses, else STRING. Empty texts fit any type; a column that has only those is a STRING.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import Column, Connector, ReadReport, RecordFault, Split
from terascope.connectors.file_bytes import (
    estimated_records,
    line_length,
    opened,
    read_chunks,
    size_of,
)
from terascope.connectors.tables import kernels
from terascope.connectors.tables.batches import assemble
from terascope.connectors.tables.convert import Converted, from_text, packed_texts, text_bytes
from terascope.connectors.tables.kernels import LF, Bytes, Int32s, Int64s
from terascope.diagnostic import SourceError
from terascope.types import Type

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

    def texts(self, slot: int, rows: Int64s, quote: int = -1) -> pa.StringArray:
        arrays = self.arrays
        starts = arrays.field_starts[slot]
        packed, offsets = kernels.pack_fields(
            self.data, starts, arrays.field_ends[slot], arrays.field_modes[slot], rows, quote
        )
        return packed_texts(packed, offsets, starts[rows] >= 0)

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
    """A scanner and its arrays. It carries over the record that a chunk cuts in two."""

    scan: Scan
    arrays: Arrays
    max_record: int
    position: int = 0
    """The end of the last whole record."""

    def scanned(self, data: Bytes, begin: int, final: bool, base: int = 0) -> Scanned:
        """The records of a block from `begin` on, as far as the arrays reach."""
        rows, end = self.scan(data, begin, final)
        return Scanned(data, base, self.arrays, rows, begin, end)

    def read(
        self, chunks: Iterable[bytes], offset: int, report: ReadReport, final: bool = True
    ) -> Iterator[Scanned]:
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
                report.malformed[reason_of(TOO_LONG)] += 1
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
            found = self.scanned(data, begin, final, base)
            if found.rows:
                yield found
            if found.end == begin or found.rows < BATCH_ROWS:
                return found.end
            begin = found.end
        return begin

    def batches(
        self,
        split: Split,
        columns: Sequence[Column],
        start: int,
        converted: Callable[[Scanned, Int64s, Column], Converted | None],
        report: ReadReport,
        fields: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The records of a split of a text file from `start` on; `converted` gives a column of some
        rows that were scanned. `fields`: how many of them every record has.
        """
        chunks = read_chunks(split.path, start, split.end, report)
        for scanned in self.read(chunks, start, report):
            good = scanned.good_rows(report, fields)
            convert = partial(converted, scanned, good)
            batch = assemble(split, columns, scanned.offsets()[good], convert, report)
            if batch.num_rows:
                yield batch


class TextConnector(Connector):
    """A kind whose files are lines of text."""

    def estimated_tuples(self, path: Path, size: int) -> float:
        return estimated_records(path, size, line_length)


LINE_SEARCH: Final = 64 * 1024
"""Bytes in which the end of a line is looked for at once."""


def byte_order_mark(start_of_file: bytes) -> int:
    """The number of bytes of a UTF-8 byte order mark at the beginning of a file."""
    return 3 if start_of_file.startswith(codecs.BOM_UTF8) else 0


def line_cuts(path: str | Path, first: int, size: int, target_bytes: int) -> list[int]:
    """Positions about `target_bytes` apart, beyond `first`, at which a line begins."""
    cuts: list[int] = []
    with opened(path) as file:
        position = first + target_bytes
        while position < size:
            # The line feed just before the position makes the position itself a cut.
            file.seek(position - 1)
            while (part := file.readline(LINE_SEARCH)) and part[-1] != LF:
                pass
            position = file.tell()
            if not part or position >= size:
                break
            cuts.append(position)
            position += target_bytes
    return cuts


def contains(path: str | Path, byte: int) -> bool:
    return any(byte in chunk for chunk in read_chunks(path, 0, size_of(path), ReadReport()))


def row_limit(options: Mapping[str, str]) -> int:
    """The longest row that is read, in bytes."""
    text = options.get("max_row_bytes", str(MAX_RECORD))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 2**30:
        raise SourceError(f"option max_row_bytes is a number from 1 to {2**30}, not '{text}'")
    return int(text)


def check_names(kind: str, options: Mapping[str, str], known: tuple[str, ...]) -> None:
    for name in options:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise SourceError(f"unknown option '{name}' of a {kind} source; known: {listed}")


SAMPLE_BYTES = 1024 * 1024
SAMPLE_ROWS = 10_000


def infer_type(texts: pa.StringArray) -> Type:
    """The narrowest type that holds every text of a sample."""
    filled = texts.filter(pc.greater(pc.binary_length(texts), 0))
    if not len(filled):
        return Type.STRING
    states = np.empty(len(filled), np.uint8)
    kernels.parse_integers(*text_bytes(filled), np.empty(len(filled), np.int64), states, False)
    if not (states > kernels.EMPTY).any():
        return Type.INT
    for type in (Type.FLOAT, Type.BOOL):
        if from_text(filled, type).faults is None:
            return type
    # Bare numbers convert to IP when they are declared so, but are no sign of one.
    has_numbers = pc.any(pc.match_substring_regex(filled, r"^\s*[0-9]+\s*$")).as_py()
    is_address = not has_numbers and from_text(filled, Type.IP).faults is None
    return Type.IP if is_address else Type.STRING
