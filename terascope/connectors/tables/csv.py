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
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors import base
from terascope.connectors.base import Column, Range, ReadReport, Split
from terascope.connectors.file_bytes import head, is_gzip, read_chunks, size_of
from terascope.connectors.tables import records
from terascope.connectors.tables.batches import names_held, text_column
from terascope.connectors.tables.convert import Converted
from terascope.connectors.tables.csv_scan import scan_csv
from terascope.connectors.tables.kernels import Bytes, Int64s
from terascope.connectors.tables.records import RecordReader, Scanned
from terascope.diagnostic import SourceError

_DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
_TRUE = frozenset({"true", "yes", "1", "on"})
_FALSE = frozenset({"false", "no", "0", "off"})


@dataclass(frozen=True)
class CsvOptions:
    """The dialect of a CSV file. Characters are byte values; -1 is none."""

    delimiter: int
    quote: int
    comment: int
    header: bool
    names: tuple[str, ...]
    null: str | None
    newlines_in_values: bool
    max_row_bytes: int

    @staticmethod
    def of(options: Mapping[str, str], path: str | Path) -> CsvOptions:
        records.check_names("csv", options, tuple(CsvOptions.__annotations__))
        is_tsv = Path(path).name.removesuffix(".gz").endswith(".tsv")
        delimiter = options.get("delimiter", "\t" if is_tsv else ",")
        quote = options.get("quote", '"')
        return CsvOptions(
            delimiter=_character("delimiter", _DELIMITER_NAMES.get(delimiter, delimiter)),
            quote=_character("quote", "" if quote == "none" else quote, optional=True),
            comment=_character("comment", options.get("comment", ""), optional=True),
            header=_boolean("header", options.get("header", "true")),
            names=tuple(n.strip() for n in options.get("names", "").split(",") if n.strip()),
            newlines_in_values=_boolean(
                "newlines_in_values", options.get("newlines_in_values", "true")
            ),
            null=options.get("null"),
            max_row_bytes=records.row_limit(options),
        )


def _character(name: str, text: str, optional: bool = False) -> int:
    if optional and not text:
        return -1
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise SourceError(f"option {name} is one ASCII character, not '{text}'")
    return ord(text)


def _boolean(name: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise SourceError(f"option {name} is true or false, not '{text}'")


@dataclass(frozen=True)
class CsvLayout:
    """The beginning of a file: the names of its columns, and the start of its data."""

    names: tuple[str, ...]
    data_start: int


class CsvConnector(records.TextConnector):
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
        self, path: Path, options: Mapping[str, str], target_bytes: int, edge: base.Edge | None
    ) -> list[Range]:
        dialect, size = CsvOptions.of(options, path), size_of(path)
        if size <= target_bytes or is_gzip(path):
            return [Range(0, size)]
        layout = layout_of(path, dialect)
        first = layout.data_start if layout else size
        if (
            dialect.newlines_in_values
            and dialect.quote >= 0
            and records.contains(path, dialect.quote)
        ):
            cuts = _record_cuts(path, dialect, first, size, target_bytes)
        else:
            cuts = records.line_cuts(path, first, size, target_bytes)
        return [Range(*ends) for ends in pairwise([0, *cuts, size])]

    def read(
        self, split: Split, columns: Sequence[Column], report: ReadReport
    ) -> Iterator[pa.RecordBatch]:
        dialect = CsvOptions.of(dict(split.options), split.path)
        layout = layout_of(split.path, dialect)
        if layout is None:
            report.blame(split.path, base.FileFault.EMPTY)
            return
        fields = _fields(split.path, layout, columns)
        slots = {name: slot for slot, name in enumerate(fields)}
        start = max(split.start, layout.data_start)
        if split.start < start and not is_gzip(split.path):
            report.bytes_read += start - split.start

        def converted(scanned: Scanned, rows: Int64s, column: Column) -> Converted | None:
            if column.name not in slots:
                return None
            return text_column(_texts(scanned, rows, slots[column.name], dialect), column)

        reader = record_reader(dialect, tuple(fields.values()))
        yield from reader.batches(split, columns, start, converted, report, len(layout.names))

    def fault(self, path: Path, options: Mapping[str, str]) -> None:
        layout_of(path, CsvOptions.of(options, path))
        return


def bad_header(path: str | Path, reason: str) -> base.UnusableFile:
    return base.UnusableFile(f"header of '{path}': {reason}", base.FileFault.BAD_HEADER)


def layout_of(path: str | Path, dialect: CsvOptions) -> CsvLayout | None:
    """The header's findings; None when the file holds no record at all."""
    size = min(records.SAMPLE_BYTES, dialect.max_row_bytes) + 4
    start_of_file = head(path, size)
    data = np.frombuffer(start_of_file, np.uint8)
    mark = records.byte_order_mark(start_of_file)
    first = record_reader(dialect, (), rows=1).scanned(data, mark, final=True)
    if not first.rows:
        return None
    end, status = first.end, int(first.arrays.status[0])
    if dialect.header:
        if status != records.GOOD:
            raise bad_header(path, records.reason_of(status))
        if end == size and data[end - 1] != ord("\n"):
            raise bad_header(path, f"{size} bytes and no end; is this a CSV file?")
    else:
        end = mark
    count = int(first.arrays.counts[0])
    names = dialect.names
    if not names and dialect.header:
        names = _header_names(path, dialect, data, mark, count)
    return CsvLayout(names or tuple(f"column{k + 1}" for k in range(count)), end)


def _header_names(
    path: str | Path, dialect: CsvOptions, data: Bytes, mark: int, count: int
) -> tuple[str, ...]:
    header = record_reader(dialect, range(count), rows=1).scanned(data, mark, final=True)
    names: list[str] = []
    for slot in range(count):
        text = header.texts(slot, np.zeros(1, np.int64), dialect.quote)
        try:
            name = text[0].as_py().strip() or f"column{slot + 1}"
        except UnicodeDecodeError:
            raise bad_header(path, "invalid UTF-8") from None
        copies, plain = 1, name
        while name in names:
            copies += 1
            name = f"{plain}_{copies}"
        names.append(name)
    return tuple(names)


def _sampled_columns(path: Path, dialect: CsvOptions, layout: CsvLayout) -> tuple[Column, ...]:
    start_of_file = head(path, layout.data_start + records.SAMPLE_BYTES)
    data = np.frombuffer(start_of_file, np.uint8)
    is_whole = len(start_of_file) < layout.data_start + records.SAMPLE_BYTES
    reader = record_reader(dialect, range(len(layout.names)), records.SAMPLE_ROWS)
    scanned = reader.scanned(data, layout.data_start, is_whole)
    good = scanned.good_rows(ReadReport(), len(layout.names))
    return tuple(
        Column(name, records.infer_type(_texts(scanned, good, slot, dialect)))
        for slot, name in enumerate(layout.names)
    )


def _record_cuts(
    path: Path, dialect: CsvOptions, first: int, size: int, target_bytes: int
) -> list[int]:
    """Starts of records about `target_bytes` apart, found by walking through all of them."""
    report = ReadReport()
    cuts: list[int] = []
    wanted = first + target_bytes
    chunks = read_chunks(path, first, size, report)
    for scanned in record_reader(dialect, ()).read(chunks, first, report):
        offsets = scanned.offsets()
        while (index := int(np.searchsorted(offsets, wanted))) < offsets.size:
            cuts.append(int(offsets[index]))
            wanted = cuts[-1] + target_bytes
    return cuts


def _fields(path: str, layout: CsvLayout, columns: Sequence[Column]) -> dict[str, int]:
    """Column name -> index of the field, in the order in which the scanner delivers them."""
    places = {name: place for place, name in reversed([*enumerate(layout.names)])}
    places = {positional(place + 1): place for place in range(len(layout.names))} | places
    return {name: places[name] for name in names_held(path, columns, places, layout.names)}


def positional(place: int) -> str:
    """The second name of the column at a place, counted from 1."""
    return f"@{place}"


def record_reader(
    dialect: CsvOptions, fields: Sequence[int], rows: int = records.BATCH_ROWS
) -> RecordReader:
    """A reader that delivers the given fields, the first of them in slot 0."""
    slot_of_field = np.full(max(fields, default=-1) + 1, -1, np.int32)
    slot_of_field[list(fields)] = np.arange(len(fields))
    arrays = records.Arrays.of(len(fields), rows)
    scan = partial(
        scan_csv, dialect.delimiter, dialect.quote, dialect.comment,
        dialect.newlines_in_values, dialect.max_row_bytes, slot_of_field, arrays,
    )  # fmt: skip
    return RecordReader(scan, arrays, dialect.max_row_bytes)


def _texts(scanned: Scanned, rows: Int64s, slot: int, dialect: CsvOptions) -> pa.StringArray:
    texts = scanned.texts(slot, rows, dialect.quote)
    if dialect.null is None:
        return texts
    return pc.if_else(pc.equal(texts, dialect.null), pa.scalar(None, pa.string()), texts)
