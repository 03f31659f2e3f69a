"""Parquet files as a source.

In: Parquet files. Out: Arrow batches; only the chunks of the wanted columns are read. A split is a
range of row groups; `#pos` counts the rows before a row in the file. Nested columns cannot be read
and are left out of the source's own columns; temporal ones are LLONG nanoseconds. `arrow_columns`
says how the others convert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.base import Column, Edge, ReadReport, SourceError, Split
from terascope.connectors.tables.arrow_columns import own_type
from terascope.connectors.tables.batches import PSEUDO_COLUMNS, assemble, missing_column
from terascope.connectors.tables.bytes_in import EMPTY_FILE, opened, size_of
from terascope.connectors.tables.clocks import arrow_column
from terascope.connectors.tables.convert import Converted
from terascope.connectors.tables.options import check_names
from terascope.connectors.tables.records import BATCH_ROWS
from terascope.types import Type


class ParquetConnector:
    """The kind `parquet`."""

    kind = "parquet"

    def columns(self, files: Sequence[Path], options: Mapping[str, str]) -> tuple[Column, ...]:
        """The columns of the first file that is not empty that are not nested."""
        check_names(self.kind, options, ())
        for path in files:
            if size_of(path):
                with _parquet(path) as file:
                    return tuple(Column(name, type) for name, type in _own_types(file).items())
        raise SourceError("cannot tell the columns: every file is empty; declare a PROTOCOL")

    def splits(
        self,
        interface: str,
        files: Sequence[Path],
        options: Mapping[str, str],
        target_bytes: int,
        edge: Edge | None = None,
    ) -> list[Split]:
        check_names(self.kind, options, ())
        return [
            Split(self.kind, interface, str(path), ordinal, start, end)
            for ordinal, path in enumerate(files)
            for start, end in _ranges(path, target_bytes)
        ]

    def read(
        self, split: Split, columns: Sequence[Column], report: ReadReport
    ) -> Iterator[pa.RecordBatch]:
        if not size_of(split.path):
            report.malformed[EMPTY_FILE] += 1
            return
        with _parquet(split.path) as file:
            names = _wanted(split.path, file, columns)
            groups = range(split.start, split.end)
            report.bytes_read += sum(_chunk_bytes(file, group, names) for group in groups)
            position = sum(file.metadata.row_group(g).num_rows for g in range(split.start))
            for held in _batches(split, file, names):
                positions = np.arange(position, position + held.num_rows, dtype=np.int64)
                position += held.num_rows
                batch = assemble(split, columns, positions, _converter(held), report)
                if batch.num_rows:
                    yield batch


@contextmanager
def _parquet(path: str | Path) -> Iterator[pq.ParquetFile]:
    with opened(path) as file:
        try:
            parquet = pq.ParquetFile(file)
        except (pa.ArrowException, OSError):
            raise SourceError(f"'{path}' is not a Parquet file, or is cut short") from None
        yield parquet


def _own_types(file: pq.ParquetFile) -> dict[str, Type]:
    found = {field.name: own_type(field.type) for field in file.schema_arrow}
    return {name: type for name, type in found.items() if type is not None}


def _ranges(path: Path, target_bytes: int) -> list[tuple[int, int]]:
    """Runs of row groups of about `target_bytes`."""
    if not size_of(path):
        return [(0, 0)]
    with _parquet(path) as file:
        found: list[tuple[int, int]] = []
        start = size = 0
        for group in range(file.metadata.num_row_groups):
            size += _chunk_bytes(file, group, None)
            if size >= target_bytes:
                found.append((start, group + 1))
                start, size = group + 1, 0
        if start < file.metadata.num_row_groups or not found:
            found.append((start, file.metadata.num_row_groups))
        return found


def _chunk_bytes(file: pq.ParquetFile, group: int, names: Sequence[str] | None) -> int:
    """Bytes in the file of one row group's column chunks: of the named columns, or of all."""
    row_group = file.metadata.row_group(group)
    chunks = map(row_group.column, range(row_group.num_columns))
    return sum(
        c.total_compressed_size for c in chunks if names is None or c.path_in_schema in names
    )


def _wanted(path: str, file: pq.ParquetFile, columns: Sequence[Column]) -> list[str]:
    present = tuple(_own_types(file))
    wanted = list(dict.fromkeys(column.name for column in columns))
    for name in wanted:
        if name not in present and name not in PSEUDO_COLUMNS:
            raise missing_column(path, name, present)
    return [name for name in wanted if name in present]


def _batches(split: Split, file: pq.ParquetFile, names: list[str]) -> Iterator[pa.RecordBatch]:
    batches = file.iter_batches(
        batch_size=BATCH_ROWS,
        row_groups=range(split.start, split.end),
        columns=names,
        use_threads=False,  # the caller runs one reader per core
    )
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise SourceError(f"'{split.path}' is damaged: {reason}") from error
        if batch is None:
            return
        yield batch


def _converter(held: pa.RecordBatch) -> Callable[[Column], Converted | None]:
    def convert(column: Column) -> Converted | None:
        index = held.schema.get_field_index(column.name)
        return arrow_column(held.column(index), column) if index >= 0 else None

    return convert
