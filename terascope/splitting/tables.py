"""Rows of tables as Parquet files, one run of them for each partition.

In: splits of CSV, JSON lines and Parquet files. Out: `TablePiece`s, the rows as they are written
and the columns that say which partition each belongs to; and the Parquet files of the partitions.

Rows of Parquet files keep all their columns, nested ones too. Rows of text get the columns that the
source has by itself. A value is held as a number where the column is one; an address is held as its
text. Once a column has a value that cannot be converted, it is held as text from there on, in a new
file of the same columns; files note the types of their columns. So a row with a malformed value is
read as from the source: it counts as malformed in a query that reads that column, and in no other.
A value of the partitioning set that cannot be read is NULL for the hash.

Each row has its position in the source beside it: with it, tuples of the same time have an order
whatever partitions they are in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from terascope.connectors.base import (
    FILE_SHIFT,
    POSITION,
    Column,
    FileFault,
    ReadReport,
    RecordFault,
    Split,
    arrow_type,
)
from terascope.connectors.registry import read_split
from terascope.connectors.tables.batches import arrow_column, text_column
from terascope.connectors.tables.convert import Converted
from terascope.connectors.tables.parquet import holds_positions, noted
from terascope.connectors.tables.records import BATCH_ROWS
from terascope.files import PRIVATE, make_folder, sync
from terascope.kernels.columns.arrays import Ints
from terascope.partitioning.layout import CLOCK
from terascope.splitting.outputs import OutputState, folder_name, put_at, segment_of, written
from terascope.types import Type

PARQUET: Final = ".parquet"
PLACE: Final = Column(POSITION, Type.LLONG)
MOST_BUFFERED: Final = 128 << 20
"""Bytes of the rows of all partitions that wait to be written."""
MOST_ROWS: Final = 1 << 20
GROUP_ROWS: Final = 1 << 16
"""The mean size of a row group. The row groups of all partitions are written together, so that they
end at about the same time: a task can read a range of time of all partitions."""
MOST_GROUPS: Final = 16
"""Rows of a partition that wait."""


@dataclass(frozen=True)
class TablePiece:
    """Rows of a source."""

    rows: pa.RecordBatch
    """As they are written."""
    batch: pa.RecordBatch
    """The wanted columns."""
    times: Ints | None
    """The values of the clock, where it is wanted; 0 where it has none."""
    unread: int
    """Rows of which a wanted column cannot be read."""

    def __len__(self) -> int:
        return int(self.rows.num_rows)


def is_kept_as_text(column: Column) -> bool:
    """Whether the file of a partition has the text of the values: as they are held, only Terascope
    could read them.
    """
    return column.type.is_address or column.type is Type.WIDE


@dataclass
class TextForm:
    """How the columns of a source of text are held."""

    columns: Sequence[Column]
    as_text: set[str] = field(default_factory=set)
    """The columns that had a value that cannot be converted."""

    def field(self, column: Column) -> pa.Field:
        is_text = column.name in self.as_text or is_kept_as_text(column)
        held = pa.string() if is_text else arrow_type(column.type)
        return noted(pa.field(column.name, held), column.type)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([self.field(column) for column in self.columns])

    def rows(
        self, texts: pa.RecordBatch, wanted: Sequence[Column]
    ) -> tuple[pa.RecordBatch, dict[str, Converted]]:
        """The rows as they are written, and the wanted columns."""
        names = {column.name for column in wanted}
        converted: dict[str, Converted] = {}
        for column in self.columns:
            is_text = column.type is Type.STRING or is_kept_as_text(column)
            if column.name in names or not (is_text or column.name in self.as_text):
                found = text_column(texts.column(column.name), column)
                converted[column.name] = found
                if found.faults is not None and found.faults.any() and not is_text:
                    self.as_text.add(column.name)
        schema = self.schema
        arrays = [
            texts.column(one.name) if pa.types.is_string(one.type) else converted[one.name].values
            for one in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema), converted


def text_pieces(
    split: Split, form: TextForm, wanted: Sequence[Column], report: ReadReport
) -> Iterator[TablePiece]:
    """The rows of a split of CSV or JSON lines."""
    texts = [Column(column.name, Type.STRING) for column in form.columns]
    for batch in read_split(split, [*texts, PLACE], report):
        rows, converted = form.rows(batch, wanted)
        yield piece_of(placed(rows, batch.column(PLACE.name)), wanted, converted)


def parquet_pieces(
    split: Split, wanted: Sequence[Column], report: ReadReport
) -> Iterator[TablePiece]:
    """The rows of a split of a Parquet file; those that damage hides are counted."""
    try:
        file = pq.ParquetFile(split.path)
    except (pa.ArrowException, OSError):
        report.blame(split.path, FileFault.NOT_PARQUET)
        return
    schema = file.schema_arrow.remove_metadata()
    position = split.ordinal << FILE_SHIFT
    with file:
        position += sum(file.metadata.row_group(group).num_rows for group in range(split.start))
        for group in range(split.start, split.end):
            seen, number = 0, file.metadata.row_group(group).num_rows
            with suppress(pa.ArrowException, OSError):
                for batch in file.iter_batches(BATCH_ROWS, [group], use_threads=False):
                    start = position + seen
                    seen += batch.num_rows
                    report.tuples += batch.num_rows
                    rows = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
                    held = {column.name: held_column(rows, column) for column in wanted}
                    places = pa.array(np.arange(start, start + batch.num_rows, dtype=np.int64))
                    yield piece_of(placed(rows, places), wanted, held)
            position += number
            report.bytes_read += file.metadata.row_group(group).total_byte_size
            if seen < number:
                report.blame(split.path, RecordFault.DAMAGED_ROWS, number - seen)


def placed(rows: pa.RecordBatch, positions: pa.Array) -> pa.RecordBatch:
    """The rows with their positions in the source; a column of that name stays what it is."""
    if PLACE.name in rows.schema.names:
        return rows
    fields = [*rows.schema, noted(pa.field(PLACE.name, pa.int64()), PLACE.type)]
    return pa.RecordBatch.from_arrays([*rows.columns, positions], schema=pa.schema(fields))


def held_column(rows: pa.RecordBatch, column: Column) -> Converted:
    """A wanted column; NULL where a file does not have it."""
    at = rows.schema.get_field_index(column.name)
    if at < 0:
        return Converted(pa.nulls(rows.num_rows, arrow_type(column.type)))
    return arrow_column(rows.column(at), column)


def piece_of(
    rows: pa.RecordBatch, wanted: Sequence[Column], converted: Mapping[str, Converted]
) -> TablePiece:
    arrays: list[pa.Array] = []
    bad = np.zeros(rows.num_rows, np.bool_)
    times: Ints | None = None
    for column in wanted:
        found = converted[column.name]
        values = found.without_faults.values
        if found.faults is not None:
            bad |= found.faults != 0
        arrays.append(values)
        if column.name == CLOCK:
            times = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in wanted])
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema) if wanted else rows
    return TablePiece(rows, batch, times, int(bad.sum()))


# ---- files ---------------------------------------------------------------------------------------


class AppendedFile:
    """A file that is opened for each write, so that many can be written at once. It has its name
    when it is complete. Arrow writes to it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(f".{path.name}.part")
        self._part.unlink(missing_ok=True)
        self._size = 0
        self.closed = False

    def write(self, content: bytes) -> int:
        with written(self._path):
            file = os.open(self._part, os.O_WRONLY | os.O_CREAT, PRIVATE)
            try:
                for done in put_at(file, memoryview(content).cast("B"), self._size):
                    self._size += done
            finally:
                os.close(file)
        return len(content)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing is held."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True

    def publish(self, force: bool) -> int:
        """Give the file its name; its size. A process that died may have done so before: what it
        wrote is the same, and is left to its readers.
        """
        with written(self._path):
            if self._path.exists():
                self._part.unlink()
                return self._path.stat().st_size
            if force:
                sync(self._part)
            self._part.replace(self._path)
        return self._size

    def drop(self) -> None:
        self._part.unlink(missing_ok=True)


@dataclass
class OpenParquet:
    """The Parquet file of a partition that is being written."""

    file: AppendedFile
    writer: pq.ParquetWriter
    schema: pa.Schema


def parquet_writer(file: AppendedFile, schema: pa.Schema) -> pq.ParquetWriter:
    """Positions are written as differences, a byte or two for each row, where columns can be told
    apart by their names: parts of nested ones cannot.
    """
    if not holds_positions(schema) or any(pa.types.is_nested(one.type) for one in schema):
        return pq.ParquetWriter(file, schema)
    others = [name for name in schema.names if name != POSITION]
    encoding = {POSITION: "DELTA_BINARY_PACKED"}
    return pq.ParquetWriter(file, schema, use_dictionary=others, column_encoding=encoding)


class TableOutputs:
    """The Parquet files of all partitions."""

    def __init__(self, folder: Path, states: Sequence[OutputState]) -> None:
        count = len(states)
        self.states = list(states)
        self.folders = [folder / folder_name(number, count) for number in range(count)]
        for one in self.folders:
            make_folder(one)
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in states]
        self._open: dict[int, OpenParquet] = {}
        self._bytes = self._rows = 0
        self._together = GROUP_ROWS * min(count, MOST_GROUPS)
        self._schema: pa.Schema | None = None
        self.forced = False
        """Whether files are forced to disk before they get their names."""

    @property
    def tuples(self) -> Ints:
        waiting = (sum(one.num_rows for one in some) for some in self._waiting)
        return np.array(
            [s.tuples + more for s, more in zip(self.states, waiting, strict=True)], np.int64
        )

    def add(self, rows: pa.RecordBatch, numbers: Ints) -> None:
        """Append rows to the partitions with these numbers, in order."""
        if self._schema is not None and not rows.schema.equals(self._schema, check_metadata=True):
            self._write_all()
        self._schema = rows.schema
        order = np.argsort(numbers, kind="stable")
        sorted_rows = rows.take(pa.array(order))
        ends = np.cumsum(np.bincount(numbers, minlength=len(self.states))).tolist()
        start = 0
        for number, end in enumerate(ends):
            if end > start:
                self._waiting[number].append(sorted_rows.slice(start, end - start))
            start = end
        self._bytes += sorted_rows.nbytes
        self._rows += sorted_rows.num_rows
        if self._bytes > MOST_BUFFERED or self._rows >= self._together:
            self._write_all()

    def finish(self) -> None:
        """Write everything, and give all files their names."""
        self._write_all()
        for number in sorted(self._open):
            self._close(number)

    def put_empty(self, schema: pa.Schema) -> None:
        """Give a file without rows to every partition that has no file."""
        for number, state in enumerate(self.states):
            if state.segment < 0:
                self._begin(number, schema)
                self._close(number)

    def drop(self) -> None:
        """Drop the files that are not complete."""
        for one in self._open.values():
            with suppress(OSError, pa.ArrowException):
                one.writer.close()
            one.file.drop()
        self._open.clear()

    def cut(self) -> None:
        """Drop what a process that died left incomplete."""
        for folder in self.folders:
            for part in folder.glob(".*.part"):
                if segment_of(part.name[1:]) >= 0:
                    part.unlink()

    def _write_all(self) -> None:
        for number, batches in enumerate(self._waiting):
            if batches:
                self._write(number, batches)
                self._waiting[number] = []
        self._bytes = self._rows = 0

    def _write(self, number: int, batches: list[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(batches).combine_chunks()
        opened = self._open.get(number)
        if opened is None or not opened.schema.equals(table.schema, check_metadata=True):
            opened = self._begin(number, table.schema)
        opened.writer.write_table(table, row_group_size=MOST_ROWS)
        self.states[number].tuples += table.num_rows

    def _begin(self, number: int, schema: pa.Schema) -> OpenParquet:
        if number in self._open:
            self._close(number)
        state = self.states[number]
        state.segment += 1
        state.suffix = PARQUET
        file = AppendedFile(self.folders[number] / state.name)
        opened = OpenParquet(file, parquet_writer(file, schema), schema)
        self._open[number] = opened
        return opened

    def _close(self, number: int) -> None:
        opened = self._open.pop(number)
        opened.writer.close()
        state = self.states[number]
        state.closed_bytes += opened.file.publish(self.forced)
