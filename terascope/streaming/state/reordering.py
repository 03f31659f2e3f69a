"""The parts of one batch of a query, merged into one part whose rows are in order.

In: finished parts whose rows overlap in an ordered column. Out: one part. Rows are moved as they
are: lines of text as lines, columns of Parquet as columns, so that nothing is read and written
again that a format cannot tell apart. All of it fits into the memory of a task.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from terascope.diagnostic import OutputError
from terascope.execute.results.parts import Part
from terascope.physical.row_pipeline import KeptOrder
from terascope.plan.rel import Field
from terascope.streaming.state.manifest import RowFormat
from terascope.streaming.state.row_files import read_rows

QUOTE, NEWLINE = ord('"'), ord("\n")
BATCH_ROWS = 1 << 16


def reordered(
    parts: Sequence[Part], format: RowFormat, fields: Sequence[Field], ordered: KeptOrder
) -> Part:
    """One part with the rows of all, in the order of some of their columns; the others stay.

    Raises:
        OutputError: the part cannot be written.
        StreamError: a part cannot be read.
    """
    paths = [part.path for part in parts]
    keys = [read_rows(path, format, fields).select([name for name, _ in ordered]) for path in paths]
    places = woven_places(pa.concat_tables(keys), ordered)
    made = paths[0].with_name(f"part-{uuid.uuid4().hex}.{format}")
    try:
        if format == "parquet":
            write_columns(paths, places, made)
        else:
            write_lines(paths, places, made, format == "csv")
    except OSError as problem:
        made.unlink(missing_ok=True)
        reason = (problem.strerror or str(problem)).lower()
        raise OutputError(f"cannot write '{made}': {reason}") from problem
    return Part(parts[0].query, made, len(places))


def woven_places(table: pa.Table, ordered: KeptOrder) -> pa.Array:
    """The rows of a table in an order in which every one of its columns is in order. The columns
    rise together in rows that have all of them. A row that has none in the first (an outer join
    without a partner) stands behind the rows that are no later in another column.
    """
    columns = [ranks(table.column(name), down) for name, down in ordered]
    first = columns[0].copy()
    for other in columns[1:]:
        both, alone = (columns[0] >= 0) & (other >= 0), (first < 0) & (other >= 0)
        rising = np.argsort(other[both], kind="stable")
        reached = np.concatenate([[-1], np.maximum.accumulate(columns[0][both][rising])])
        first[alone] = reached[np.searchsorted(other[both][rising], other[alone], side="right")]
    return pa.array(np.lexsort([*columns[:0:-1], first]))


def ranks(column: pa.ChunkedArray, descending: bool) -> NDArray[np.int64]:
    """The place of every value among those of its column; -1: it has none."""
    is_there = column.is_valid().to_numpy()
    _, found = np.unique(column.drop_null().to_numpy(), return_inverse=True)
    made = np.full(len(column), -1, np.int64)
    made[is_there] = found.max() - found if descending and len(found) else found
    return made


def write_columns(paths: Sequence[Path], places: pa.Array, made: Path) -> None:
    whole = pa.concat_tables([pq.ParquetFile(path).read() for path in paths])
    with pq.ParquetWriter(made, whole.schema) as writer:
        for start in range(0, len(places), BATCH_ROWS):
            writer.write_table(whole.take(places.slice(start, BATCH_ROWS)))


def write_lines(paths: Sequence[Path], places: pa.Array, made: Path, is_csv: bool) -> None:
    lines = [text_lines(path.read_bytes(), quoted=is_csv) for path in paths]
    with made.open("xb") as file:
        if is_csv:  # the first line is the header
            file.write(lines[0][0].as_py())
            lines = [some.slice(1) for some in lines]
        whole = pa.chunked_array(lines)
        for start in range(0, len(places), BATCH_ROWS):
            for chunk in whole.take(places.slice(start, BATCH_ROWS)).chunks:
                file.write(bytes_of(chunk))


def text_lines(content: bytes, quoted: bool) -> pa.Array:
    """The lines of a file, each with its end; with `quoted`, one that ends within quotes goes
    on.
    """
    text = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(text == NEWLINE)
    if quoted:
        quotes = np.flatnonzero(text == QUOTE)
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    offsets: NDArray[np.int64] = np.concatenate([[0], ends + 1]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)


def bytes_of(lines: pa.Array) -> bytes:
    """Lines one behind the other."""
    _, offsets, data = lines.buffers()
    edges = np.frombuffer(offsets, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return b"" if data is None else data[int(edges[0]) : int(edges[-1])].to_pybytes()
