"""The times of rows: one pass over the clock of a table.

In: a split of whole records. Out: `Piece`s of it, cut where a record starts, by bytes and by the
clock, each with the smallest and largest time of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import FILE_SHIFT, POSITION, Column, ReadReport, Split
from terascope.connectors.live.growth import Followed, Piece
from terascope.connectors.live.settings import LinkClock
from terascope.connectors.packets.compiled import Ints
from terascope.connectors.packets.planning import EMPTY, next_cut
from terascope.types import Type

OFFSET_MASK = (1 << FILE_SHIFT) - 1
TIMELESS = -1


def timed_pieces(file: Followed, split: Split) -> list[Piece]:
    """A range of whole records in pieces, as large as is wished."""
    cut = file.cuts.by_clock(file.clock)
    found: list[Piece] = []
    odd: list[Ints] = []
    start = since = split.start
    smallest, largest = EMPTY
    for offset, times in offsets_and_times(file, split):
        odd.append(offset[times == TIMELESS])
        offset, times = offset[times != TIMELESS], times[times != TIMELESS]
        row, count = 0, len(times)
        while row < count:
            row, smallest, largest = next_cut(
                offset, times, row, count, start, since, smallest, largest,
                cut.least, cut.most, cut.step,
            )  # fmt: skip
            if row == count:
                break
            here = int(offset[row])
            found.append(piece(file, split, start, here, smallest, largest))
            if cut.step and int(times[row]) // cut.step > largest // cut.step:
                since = here
            start = here
            smallest, largest = EMPTY
    found.append(piece(file, split, start, split.end, smallest, largest))
    timeless = np.concatenate([*odd, np.empty(0, np.int64)])
    return [without_times(p) if holds(p, timeless) else p for p in found]


def offsets_and_times(file: Followed, split: Split) -> Iterator[tuple[Ints, Ints]]:
    """Where each record starts, and its time; TIMELESS for none, 0 for all without a clock."""
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


def piece(file: Followed, split: Split, start: int, end: int, smallest: int, largest: int) -> Piece:
    """A piece with the bounds of its clock, if there is one."""
    if file.clock is None:
        return Piece(start, end, split.options, (), end - start, empty=largest < 0)
    bounds = ((file.clock.column, smallest, largest),) if largest >= 0 else ()
    return Piece(start, end, split.options, bounds, end - start, empty=not bounds)


def holds(piece: Piece, offsets: Ints) -> bool:
    """Whether a record at one of the offsets, which are in order, is in the piece."""
    first, last = np.searchsorted(offsets, [piece.start, piece.end])
    return bool(first < last)


def without_times(piece: Piece) -> Piece:
    """A piece with a row that has no time: nothing can be said of it."""
    return Piece(piece.start, piece.end, piece.options, (), piece.size)


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
