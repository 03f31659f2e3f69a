"""Parquet files that appear: each is offered once its footer can be read.

In: a file. Out: its `Growth`. For a paced replay, row groups are cut by ranges of the clock: every
range reads the whole row group, so there is a limit to how many a group is cut into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.base import FileFault
from terascope.connectors.file_bytes import opened
from terascope.connectors.live.growth import (
    INCOMPLETE_PARQUET,
    FilePiece,
    Followed,
    Growth,
    with_clock_bounds,
)
from terascope.connectors.registry import FAULT_OPTION
from terascope.connectors.tables.parquet_plan import (
    Group,
    GroupRun,
    RowRange,
    cut_groups,
    in_order,
    read_groups,
)
from terascope.types import INT_MAX, INT_MIN

MOST_RANGES: Final = 32
"""The most ranges of one row group."""


def columnar_growth(file: Followed) -> Growth:
    """All of a Parquet file, or nothing yet."""
    if not file.size:
        if not file.ended:
            return Growth((), 0)
        return Growth((FilePiece(0, 0, (), (), 0, empty=True),), 0, closed=True)
    try:
        with opened(file.path) as raw:
            groups = read_groups(pq.ParquetFile(raw))
    except (pa.ArrowException, OSError):
        if not file.final:
            return Growth((), 0, torn=INCOMPLETE_PARQUET)
        why = ((FAULT_OPTION, FileFault.NOT_PARQUET.value),)  # its reader counts and names it
        whole = FilePiece(0, 0, why, (), file.size, empty=True)
        return Growth((whole,), file.size, closed=True)
    pieces = tuple(as_piece(file, groups, part) for part in parts_of(file, groups))
    return Growth(pieces, file.size, closed=True)


def parts_of(file: Followed, groups: Sequence[Group]) -> Sequence[GroupRun]:
    """Runs of row groups, or for a paced replay the ranges of each."""
    cuts = file.cuts
    if cuts.piece_ns is None or file.clock is None:
        return cut_groups(groups, cuts.split_bytes, cuts.edge)
    if not in_order(groups, file.clock.column):
        return cut_groups(groups, 1, None)
    step = max(cuts.piece_ns // file.clock.tick_ns, 1)
    return list(ranges_of(groups, file.clock.column, step))


def ranges_of(groups: Sequence[Group], column: str, step: int) -> Iterator[GroupRun]:
    """Every row group cut where `step` of the column ends, into few enough ranges."""
    for number, group in enumerate(groups):
        low, high = group.bounds[column]
        wide = step * -(-(high // step - low // step + 1) // MOST_RANGES)
        inner = range((low // wide + 1) * wide, high + 1, wide)
        for first, following in pairwise([INT_MIN, *inner, None]):
            assert first is not None
            last = INT_MAX if following is None else following - 1
            own = RowRange(column, first, last)
            yield GroupRun(number, number + 1, None if own.is_all else own)


def as_piece(file: Followed, groups: Sequence[Group], part: GroupRun) -> FilePiece:
    """A part with the bounds of the clock, which are read where there are no statistics."""
    made, size = part.as_range(groups), part_bytes(file, groups, part)
    empty = made.start == made.end
    piece = FilePiece(made.start, made.end, made.options, made.bounds, size, empty)
    return with_clock_bounds(file, piece)


def part_bytes(file: Followed, groups: Sequence[Group], part: GroupRun) -> int:
    """About the bytes of a part: of a range, its share of the time of its row groups."""
    whole = sum(group.size for group in groups[part.start : part.end])
    if part.range is None:
        return whole
    held = [group.bounds[part.range.column] for group in groups[part.start : part.end]]
    low, high = min(one[0] for one in held), max(one[1] for one in held)
    first, last = max(part.range.first, low), min(part.range.last, high)
    return whole * (last + 1 - first) // (high + 1 - low)
