"""Results as files written by the tasks that have them: the parts of a result.

In: groups, or Arrow batches, as they are finished. Out: one file, complete when it is closed, and
how many rows it has. Its name is its own in every attempt of a task; whoever reads parts follows
the reports of tasks, not the folder.

Parquet is encoded here rather than by pyarrow, which hashes keys that are codes already: 23 ns for
a row against 42 to 102, whatever its options are (docs/decisions.md has the table).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Literal

import numpy as np
import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.diagnostic import OutputError, as_mistake
from terascope.execute.results.result_files import Extent, extent_of, text_encoder
from terascope.files import PRIVATE, is_part, make_folder, open_file
from terascope.kernels.columns.dictionary import NULL_CODE, Dictionary, dictionary_for
from terascope.kernels.encode.parquet_chunk import ColumnPages
from terascope.kernels.encode.parquet_format import RowGroup, file_metadata
from terascope.kernels.encode.text import csv_header
from terascope.kernels.merge.finish import (
    Coded,
    ConstantColumn,
    Numbers,
    ResultColumn,
    arrow_column,
    result_columns,
)
from terascope.kernels.merge.groups import Block, GroupFields
from terascope.kernels.merge.payload import portions
from terascope.physical.delivery import PartFormat, Sink
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.rel import Field

PAGE_ROWS: Final = 1 << 15
"""Rows of a page: as many as stay in the cache while its columns are encoded one by one."""

GROUP_BYTES: Final = 4 << 20
"""Encoded bytes of a row group, which is in memory until complete; a task writes many parts."""

BUFFER_BYTES: Final = 1 << 18
MOST_CODES: Final = 1 << 20
"""The most values of a dictionary of a part before it starts anew."""

MAGIC: Final = b"PAR1"


@dataclass(frozen=True)
class Part:
    """A file of a result that a task wrote, as the task reports it."""

    query: str
    path: Path
    rows: int
    extents: tuple[Extent, ...] = ()
    """The extents of the columns whose order is checked."""

    def to_json(self) -> str:
        known = {"query": self.query, "path": str(self.path), "rows": self.rows}
        extents = [[one.low, one.high, one.in_order] for one in self.extents]
        return json.dumps({**known, "extents": extents})

    @classmethod
    def of(cls, text: str) -> Part:
        known = json.loads(text)
        extents = tuple(Extent(*one) for one in known["extents"])
        return cls(known["query"], Path(known["path"]), known["rows"], extents)


class PartWriter:
    """A part of a result. Use it in a `with`: a part that fails leaves no file.

    Raises:
        OutputError: the file cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        format: PartFormat,
        fields: Sequence[Field],
        places: Sequence[int] | None = None,
        group_bytes: int = GROUP_BYTES,
        ordered: KeptOrder = (),
        mode: int = PRIVATE,
    ) -> None:
        """`places`: the columns of blocks that are written, in order; all by default.
        `group_bytes`: the approximate size of a row group. `ordered`: the columns whose order is
        checked. `mode`: the mode of the file.
        """
        self.fields = tuple(fields)
        names = [f.name for f in self.fields]
        self._ordered = [(names.index(name), down) for name, down in ordered]
        self.extents = tuple(Extent() for _ in ordered)
        """The extents of the ordered columns written so far."""
        self._places = places
        self.path = folder / f"part-{uuid.uuid4().hex}.{'parquet' if format == 'held' else format}"
        self.rows = 0
        self._pending: list[Block] = []
        self._pending_rows = 0
        self._batches: list[list[Coded | pa.Array]] = []
        self._batch_rows = 0
        self._dictionaries: dict[int, Dictionary] = {}
        self._source: tuple[GroupFields, Sequence[Dictionary]] | None = None
        with self._writing():
            file = open_file(self.path, "xb", mode, BUFFER_BYTES)
        self._sink: ParquetSink | TextSink = (
            TextSink(file, self.fields, format)
            if format == "csv" or format == "ndjson"
            else ParquetSink(file, self.fields, format == "held", group_bytes)
        )

    # ---- groups ----------------------------------------------------------------------------------

    def write_block(
        self, block: Block, fields: GroupFields, dictionaries: Sequence[Dictionary]
    ) -> None:
        """Write a block; small blocks are collected until they make a page."""
        if self._source is None or self._source[1] is not dictionaries:
            self._write_pending()
            self._source = fields, dictionaries
        self._pending.append(block)
        self._pending_rows += len(block.rows)
        if self._pending_rows >= PAGE_ROWS:
            self._write_pending()

    def _write_pending(self) -> None:
        if self._source is not None and self._pending_rows:
            fields, dictionaries = self._source
            for page in portions(self._pending, PAGE_ROWS):
                made = result_columns(page, fields, dictionaries)
                self._write(made if self._places is None else [made[i] for i in self._places])
        self._pending, self._pending_rows = [], 0

    # ---- batches ---------------------------------------------------------------------------------

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch with the columns of the part; dictionary columns keep their encoding. Small
        batches are collected until they make a page.
        """
        known = [self._known(i, column) for i, column in enumerate(batch.columns)]
        if self._batches and not are_alike(self._batches[-1], known):
            self._write_batches()
        self._batches.append(known)
        self._batch_rows += batch.num_rows
        if self._batch_rows >= PAGE_ROWS:
            self._write_batches()

    def _write_batches(self) -> None:
        if self._batch_rows:
            known = [together(columns) for columns in zip(*self._batches, strict=True)]
            size = -(-self._batch_rows // (self._batch_rows // PAGE_ROWS or 1))
            for start in range(0, self._batch_rows, size):
                self._write([sliced(column, start, size) for column in known])
        self._batches, self._batch_rows = [], 0

    def _known(self, place: int, column: pa.Array) -> Coded | pa.Array:
        """Dictionary columns with the codes of the part's dictionary: each batch has its own."""
        type = self.fields[place].type
        if not pa.types.is_dictionary(column.type):
            return column
        if place not in self._dictionaries or len(self._dictionaries[place]) > MOST_CODES:
            self._dictionaries[place] = dictionary_for(type)
        own = self._dictionaries[place]
        codes = own.encode(column.dictionary.cast(arrow_type(type)))
        indices = column.indices.fill_null(len(codes)) if column.null_count else column.indices
        return Coded(own, np.append(codes, np.int32(NULL_CODE))[indices.to_numpy()])

    def _write(self, given: Sequence[ResultColumn]) -> None:
        seen = (extent_of(given[at], self.fields[at].type, down) for at, down in self._ordered)
        self.extents = tuple(a.then(b) for a, b in zip(self.extents, seen, strict=True))
        with self._writing():
            self.rows += self._sink.write(given)

    def _writing(self) -> AbstractContextManager[None]:
        return as_mistake(OutputError, f"cannot write '{self.path}'")

    # ---- the end ---------------------------------------------------------------------------------

    def close(self) -> tuple[Path, int]:
        """Complete the file and return its place and number of rows."""
        self._write_pending()
        self._write_batches()
        with self._writing():
            self._sink.close()
        return self.path, self.rows

    def discard(self) -> None:
        with suppress(OSError):  # there is no room for what it still has to write
            self._sink.file.close()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()
        elif not self._sink.file.closed:
            self.close()


def are_alike(first: Sequence[Coded | pa.Array], second: Sequence[Coded | pa.Array]) -> bool:
    """Whether two lists of columns can be concatenated."""

    def dictionary(column: Coded | pa.Array) -> Dictionary | None:
        return column.dictionary if isinstance(column, Coded) else None

    return all(dictionary(a) is dictionary(b) for a, b in zip(first, second, strict=True))


def together(columns: Sequence[Coded | pa.Array]) -> Coded | pa.Array:
    if len(columns) == 1:
        return columns[0]
    if isinstance(columns[0], Coded):
        return Coded(columns[0].dictionary, np.concatenate([c.codes for c in columns]))
    return pa.concat_arrays(columns)


def sliced(column: Coded | pa.Array, start: int, rows: int) -> ResultColumn:
    if isinstance(column, Coded):
        return Coded(column.dictionary, column.codes[start : start + rows])
    return column.slice(start, rows)


# ---- formats -------------------------------------------------------------------------------------


class ParquetSink:
    """Collects pages column by column until they make a row group."""

    def __init__(
        self, file: BinaryIO, fields: Sequence[Field], held: bool, group_bytes: int
    ) -> None:
        self.file = file
        self._group_bytes = group_bytes
        self._pages = [ColumnPages(f.name, f.type, held) for f in fields]
        self._groups: list[RowGroup] = []
        self._rows = 0
        self._offset = file.write(MAGIC)

    def write(self, given: Sequence[ResultColumn]) -> int:
        if not all(p.accepts(c) for p, c in zip(self._pages, given, strict=True)):
            self._end_group()
        for pages, column in zip(self._pages, given, strict=True):
            pages.add(column)
        rows = row_count(given[0])
        self._rows += rows
        if sum(pages.bytes for pages in self._pages) >= self._group_bytes:
            self._end_group()
        return rows

    def _end_group(self) -> None:
        if not self._rows:
            return
        chunks = []
        for pages in self._pages:
            chunk, content = pages.take(self._offset)
            self.file.writelines(content)
            self._offset += chunk.bytes
            chunks.append(chunk)
        self._groups.append(RowGroup(tuple(chunks), self._rows))
        self._rows = 0

    def close(self) -> None:
        self._end_group()
        columns = [(pages.name, pages.file_type, pages.is_text) for pages in self._pages]
        footer = file_metadata(columns, self._groups)
        self.file.write(footer + len(footer).to_bytes(4, "little") + MAGIC)
        self.file.close()


class TextSink:
    """Writes lines; CSV begins with a header."""

    def __init__(
        self, file: BinaryIO, fields: Sequence[Field], format: Literal["csv", "ndjson"]
    ) -> None:
        self.file = file
        self._fields = fields
        self._encode = text_encoder(format, fields)
        if format == "csv":
            file.write(csv_header([f.name for f in fields]))

    def write(self, given: Sequence[ResultColumn]) -> int:
        pairs = zip(given, self._fields, strict=True)
        arrays = [arrow_column(column, f.type, False) for column, f in pairs]
        self.file.write(self._encode(arrays))
        return len(arrays[0])

    def close(self) -> None:
        self.file.close()


def row_count(column: ResultColumn) -> int:
    match column:
        case ConstantColumn(_, rows):
            return rows
        case Coded(_, codes):
            return len(codes)
        case Numbers(values, _):
            return len(values)
        case _:
            return len(column)


def write_part(
    sink: Sink,
    query: str,
    fields: tuple[Field, ...],
    rows: pa.RecordBatch,
    ordered: KeptOrder = (),
) -> Part:
    """Write all rows of a query that a task has, as one part."""
    folder = sink.folder_of(query)
    make_folder(folder, sink.mode)
    with PartWriter(folder, sink.format, fields, ordered=ordered, mode=sink.mode) as part:
        part.write(rows)
        path, count = part.close()
        return Part(query, path, count, part.extents)


def write_rows(table: pa.Table, folder: Path, format: PartFormat, fields: tuple[Field, ...]) -> int:
    """Write all rows of a query as a folder with one part; return their number."""
    make_folder(folder)
    with PartWriter(folder, format, fields) as part:
        for batch in table.to_batches():
            part.write(batch)
        path, rows = part.close()
    drop_other_parts(folder, [path])
    return rows


def drop_other_parts(folder: Path, parts: Sequence[Path]) -> None:
    """Remove the parts of attempts that failed."""
    make_folder(folder)
    kept = {path.name for path in parts}
    for path in folder.iterdir():
        if path.name not in kept and is_part(path):
            path.unlink()
