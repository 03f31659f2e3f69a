"""The first rows of each window, in a task: ORDER BY with LIMIT next to where groups are finished.

In: batches of finished rows, all those of a window in one task. Out: the first `limit` of each
window, when everything was seen. Of every batch only rows that may still be among them are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.low.assemble import sorted_places
from terascope.low.finished_rows import FinishedRows
from terascope.plan.expr import Expr

MOST_KEPT: Final = 1 << 17
"""Rows kept before they are ranked again."""


@dataclass(frozen=True)
class Top:
    """The first rows of each combination of columns; see plan.rel.Rank."""

    per: tuple[str, ...]
    order: tuple[tuple[Expr, bool], ...]
    limit: int


class Ranking:
    """The rows that may be among the first."""

    def __init__(self, top: Top) -> None:
        self._top = top
        self._kept: list[pa.RecordBatch] = []

    def take(self, columns: pa.RecordBatch) -> None:
        self._kept.append(first_rows(columns, self._top))
        if sum(batch.num_rows for batch in self._kept) > MOST_KEPT:
            self._kept = [self.result()]

    def results(self) -> Iterator[pa.RecordBatch]:
        yield self.result()

    def result(self) -> pa.RecordBatch:
        """The first rows of everything that was taken, which was something."""
        return first_rows(pa.concat_batches([plain(batch) for batch in self._kept]), self._top)


def plain(columns: pa.RecordBatch) -> pa.RecordBatch:
    """Without dictionaries, of which every batch has its own."""
    arrays = [
        c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in columns.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, columns.schema.names)


def first_rows(columns: pa.RecordBatch, top: Top) -> pa.RecordBatch:
    columns = plain(hopeful(columns, top))
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
    """Where, in that order of rows, another window begins."""
    first = np.zeros(len(places), np.bool_)
    first[:1] = True
    for column in per:
        codes = column.dictionary_encode(null_encoding="encode").indices.to_numpy()[places]
        first[1:] |= codes[1:] != codes[:-1]
    return first


def hopeful(columns: pa.RecordBatch, top: Top) -> pa.RecordBatch:
    """Of a batch of one window, whose first criterion is a number that is never NULL: without the
    rows that have enough others before them. Sorting all of them would take far longer.
    """
    if columns.num_rows <= 4 * top.limit or not top.order or top.limit < 1:
        return columns
    if any(not is_constant(columns.column(name)) for name in top.per):
        return columns
    expr, descending = top.order[0]
    if not expr.type.is_integer:
        return columns
    found = FinishedRows(columns).column(expr)
    if pa.types.is_dictionary(found.type) or found.null_count:
        return columns
    return columns.filter(pa.array(hopes(found.to_numpy(), top.limit, descending)))


def hopes(values: NDArray[Any], limit: int, descending: bool) -> NDArray[np.bool_]:
    """Which of more than `limit` numbers can be among the first so many; ties are."""
    place = len(values) - limit if descending else limit - 1
    edge = np.partition(values, place)[place]
    return np.asarray(values >= edge if descending else values <= edge)


def is_constant(column: pa.Array) -> bool:
    if pa.types.is_dictionary(column.type):
        column = column.indices
    values = column.to_numpy(zero_copy_only=False)
    return bool((values == values[0]).all())
