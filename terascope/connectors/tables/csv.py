"""CSV files as a source.

In: plain or gzip CSV. Out: Arrow batches of the wanted columns; `#pos` counts the bytes before a
row in the unpacked file.

A plain file is cut where a record begins. As long as the file has no quote, or values hold no
newlines (`newlines_in_values=false`), that is the start of any line; otherwise planning walks
through the file once, so that no cut falls into a quoted newline. Columns are found by the name in
each file's own header, a second column of a name is `name_2`.

Options: delimiter (`,`; tab in a .tsv file), quote (`"`, or none), header (true), names (a,b,...:
the columns when there is no header, or instead of it; without either they are column1, column2,
...), comment (lines starting with it are skipped), null (a text that means NULL),
newlines_in_values (true), max_row_bytes (16 MiB).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from terascope.connectors.base import (
    Column,
    Connector,
    Edge,
    FileFault,
    Range,
    ReadReport,
    Split,
    UnusableFile,
)
from terascope.connectors.file_bytes import (
    estimated_records,
    head,
    is_gzip,
    line_length,
    read_chunks,
    size_of,
)
from terascope.connectors.tables.batches import PSEUDO_COLUMNS, missing_column, text_column
from terascope.connectors.tables.convert import Converted, Texts
from terascope.connectors.tables.csv_scan import scan_csv
from terascope.connectors.tables.kernels import Bytes, Int64s
from terascope.connectors.tables.records import (
    GOOD,
    SAMPLE_BYTES,
    SAMPLE_ROWS,
    Arrays,
    CsvOptions,
    RecordReader,
    Scan,
    Scanned,
    byte_order_mark,
    contains,
    infer_type,
    line_cuts,
    read_records,
    reason_of,
)
from terascope.diagnostic import SourceError


@dataclass(frozen=True)
class CsvLayout:
    """The beginning of a file: the names of its columns, and the start of its data."""

    names: tuple[str, ...]
    data_start: int


class BadHeader(UnusableFile):
    """A file whose first line is no header."""


class CsvConnector(Connector):
    kind = "csv"
    suffixes = (".csv", ".csv.gz", ".tsv", ".txt")

    def columns(self, files: Sequence[Path], options: Mapping[str, str]) -> tuple[Column, ...]:
        """The names of the first file that is not empty, with types from a sample of it."""
        for path in files:
            dialect = CsvOptions.of(options, path)
            layout = layout_of(path, dialect)
            if layout is not None:
                return _sampled_columns(path, dialect, layout)
        raise SourceError("cannot tell the columns: every file is empty; declare a PROTOCOL")

    def ranges(
        self, path: Path, options: Mapping[str, str], target_bytes: int, edge: Edge | None
    ) -> list[Range]:
        return [
            Range(*ends)
            for ends in pairwise(_cuts(path, CsvOptions.of(options, path), target_bytes))
        ]

    def read(
        self, split: Split, columns: Sequence[Column], report: ReadReport
    ) -> Iterator[pa.RecordBatch]:
        dialect = CsvOptions.of(dict(split.options), split.path)
        layout = layout_of(split.path, dialect)
        if layout is None:
            report.blame(split.path, FileFault.EMPTY)
            return
        fields = _fields(split.path, layout, columns)
        slots = {name: slot for slot, name in enumerate(fields)}
        start = max(split.start, layout.data_start)
        if split.start < start and not is_gzip(split.path):
            report.bytes_read += start - split.start
        arrays = Arrays.of(len(fields))
        scan = scanner(dialect, arrays, tuple(fields.values()))
        reader = RecordReader(scan, arrays, dialect.max_row_bytes, report)

        def converted(scanned: Scanned, rows: Int64s, column: Column) -> Converted | None:
            if column.name not in slots:
                return None
            return text_column(_texts(scanned, rows, slots[column.name], dialect), column)

        yield from read_records(reader, split, columns, start, converted, len(layout.names))

    def fault(self, path: Path, options: Mapping[str, str]) -> FileFault | None:
        try:
            layout_of(path, CsvOptions.of(options, path))
        except BadHeader:
            return FileFault.BAD_HEADER
        return None

    def estimated_tuples(self, path: Path, size: int) -> float:
        return estimated_records(path, size, line_length)


def layout_of(path: str | Path, dialect: CsvOptions) -> CsvLayout | None:
    """The header's findings; None when the file holds no record at all."""
    size = min(SAMPLE_BYTES, dialect.max_row_bytes) + 4
    start_of_file = head(path, size)
    data = np.frombuffer(start_of_file, np.uint8)
    mark = byte_order_mark(start_of_file)
    arrays = Arrays.of(0, rows=1)
    rows, end = scanner(dialect, arrays, ())(data, mark, True)
    if not rows:
        return None
    if dialect.header:
        if arrays.status[0] != GOOD:
            raise BadHeader(f"header of '{path}': {reason_of(int(arrays.status[0]))}")
        if end == size and data[end - 1] != ord("\n"):
            raise BadHeader(f"header of '{path}': {size} bytes and no end; is this a CSV file?")
    else:
        end = mark
    count = int(arrays.counts[0])
    names = dialect.names
    if not names and dialect.header:
        names = _header_names(path, dialect, data, mark, count)
    return CsvLayout(names or tuple(f"column{k + 1}" for k in range(count)), end)


def _header_names(
    path: str | Path, dialect: CsvOptions, data: Bytes, mark: int, count: int
) -> tuple[str, ...]:
    arrays = Arrays.of(count, rows=1)
    _, end = scanner(dialect, arrays, range(count))(data, mark, True)
    header = Scanned(data, 0, arrays, 1, mark, end)
    names: list[str] = []
    for slot in range(count):
        text = header.texts(slot, np.zeros(1, np.int64), dialect.quote)
        try:
            name = text.data.tobytes().decode().strip() or f"column{slot + 1}"
        except UnicodeDecodeError:
            raise BadHeader(f"header of '{path}': invalid UTF-8") from None
        copies, plain = 1, name
        while name in names:
            copies += 1
            name = f"{plain}_{copies}"
        names.append(name)
    return tuple(names)


def _sampled_columns(path: Path, dialect: CsvOptions, layout: CsvLayout) -> tuple[Column, ...]:
    arrays = Arrays.of(len(layout.names), SAMPLE_ROWS)
    start_of_file = head(path, layout.data_start + SAMPLE_BYTES)
    data = np.frombuffer(start_of_file, np.uint8)
    is_whole = len(start_of_file) < layout.data_start + SAMPLE_BYTES
    scan = scanner(dialect, arrays, range(len(layout.names)))
    rows, end = scan(data, layout.data_start, is_whole)
    scanned = Scanned(data, 0, arrays, rows, layout.data_start, end)
    good = scanned.good_rows(ReadReport(), len(layout.names))
    return tuple(
        Column(name, infer_type(_texts(scanned, good, slot, dialect)))
        for slot, name in enumerate(layout.names)
    )


def _cuts(path: Path, dialect: CsvOptions, target_bytes: int) -> list[int]:
    size = size_of(path)
    if size <= target_bytes or is_gzip(path):
        return [0, size]
    layout = layout_of(path, dialect)
    first = layout.data_start if layout else size
    if dialect.newlines_in_values and dialect.quote >= 0 and contains(path, dialect.quote):
        cuts = _record_cuts(path, dialect, first, size, target_bytes)
    else:
        cuts = line_cuts(path, first, size, target_bytes)
    return [0, *cuts, size]


def _record_cuts(
    path: Path, dialect: CsvOptions, first: int, size: int, target_bytes: int
) -> list[int]:
    """Starts of records about `target_bytes` apart, found by walking through all of them."""
    arrays = Arrays.of(0)
    report = ReadReport()
    reader = RecordReader(scanner(dialect, arrays, ()), arrays, dialect.max_row_bytes, report)
    cuts: list[int] = []
    wanted = first + target_bytes
    for scanned in reader.read(read_chunks(path, first, size, report), first):
        offsets = scanned.offsets()
        while (index := int(np.searchsorted(offsets, wanted))) < offsets.size:
            cuts.append(int(offsets[index]))
            wanted = cuts[-1] + target_bytes
    return cuts


def _fields(path: str, layout: CsvLayout, columns: Sequence[Column]) -> dict[str, int]:
    """Column name -> index of the field, in the order in which the scanner delivers them."""
    wanted = dict.fromkeys(column.name for column in columns)
    places = {name: place for place, name in reversed([*enumerate(layout.names)])}
    places = {positional(place + 1): place for place in range(len(layout.names))} | places
    for name in wanted:
        if name not in places and name not in PSEUDO_COLUMNS:
            raise missing_column(path, name, layout.names)
    return {name: places[name] for name in wanted if name in places}


def positional(place: int) -> str:
    """The second name of the column at a place, counted from 1."""
    return f"@{place}"


def scanner(dialect: CsvOptions, arrays: Arrays, fields: Sequence[int]) -> Scan:
    """A scan that delivers the given fields, the first of them in slot 0."""
    slot_of_field = np.full(max(fields, default=-1) + 1, -1, np.int32)
    slot_of_field[list(fields)] = np.arange(len(fields))

    def scan(data: Bytes, begin: int, final: bool) -> tuple[int, int]:
        return scan_csv(
            data, begin, final, dialect.delimiter, dialect.quote, dialect.comment,
            dialect.newlines_in_values, dialect.max_row_bytes, slot_of_field, arrays,
        )  # fmt: skip

    return scan


def _texts(scanned: Scanned, rows: Int64s, slot: int, dialect: CsvOptions) -> Texts:
    texts = scanned.texts(slot, rows, dialect.quote)
    return texts if dialect.null is None else texts.without(dialect.null)
