"""The first rows of each window, in a task: ORDER BY with LIMIT over finished groups.

In: batches of finished rows, all rows of a window in one task. Out: the first `limit` rows of each
window, after the last batch. Rows are ranked when there are as many new rows as were kept of all
before: each row is sorted a few times, however many windows there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.execute.results.assemble import sorted_places
from terascope.kernels.columns.dictionary import Ints
from terascope.kernels.columns.finished_rows import FinishedRows
from terascope.physical.row_pipeline import Top

RANKED_ROWS: Final = 1 << 16
"""The least number of rows that are ranked at a time."""
LONG_RUN: Final = 64
"""In windows of fewer rows, hopeless rows are not removed before sorting."""


class Ranking:
    """The rows that may be among the first."""

    def __init__(self, top: Top) -> None:
        self._top = top
        self._kept: pa.RecordBatch | None = None
        """The first rows of the ranked batches."""
        self._new: list[pa.RecordBatch] = []
        self._new_rows = 0

    def take(self, columns: pa.RecordBatch) -> None:
        hopeful_rows = plain(hopeful(columns, self._top))
        self._new.append(hopeful_rows)
        self._new_rows += hopeful_rows.num_rows
        known = 0 if self._kept is None else self._kept.num_rows
        if self._new_rows > max(RANKED_ROWS, known):
            self._kept = self.result()

    def results(self) -> Iterator[pa.RecordBatch]:
        yield self.result()

    def result(self) -> pa.RecordBatch:
        """The first rows of all batches; there must be at least one."""
        known = [] if self._kept is None else [self._kept]
        ranked = first_rows(pa.concat_batches([*known, *self._new]), self._top)
        self._new, self._new_rows = [], 0
        return ranked


def plain(columns: pa.RecordBatch) -> pa.RecordBatch:
    """A batch without dictionaries, of which every batch has its own."""
    arrays = [
        c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in columns.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, columns.schema.names)


def first_rows(columns: pa.RecordBatch, top: Top) -> pa.RecordBatch:
    """The first rows of each window, of a batch without dictionaries."""
    rows = FinishedRows(columns)
    arrays = [columns.column(name) for name in top.per]
    arrays += [rows.column(expr) for expr, _ in top.order]
    names = [f"k{i}" for i in range(len(arrays))]
    down = [False] * len(top.per) + [descending for _, descending in top.order]
    table = pa.Table.from_arrays(arrays, names)
    places = sorted_places(table, list(zip(names, down, strict=True))).to_numpy()
    first = windows(arrays[: len(top.per)], places)
    starts = np.maximum.accumulate(np.where(first, np.arange(len(places)), 0))
    kept = places[np.arange(len(places)) - starts < top.limit]
    return columns.take(pa.array(np.sort(kept)))


def windows(
    per: Sequence[pa.Array], places: np.ndarray[tuple[int], np.dtype[np.uint64]]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The positions at which another window begins, in the given order of rows."""
    return changes([codes_of(column)[places] for column in per], len(places))


def codes_of(column: pa.Array) -> NDArray[Any]:
    """Numbers that differ where values differ."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    return np.asarray(column.indices.fill_null(-1).to_numpy(zero_copy_only=False))


def changes(columns: Sequence[NDArray[Any]], rows: int) -> NDArray[np.bool_]:
    """The mask of rows that differ from the row before; the first row does."""
    found = np.zeros(rows, np.bool_)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def hopeful(columns: pa.RecordBatch, top: Top) -> pa.RecordBatch:
    """A batch, whose first criterion is a number that is never NULL, without the rows that have
    enough others of their window before them. Sorting all rows would take far longer.
    """
    if columns.num_rows <= 4 * top.limit or not top.order or top.limit < 1:
        return columns
    expr, descending = top.order[0]
    if not expr.type.is_whole:
        return columns
    found = FinishedRows(columns).column(expr)
    if pa.types.is_dictionary(found.type) or found.null_count:
        return columns
    per = [codes_of(columns.column(name)) for name in top.per]
    ends = np.append(np.flatnonzero(changes(per, columns.num_rows))[1:], columns.num_rows)
    return columns.filter(pa.array(hopes(found.to_numpy(), ends, top.limit, descending)))


def hopes(values: NDArray[Any], ends: Ints, limit: int, descending: bool) -> NDArray[np.bool_]:
    """The mask of numbers that can be among the first `limit` of their run; ties can."""
    hope = np.ones(len(values), np.bool_)
    lengths = np.diff(ends, prepend=0)
    for run in np.flatnonzero(lengths > max(LONG_RUN, 4 * limit)).tolist():
        some = slice(int(ends[run] - lengths[run]), int(ends[run]))
        own = values[some]
        place = len(own) - limit if descending else limit - 1
        edge = np.partition(own, place)[place]
        hope[some] = own >= edge if descending else own <= edge
    return hope
