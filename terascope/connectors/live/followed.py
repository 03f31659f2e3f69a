"""A file that is followed: its facts at one look, the entries that are made of it, and their times.

In: a file and its last position. Out: entries, and a `Found` with the position after them; `growth`
says which part of a file can be read. The times of rows come from one pass over the clock of a
table: a range of whole records becomes entries, cut where a record starts, by bytes and by the
clock, each with the smallest and largest time of its rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.compute as pc

from terascope.connectors import base
from terascope.connectors.base import Bounds, Column, Connector, Options, Range, ReadReport
from terascope.connectors.file_bytes import NO_END, is_gzip, read_chunks
from terascope.connectors.file_identity import FILE_OPTION
from terascope.connectors.live.journal import Entry, FileState, Found
from terascope.connectors.live.link import Link
from terascope.connectors.packets.planning import Cutter, TimedPart
from terascope.connectors.packets.words import Ints
from terascope.connectors.registry import FAULT_OPTION
from terascope.files import make_folder, open_file
from terascope.types import INT_MAX, Type

OFFSET_MASK: Final = (1 << base.FILE_SHIFT) - 1
TIMELESS: Final = -1


@dataclass(frozen=True)
class Followed:
    """A file that is looked at."""

    link: Link
    state: FileState
    size: int
    """The size of the file before anything was read."""
    settled: bool
    """Whether the file has not grown since the look before."""
    final: bool
    """Whether it seems to be finished: an incomplete record at its end is taken as it is."""
    ended: bool
    """Whether nothing will come any more, so that incomplete records stay incomplete."""

    @property
    def path(self) -> Path:
        return Path(self.state.path)

    @property
    def connector(self) -> Connector:
        return self.link.interface.connector

    @property
    def position(self) -> int:
        """The first byte that was not read yet."""
        return self.state.position

    def split(self, part: Range) -> base.Split:
        """A range of the file as a reader takes it."""
        return self.link.interface.split(self.path, self.state.ordinal, part)

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

    def unusable(self, fault: base.FileFault, position: int) -> Found:
        """An entry whose reader counts and names the file."""
        entry = self.entry(Range(0, 0, ((FAULT_OPTION, fault.value),)), self.size, empty=True)
        return self.found(position, [entry], closed=True)


def timed_entries(file: Followed, whole: Range) -> Iterator[Entry]:
    """A range of whole records in pieces of about the requested size."""
    cutter = Cutter(file.link.cut_rule, whole.start)
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
        if file.link.clock is not None and not part.is_empty and first == last:
            bounds = ((file.link.clock.column, part.smallest, part.largest),)
        # Nothing can be said of a piece that has a row without a time.
        empty = part.is_empty and bool(first == last)
        yield file.entry(Range(part.start, part.end, (), bounds), empty=empty)


def offsets_and_times(file: Followed, whole: Range) -> Iterator[tuple[Ints, Ints]]:
    """The start and the time of each record; TIMELESS for none, 0 for all without a clock."""
    clock, columns = file.link.clock, [Column(base.POSITION, Type.LLONG)]
    if clock is not None:
        columns.append(Column(clock.column, Type.LLONG, clock.unit))
    for batch in file.connector.read(file.split(whole), columns, ReadReport()):
        offset = batch.column(0).to_numpy() & OFFSET_MASK
        if clock is None:
            yield offset, np.zeros(len(offset), np.int64)
            continue
        times = pc.fill_null(batch.column(1), TIMELESS).to_numpy()
        yield offset, np.maximum(times, TIMELESS)  # before 1970: no time that splits can tell


def with_clock_bounds(file: Followed, part: Range) -> Range:
    """A range with the bounds of its clock, which are read if they are not known. It has none when
    a row has no time, or there are no rows.
    """
    clock = file.link.clock
    if clock is None or any(name == clock.column for name, _, _ in part.bounds):
        return part
    low, high = INT_MAX, TIMELESS
    for _, times in offsets_and_times(file, part):
        low, high = min(low, int(times.min())), max(high, int(times.max()))
    if not 0 <= low <= high:
        return part
    return replace(part, bounds=(*part.bounds, (clock.column, low, high)))


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
