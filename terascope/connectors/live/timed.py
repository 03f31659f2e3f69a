"""The times of rows: one pass over the clock of a table; and files that are read as a whole.

In: a split of whole records. Out: `FilePiece`s, cut where a record starts, by bytes and by the
clock, each with the smallest and largest time of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import FILE_SHIFT, POSITION, Bounds, Column, ReadReport, Split
from terascope.connectors.cutting import Cutter, TimedPart
from terascope.connectors.live.growth import FilePiece, Followed, Growth
from terascope.connectors.live.settings import LinkClock
from terascope.connectors.packets.words import Ints
from terascope.types import Type

OFFSET_MASK = (1 << FILE_SHIFT) - 1
TIMELESS = -1


def timed_pieces(file: Followed, split: Split) -> list[FilePiece]:
    """A range of whole records in pieces of about the requested size."""
    cutter = Cutter(file.cuts.by_clock(file.clock), split.start)
    found: list[FilePiece] = []
    odd: list[Ints] = []
    for offsets, times in offsets_and_times(file, split):
        odd.append(offsets[times == TIMELESS])
        timed = times != TIMELESS
        parts = cutter.parts(offsets[timed], times[timed])
        found += [piece(file, split, part) for _, part in parts]
    found.append(piece(file, split, cutter.last(split.end)))
    timeless = np.concatenate([*odd, np.empty(0, np.int64)])
    return [without_times(p) if holds(p, timeless) else p for p in found]


def offsets_and_times(file: Followed, split: Split) -> Iterator[tuple[Ints, Ints]]:
    """The start and the time of each record; TIMELESS for none, 0 for all without a clock."""
    columns = [Column(POSITION, Type.LLONG)]
    if file.clock is not None:
        columns.append(clock_column(file.clock))
    for batch in file.connector.read(split, columns, ReadReport()):
        offset = batch.column(0).to_numpy() & OFFSET_MASK
        if file.clock is None:
            yield offset, np.zeros(len(offset), np.int64)
            continue
        times = pc.fill_null(batch.column(1), TIMELESS).to_numpy()
        yield offset, np.maximum(times, TIMELESS)  # before 1970: no time that splits can tell


def clock_column(clock: LinkClock) -> Column:
    return Column(clock.column, Type.LLONG, clock.unit)


def piece(file: Followed, split: Split, part: TimedPart) -> FilePiece:
    """A piece with the bounds of its clock, if there is one."""
    bounds: Bounds = ()
    if file.clock is not None and not part.is_empty:
        bounds = ((file.clock.column, part.smallest, part.largest),)
    size = part.end - part.start
    return FilePiece(part.start, part.end, split.options, bounds, size, empty=part.is_empty)


def holds(piece: FilePiece, offsets: Ints) -> bool:
    """Whether a record at one of the offsets, which are in order, is in the piece."""
    first, last = np.searchsorted(offsets, [piece.start, piece.end])
    return bool(first < last)


def without_times(piece: FilePiece) -> FilePiece:
    """A piece with a row that has no time: nothing can be said of it."""
    return FilePiece(piece.start, piece.end, piece.options, (), piece.size)


def clock_bounds(file: Followed, split: Split) -> tuple[int, int] | None:
    """The smallest and largest time of a split; None when a row has none, or there are no rows."""
    if file.clock is None:
        return None
    low: int | None = None
    high = 0
    for batch in file.connector.read(split, [clock_column(file.clock)], ReadReport()):
        held: pa.Array = batch.column(0)
        if held.null_count:
            return None
        ends = pc.min_max(held).as_py()
        low = ends["min"] if low is None else min(low, ends["min"])
        high = max(high, ends["max"])
    return None if low is None or low < 0 else (low, high)


def with_clock_bounds(file: Followed, piece: FilePiece) -> FilePiece:
    """A piece with the bounds of its clock, which are read if they are not known."""
    clock = file.clock
    if clock is None or piece.empty or any(name == clock.column for name, _, _ in piece.bounds):
        return piece
    found = clock_bounds(file, file.split(piece.start, piece.end, piece.options))
    if found is None:
        return piece
    return replace(piece, bounds=(*piece.bounds, (clock.column, *found)))


def whole_growth(file: Followed) -> Growth:
    """All of a file, once it has stopped growing: for kinds that have no growth of their own."""
    if not (file.settled or file.ended):
        return Growth((), 0, torn="it may still grow")
    cuts, options = file.cuts, dict(file.options)
    found = list(file.connector.ranges(file.path, options, cuts.split_bytes, cuts.edge))
    size = file.size // max(len(found), 1)
    pieces = (
        FilePiece(part.start, part.end, file.options + part.options, part.bounds, size)
        for part in found
    )
    return Growth(tuple(with_clock_bounds(file, one) for one in pieces), file.size, closed=True)
