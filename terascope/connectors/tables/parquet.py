"""Parquet files as a source.

In: Parquet files. Out: Arrow batches; only the chunks of the wanted columns are read. A split is a
range of row groups, or the rows of them in a range of one column (`parquet_plan` cuts); `#pos`
counts the rows before a row in the file. Nested columns cannot be read and are left out of the
source's own columns; temporal ones are LLONG nanoseconds. `arrow_columns` says how the others
convert. A file that Terascope split notes the types of its columns: an address is held as the text
it was, and an integer of which some row is malformed, too. It holds `#pos` itself: the position of
a row in the source that was split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors import base
from terascope.connectors.base import Column, Range, ReadReport, Split
from terascope.connectors.file_bytes import opened, size_of
from terascope.connectors.tables.arrow_columns import own_type
from terascope.connectors.tables.batches import arrow_column, assemble, names_held
from terascope.connectors.tables.convert import Converted, looked_up
from terascope.connectors.tables.parquet_plan import cut_groups, range_of, read_groups
from terascope.connectors.tables.records import BATCH_ROWS, check_names
from terascope.diagnostic import SourceError
from terascope.types import Type

TYPE_NOTE: Final = b"terascope:type"
"""The key of the note of a column's type in a file that Terascope wrote."""
NOTED_TYPES: Final = frozenset(type.value for type in Type)


class ParquetConnector(base.Connector):
    kind = "parquet"
    suffixes = (".parquet",)

    def columns(self, files: Sequence[Path], options: Mapping[str, str]) -> tuple[Column, ...]:
        """The columns of the first file that is not empty that are not nested."""
        check_names(self.kind, options, ())
        for path in files:
            if size_of(path):
                with _parquet(path) as file:
                    return tuple(Column(name, type) for name, type in _own_types(file).items())
        raise SourceError("cannot tell the columns: every file is empty; declare a PROTOCOL")

    def ranges(
        self, path: Path, options: Mapping[str, str], target_bytes: int, edge: base.Edge | None
    ) -> list[Range]:
        check_names(self.kind, options, ())
        if not size_of(path):
            return [Range(0, 0)]
        with _parquet(path) as file:
            if not file.metadata.num_rows:
                return [Range(0, file.metadata.num_row_groups, base.EMPTY)]
            return cut_groups(read_groups(file), target_bytes, edge)

    def read(
        self, split: Split, columns: Sequence[Column], report: ReadReport
    ) -> Iterator[pa.RecordBatch]:
        if not size_of(split.path):
            report.blame(split.path, base.FileFault.EMPTY)
            return
        with _parquet(split.path) as file:
            yield from _read_groups(split, columns, report, file)

    def fault(self, path: Path, options: Mapping[str, str]) -> base.FileFault | None:
        if not size_of(path):
            return base.FileFault.EMPTY
        with _parquet(path):
            return None

    def estimated_tuples(self, path: Path, size: int) -> float:
        """The number of rows that the footer states."""
        try:
            return float(pq.read_metadata(path).num_rows)
        except (OSError, pa.ArrowException):
            return super().estimated_tuples(path, size)


def _read_groups(
    split: Split, columns: Sequence[Column], report: ReadReport, file: pq.ParquetFile
) -> Iterator[pa.RecordBatch]:
    """The rows of a split, row group by row group; the rows that damage hides are counted."""
    own = range_of(dict(split.options))
    present = tuple(_own_types(file))
    names = names_held(split.path, columns, present, present)
    # A row group shared with the split before is in that one's bytes.
    counted = range(split.start + own.starts_inside, split.end)
    report.bytes_read += sum(_chunk_bytes(file, group, names) for group in counted)
    position = sum(file.metadata.row_group(g).num_rows for g in range(split.start))
    needed = names if own.is_all or own.column in names else [*names, own.column]
    placed = holds_positions(file.schema_arrow) and any(c.name == base.POSITION for c in columns)
    needed = [*needed, base.POSITION] if placed else needed
    dictionaries: Dictionaries = {}
    encoded = _held_as_dictionaries(file, range(split.start, split.end), needed)
    # The file once more: how columns are to be read is said when a file is opened.
    with pq.ParquetFile(split.path, metadata=file.metadata, read_dictionary=encoded) as reader:
        for group in range(split.start, split.end):
            following = position + file.metadata.row_group(group).num_rows
            for held in _batches(reader, group, needed):
                positions = np.arange(position, position + held.num_rows, dtype=np.int64)
                if placed:  # without the number of the file, which `assemble` adds
                    own_places = held.column(base.POSITION).to_numpy(zero_copy_only=False)
                    positions = own_places - (split.ordinal << base.FILE_SHIFT)
                position += held.num_rows
                held, positions = own.select(held, positions)
                convert = _converter(held, dictionaries)
                batch = assemble(split, columns, positions, convert, report)
                if batch.num_rows:
                    yield batch
            if position < following and group in counted:
                report.blame(split.path, base.RecordFault.DAMAGED_ROWS, following - position)
            position = following


@contextmanager
def _parquet(path: str | Path) -> Iterator[pq.ParquetFile]:
    with opened(path) as file:
        try:
            parquet = pq.ParquetFile(file)
        except (pa.ArrowException, OSError):
            raise base.UnusableFile(
                f"'{path}' is not a Parquet file, or is cut short", base.FileFault.NOT_PARQUET
            ) from None
        yield parquet


def _own_types(file: pq.ParquetFile) -> dict[str, Type]:
    schema = file.schema_arrow
    found = {field.name: noted_type(field) or own_type(field.type) for field in schema}
    if holds_positions(schema):
        del found[base.POSITION]
    return {name: type for name, type in found.items() if type is not None}


def holds_positions(schema: pa.Schema) -> bool:
    """Whether a file has the positions of its rows in the source that was split."""
    place = schema.get_field_index(base.POSITION)
    return place >= 0 and noted_type(schema.field(place)) is Type.LLONG


def noted(field: pa.Field, type: Type) -> pa.Field:
    """The field with a note of the type that its values have, where they are held as another."""
    return field.with_metadata({TYPE_NOTE: type.value})


def noted_type(field: pa.Field) -> Type | None:
    """The type that the writer of a file has noted."""
    text = (field.metadata or {}).get(TYPE_NOTE, b"").decode()
    return Type(text) if text in NOTED_TYPES else None


def _chunk_bytes(file: pq.ParquetFile, group: int, names: Sequence[str]) -> int:
    """Bytes in the file of one row group's chunks of the named columns."""
    row_group = file.metadata.row_group(group)
    chunks = map(row_group.column, range(row_group.num_columns))
    return sum(c.total_compressed_size for c in chunks if c.path_in_schema in names)


def _batches(reader: pq.ParquetFile, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a row group, up to its damage. Batches never span row groups: the readable rows
    of a damaged one do not depend on the split.
    """
    with suppress(pa.ArrowException, OSError):  # the caller counts the rows that are missing
        yield from reader.iter_batches(
            batch_size=BATCH_ROWS,
            row_groups=[group],
            columns=names,
            use_threads=False,  # the caller runs one reader per core
        )


def _held_as_dictionaries(
    file: pq.ParquetFile, groups: Sequence[int], names: Sequence[str]
) -> list[str]:
    """The text columns of which all the row groups have a dictionary."""
    found = {f.name for f in file.schema_arrow if f.type in (pa.string(), pa.binary())} & {*names}
    for group in groups:
        row_group = file.metadata.row_group(group)
        for chunk in map(row_group.column, range(row_group.num_columns)):
            if not chunk.has_dictionary_page:
                found.discard(chunk.path_in_schema)
    return sorted(found)


Dictionaries = dict[Column, tuple[pa.Array, Converted]]
"""The last dictionary of each column, and its values as the declared type."""


def _converter(held: pa.RecordBatch, known: Dictionaries) -> Callable[[Column], Converted | None]:
    def convert(column: Column) -> Converted | None:
        index = held.schema.get_field_index(column.name)
        if index < 0:
            return None
        array = held.column(index)
        if not pa.types.is_dictionary(array.type):
            return arrow_column(array, column)
        distinct = array.dictionary
        if column not in known or not known[column][0].equals(distinct):
            known[column] = distinct, arrow_column(distinct, column)
        return looked_up(known[column][1], array.indices)

    return convert
