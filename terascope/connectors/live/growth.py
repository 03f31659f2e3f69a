"""The growth of a file: the entries that can be read now, and the position after them.

In: a file and its last position, as a `Followed`. Out: a `Found`. `captures` is for captures,
`texts` for CSV and JSON lines; Parquet files and all other kinds are read as a whole, here. The
times of rows come from one pass over the clock of a table: a range of whole records becomes
entries, cut where a record starts, by bytes and by the clock, each with the smallest and largest
time of its rows.

A Parquet file is offered once its footer can be read. For a paced replay, its row groups are cut by
ranges of the clock: every range reads the whole row group, so there is a limit to how many a group
is cut into.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from terascope.connectors.base import (
    FILE_SHIFT,
    POSITION,
    Bounds,
    Column,
    Connector,
    Edge,
    FileFault,
    Options,
    Range,
    ReadReport,
    Split,
)
from terascope.connectors.file_bytes import NO_END, is_gzip, opened, read_chunks
from terascope.connectors.file_identity import FILE_OPTION
from terascope.connectors.live.journal import Entry, FileState, Found
from terascope.connectors.live.settings import PACKET_CLOCK, LinkClock
from terascope.connectors.packets.planning import NANOSECONDS, CutRule, Cutter, TimedPart, cutting
from terascope.connectors.packets.words import Ints
from terascope.connectors.registry import FAULT_OPTION, Interface
from terascope.connectors.tables.parquet_plan import (
    Group,
    GroupRun,
    RowRange,
    cut_groups,
    in_order,
    read_groups,
)
from terascope.files import make_folder, open_file
from terascope.types import INT_MAX, INT_MIN, Type

INCOMPLETE_GZIP: Final = "its gzip stream is not complete"
INCOMPLETE_PARQUET: Final = "it is not a Parquet file, or not complete"
OFFSET_MASK: Final = (1 << FILE_SHIFT) - 1
TIMELESS: Final = -1
MOST_RANGES: Final = 32
"""The most ranges of one row group."""


@dataclass(frozen=True)
class Cuts:
    """The sizes of pieces."""

    split_bytes: int
    edge: Edge | None = None
    piece_ns: int | None = None
    """For a paced replay: the most time in a piece."""

    def by_clock(self, clock: LinkClock | None) -> CutRule:
        """In ticks of a clock."""
        if clock is None:
            return cutting(self.split_bytes, None)
        if self.piece_ns is not None:
            # However little there is: what waits for more bytes would come late.
            return CutRule(1, max(self.split_bytes, 1), max(self.piece_ns // clock.tick_ns, 1))
        ticks = NANOSECONDS if clock is PACKET_CLOCK else {clock.column: 1}
        return cutting(self.split_bytes, self.edge, ticks)


@dataclass(frozen=True)
class Followed:
    """A file that is looked at."""

    interface: Interface
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

    @property
    def connector(self) -> Connector:
        return self.interface.connector

    @property
    def position(self) -> int:
        """The first byte that was not read yet."""
        return self.state.position

    def split(self, part: Range) -> Split:
        """A range of the file as a reader takes it."""
        own, state = self.interface, self.state
        options = own.options + part.options
        return Split(
            own.kind, own.name, state.path, state.ordinal,
            part.start, part.end, options, part.bounds,
        )  # fmt: skip

    def entry(self, part: Range, size: int | None = None, empty: bool = False) -> Entry:
        """A range as the journal has it, with the identity by which a reader recognises the file;
        without a size, its length is the size.
        """
        if self.state.identity:
            part = replace(part, options=(*part.options, (FILE_OPTION, self.state.identity)))
        return Entry(self.split(part), part.end - part.start if size is None else size, empty)

    def found(
        self,
        position: int,
        entries: Iterable[Entry] = (),
        carried: Options = (),
        closed: bool = False,
        torn: str | None = None,
    ) -> Found:
        """The entries up to a position."""
        state = replace(self.state, position=position, carried=carried, closed=closed)
        return Found(state, tuple(entries), torn)

    def nothing(self, torn: str | None = None) -> Found:
        """No entry, yet."""
        return self.found(self.position, carried=self.state.carried, torn=torn)

    def whole(self, bounds: Bounds = (), empty: bool = False) -> Found:
        """All of the file in one entry, after which nothing of it is read."""
        return self.found(
            self.size, [self.entry(Range(0, self.size, (), bounds), empty=empty)], closed=True
        )

    def unusable(self, fault: FileFault, position: int) -> Found:
        """An entry whose reader counts and names the file."""
        entry = self.entry(Range(0, 0, ((FAULT_OPTION, fault.value),)), self.size, empty=True)
        return self.found(position, [entry], closed=True)


def timed_entries(file: Followed, whole: Range) -> Iterator[Entry]:
    """A range of whole records in pieces of about the requested size."""
    cutter = Cutter(file.cuts.by_clock(file.clock), whole.start)
    parts: list[TimedPart] = []
    odd = [np.empty(0, np.int64)]
    for offsets, times in offsets_and_times(file, whole):
        timed = times != TIMELESS
        odd.append(offsets[~timed])
        parts += [part for _, part in cutter.parts(offsets[timed], times[timed])]
    timeless = np.concatenate(odd)
    for part in [*parts, cutter.last(whole.end)]:
        first, last = np.searchsorted(timeless, [part.start, part.end])
        bounds: Bounds = ()
        if file.clock is not None and not part.is_empty and first == last:
            bounds = ((file.clock.column, part.smallest, part.largest),)
        # Nothing can be said of a piece that has a row without a time.
        empty = part.is_empty and bool(first == last)
        yield file.entry(Range(part.start, part.end, (), bounds), empty=empty)


def offsets_and_times(file: Followed, whole: Range) -> Iterator[tuple[Ints, Ints]]:
    """The start and the time of each record; TIMELESS for none, 0 for all without a clock."""
    columns = [Column(POSITION, Type.LLONG)]
    if file.clock is not None:
        columns.append(clock_column(file.clock))
    for batch in file.connector.read(file.split(whole), columns, ReadReport()):
        offset = batch.column(0).to_numpy() & OFFSET_MASK
        if file.clock is None:
            yield offset, np.zeros(len(offset), np.int64)
            continue
        times = pc.fill_null(batch.column(1), TIMELESS).to_numpy()
        yield offset, np.maximum(times, TIMELESS)  # before 1970: no time that splits can tell


def clock_column(clock: LinkClock) -> Column:
    return Column(clock.column, Type.LLONG, clock.unit)


def with_clock_bounds(file: Followed, part: Range) -> Range:
    """A range with the bounds of its clock, which are read if they are not known. It has none when
    a row has no time, or there are no rows.
    """
    clock = file.clock
    if clock is None or any(name == clock.column for name, _, _ in part.bounds):
        return part
    low, high = INT_MAX, -1
    for batch in file.connector.read(file.split(part), [clock_column(clock)], ReadReport()):
        held: pa.Array = batch.column(0)
        if held.null_count:
            return part
        ends = pc.min_max(held).as_py()
        low, high = min(low, ends["min"]), max(high, ends["max"])
    if not 0 <= low <= high:
        return part
    return replace(part, bounds=(*part.bounds, (clock.column, low, high)))


def whole_growth(file: Followed) -> Found:
    """All of a file, once it has stopped growing: for kinds that have no growth of their own."""
    if not (file.settled or file.ended):
        return file.nothing("it may still grow")
    cuts, options = file.cuts, dict(file.interface.options)
    parts = list(file.connector.ranges(file.path, options, cuts.split_bytes, cuts.edge))
    size = file.size // max(len(parts), 1)
    entries = [file.entry(with_clock_bounds(file, part), size) for part in parts]
    return file.found(file.size, entries, closed=True)


def columnar_growth(file: Followed) -> Found:
    """All of a Parquet file, or nothing yet."""
    if not file.size:
        return file.whole(empty=True) if file.ended else file.nothing()
    try:
        with opened(file.path) as raw:
            groups = read_groups(pq.ParquetFile(raw))
    except (pa.ArrowException, OSError):
        if not file.final:
            return file.nothing(INCOMPLETE_PARQUET)
        return file.unusable(FileFault.NOT_PARQUET, file.size)
    entries = []
    for run in runs_of(file, groups):
        part, size = run.as_range(groups), run_bytes(groups, run)
        empty = part.start == part.end
        entries.append(
            file.entry(part if empty else with_clock_bounds(file, part), size, empty=empty)
        )
    return file.found(file.size, entries, closed=True)


def runs_of(file: Followed, groups: Sequence[Group]) -> Sequence[GroupRun]:
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
        starts = [INT_MIN, *range((low // wide + 1) * wide, high + 1, wide), INT_MAX + 1]
        for first, following in pairwise(starts):
            own = RowRange(column, first, following - 1)
            yield GroupRun(number, number + 1, None if own.is_all else own)


def run_bytes(groups: Sequence[Group], run: GroupRun) -> int:
    """About the bytes of a run: of a range, its share of the time of its row groups."""
    whole = sum(group.size for group in groups[run.start : run.end])
    if run.range is None:
        return whole
    held = [group.bounds[run.range.column] for group in groups[run.start : run.end]]
    low, high = min(one[0] for one in held), max(one[1] for one in held)
    first, last = max(run.range.first, low), min(run.range.last, high)
    return whole * (last + 1 - first) // (high + 1 - low)


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
