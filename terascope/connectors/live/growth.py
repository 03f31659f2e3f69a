"""The growth of a file: pieces that can be read now, and the position after them.

In: a file and its last position. Out: a `Growth`. There is one module for each form of file:
`captures`, `texts`, `columnar`; `whole_growth` is for all others, which are read once they stop
growing. The times of rows come from one pass over the clock of a table: a split of whole records
becomes `FilePiece`s, cut where a record starts, by bytes and by the clock, each with the smallest
and largest time of its rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import (
    FILE_SHIFT,
    POSITION,
    Bounds,
    Column,
    Connector,
    Edge,
    Options,
    ReadReport,
    Split,
)
from terascope.connectors.file_bytes import NO_END, is_gzip, read_chunks
from terascope.connectors.live.journal import FileState
from terascope.connectors.live.settings import PACKET_CLOCK, LinkClock
from terascope.connectors.packets.planning import NO_STEP, CutRule, Cutter, TimedPart, cutting
from terascope.connectors.packets.words import Ints
from terascope.files import make_folder, open_file
from terascope.types import Type

INCOMPLETE_GZIP: Final = "its gzip stream is not complete"
INCOMPLETE_PARQUET: Final = "it is not a Parquet file, or not complete"


@dataclass(frozen=True)
class Cuts:
    """The sizes of pieces."""

    split_bytes: int
    edge: Edge | None = None
    piece_ns: int | None = None
    """For a paced replay: the most time in a piece."""

    def by_clock(self, clock: LinkClock | None) -> CutRule:
        """In ticks of a clock."""
        target = max(self.split_bytes, 1)
        if clock is None:
            return CutRule(target, target, NO_STEP)
        if self.piece_ns is not None:
            # However little there is: what waits for more bytes would come late.
            return CutRule(1, target, max(self.piece_ns // clock.tick_ns, 1))
        if self.edge is not None and self.edge.column == clock.column:
            step = self.edge.often or self.edge.step
            return CutRule(target // 2, target + target // 2, max(step, 0))
        return CutRule(target, target, NO_STEP)

    def for_packets(self) -> CutRule:
        """For captures, whose planner has all clocks of packets."""
        if self.piece_ns is not None:
            return self.by_clock(PACKET_CLOCK)
        return cutting(self.split_bytes, self.edge)


@dataclass(frozen=True)
class Followed:
    """A file that is looked at."""

    interface: str
    connector: Connector
    options: Options
    clock: LinkClock | None
    cuts: Cuts
    state: FileState
    size: int
    """As it was before anything was read."""
    settled: bool
    """It has not grown since the look before."""
    final: bool
    """Whether it seems to be finished: an incomplete record at its end is taken as it is."""
    ended: bool
    """Whether nothing will come any more, so that incomplete records stay incomplete."""

    @property
    def path(self) -> Path:
        return Path(self.state.path)

    def split(self, start: int, end: int, options: Options) -> Split:
        """A range of the file as a reader takes it."""
        return Split(
            self.connector.kind, self.interface, self.state.path, self.state.ordinal,
            start, end, options,
        )  # fmt: skip


@dataclass(frozen=True)
class FilePiece:
    """A piece that becomes a split."""

    start: int
    end: int
    options: Options
    bounds: Bounds
    size: int
    empty: bool = False


@dataclass(frozen=True)
class Growth:
    """The result of a look at a file."""

    pieces: tuple[FilePiece, ...]
    position: int
    carried: Options = ()
    closed: bool = False
    torn: str | None = None
    """The missing part of an incomplete record, if there is one."""


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


def unpacked(path: Path, ordinal: int, spool: Path) -> Path | None:
    """The unpacked copy of a file, made when it is not there; None when it is not packed, too."""
    if not is_gzip(path):
        return None
    make_folder(spool)
    copy = spool / f"{ordinal:08}-{path.name.removesuffix('.gz')}"  # .tsv means something
    if copy.exists():
        return copy
    partial = copy.with_name(copy.name + ".part")
    report = ReadReport()
    with open_file(partial, "wb") as target:
        target.writelines(read_chunks(path, 0, NO_END, report))
        target.flush()
        os.fsync(target.fileno())
    if report.malformed:
        partial.unlink()
        return None
    return partial.replace(copy)
