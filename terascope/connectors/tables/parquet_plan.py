"""Cutting Parquet files: runs of row groups, their bounds, and edges inside of row groups.

In: the footer of a file. Out: ranges of it. Bounds come from the statistics of integer columns and
are exact; a column with a NULL has none. Where the row groups of a file follow one another in the
order of the column whose edge is asked for, a row group in which an epoch ends may be given to two
runs, each with the range of the column whose rows are its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.base import Edge, Options, Range
from terascope.connectors.tables.convert import Bools
from terascope.connectors.tables.kernels import Int64s
from terascope.types import INT_MAX, INT_MIN


@dataclass(frozen=True)
class Group:
    """A row group: the bytes of its chunks, and the bounds of its integer columns."""

    size: int
    bounds: Mapping[str, tuple[int, int]]


RANGE_OPTION: Final = "parquet-range"
"""The split's option that holds the range."""


@dataclass(frozen=True)
class RowRange:
    """Rows whose integer `column`, which has no NULLs, is in first..last, both included; without
    these limits all rows.
    """

    column: str = ""
    first: int = INT_MIN
    last: int = INT_MAX

    @property
    def is_all(self) -> bool:
        return self.first == INT_MIN and self.last == INT_MAX

    @property
    def starts_inside(self) -> bool:
        """Whether the split before has the other rows of the first row group."""
        return self.first != INT_MIN

    def options(self) -> Options:
        if self.is_all:
            return ()
        return ((RANGE_OPTION, json.dumps([self.column, self.first, self.last])),)

    def select(self, batch: pa.RecordBatch, positions: Int64s) -> tuple[pa.RecordBatch, Int64s]:
        """The rows in the range, and their positions."""
        if self.is_all:
            return batch, positions
        column = batch.column(batch.schema.get_field_index(self.column))
        values: Int64s = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        inside: Bools = (values >= self.first) & (values <= self.last)
        places = np.flatnonzero(inside)
        if not places.size:
            return batch.slice(0, 0), positions[:0]
        start, stop = int(places[0]), int(places[-1]) + 1
        if stop - start == places.size:  # the rows are in order of the column: nothing is copied
            return batch.slice(start, stop - start), positions[start:stop]
        return batch.filter(pa.array(inside)), positions[inside]


def range_of(options: Mapping[str, str]) -> RowRange:
    return RowRange(*json.loads(options.get(RANGE_OPTION, "[]")))


ALL_ROWS: Final = RowRange()


def part_of(groups: Sequence[Group], start: int, end: int, rows: RowRange = ALL_ROWS) -> Range:
    """Row groups start..end of a file, or the rows of a range in them, with the bounds of the
    columns that have them in all the groups. A part without all rows of its groups has only the
    bounds of the column by which it is cut: another column may reach its last value in other rows.
    """
    held = [group.bounds for group in groups[start:end]]
    known = [name for name in (held[0] if held else ()) if all(name in one for one in held)]
    found = []
    for name in known if rows.is_all else {*known} & {rows.column}:
        low, high = min(b[name][0] for b in held), max(b[name][1] for b in held)
        found.append((name, max(low, rows.first), min(high, rows.last)))
    return Range(start, end, rows.options(), tuple(found))


def read_groups(file: pq.ParquetFile) -> list[Group]:
    """The facts of the footer about each row group."""
    names = file.schema_arrow.names
    integers = {
        field.name
        for field in file.schema_arrow
        if pa.types.is_integer(field.type) and names.count(field.name) == 1
    }
    groups = []
    for number in range(file.metadata.num_row_groups):
        row_group = file.metadata.row_group(number)
        size = 0
        bounds: dict[str, tuple[int, int]] = {}
        for chunk in map(row_group.column, range(row_group.num_columns)):
            size += chunk.total_compressed_size
            if chunk.path_in_schema in integers and (found := chunk_bounds(chunk)) is not None:
                bounds[chunk.path_in_schema] = found
        groups.append(Group(size, bounds))
    return groups


def chunk_bounds(chunk: pq.ColumnChunkMetaData) -> tuple[int, int] | None:
    """The smallest and largest integer of a column chunk, when all are there and can be read."""
    if not chunk.is_stats_set:
        return None
    found = chunk.statistics
    if not (found.has_min_max and found.has_null_count) or found.null_count:
        return None
    low, high = int(found.min), int(found.max)
    return (low, high) if INT_MIN <= low <= high <= INT_MAX else None


def cut_groups(groups: Sequence[Group], target_bytes: int, edge: Edge | None) -> list[Range]:
    """Runs of row groups of about `target_bytes`, by the edges where that can be."""
    if edge is not None and edge.step > 0 and in_order(groups, edge.column):
        return list(cut_at_edges(groups, target_bytes, edge))
    found: list[Range] = []
    start = size = 0
    for number, group in enumerate(groups):
        size += group.size
        if size >= target_bytes:
            found.append(part_of(groups, start, number + 1))
            start, size = number + 1, 0
    if start < len(groups) or not found:
        found.append(part_of(groups, start, len(groups)))
    return found


def in_order(groups: Sequence[Group], column: str) -> bool:
    """Whether no row group holds a smaller value of the column than one before it."""
    if not groups or not all(column in group.bounds for group in groups):
        return False
    return all(one.bounds[column][1] <= other.bounds[column][0] for one, other in pairwise(groups))


def cut_at_edges(groups: Sequence[Group], target_bytes: int, edge: Edge) -> Iterator[Range]:
    """Parts that end with an epoch, when half the target lies between two such ends; without one at
    one and a half times the target.

    A row group is cut once at most: both parts read all of it.
    """
    least, most = target_bytes / 2, target_bytes * 1.5
    start, rows = 0, RowRange(edge.column)
    size = since = 0.0
    before: int | None = None
    for number, group in enumerate(groups):
        low, high = group.bounds[edge.column]
        changes = before is not None and before // edge.step < low // edge.step
        if number > start and (size >= most or (changes and since >= least)):
            yield part_of(groups, start, number, rows)
            start, rows, size = number, RowRange(edge.column), 0.0
            since = 0.0 if changes else since
        cut = first_edge(low, high, edge.step, (least - since) / max(group.size, 1))
        if cut is None:
            size += group.size
            since += group.size
        else:
            yield part_of(groups, start, number + 1, replace(rows, last=cut - 1))
            start, rows = number, RowRange(edge.column, first=cut)
            size = since = group.size * (high + 1 - cut) / (high + 1 - low)
        before = high
    yield part_of(groups, start, len(groups), rows)


def first_edge(low: int, high: int, step: int, share: float) -> int | None:
    """The first start of an epoch in low+1..high that has at least this share of the range before
    it.
    """
    earliest = max(low + 1, low + int(share * (high + 1 - low)))
    cut = -(-earliest // step) * step
    return cut if cut <= high else None
