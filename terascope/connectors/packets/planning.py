"""Cutting a file of records in order of time: by bytes, and where an epoch ends.

In: the offset and the time of every record, batch by batch. Out: parts of the file that start and
end on records, each with its smallest and largest time and what a reader must know where it starts.
An epoch that lies in one part is complete there, so that its groups need no exchange.

Why every record header of a capture is walked: a reader that jumps into the middle of a file can
only guess where a record starts, and a capture of a file transfer may carry another capture in its
payloads, record after record, as long as one likes. The walk cannot be fooled, costs a small part
of what reading costs, and sees every time on its way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from terascope.connectors.base import TICK_NS, Bounds, Edge, Options, Range, ReadReport
from terascope.connectors.file_bytes import NO_END
from terascope.connectors.packets.memory import SlidingWindow
from terascope.connectors.packets.records import OFFSET, RECORD_ROWS, TIMESTAMP, empty_records
from terascope.connectors.packets.scan import Framing, RecordScan
from terascope.connectors.packets.words import Ints
from terascope.machine_code import compiled

NO_STEP: Final = 0
STUCK: Final = 2
"""Steps of a scan without movement that show that it needs more bytes."""
LARGEST: Final = (1 << 63) - 1


class TimedPart(NamedTuple):
    """Bytes of a file, and the smallest and largest time of the records in them."""

    start: int
    end: int
    smallest: int
    largest: int

    @property
    def is_empty(self) -> bool:
        return self.largest < 0


class CutRule(NamedTuple):
    """The rule for cutting: at a change of epoch when `least` bytes lie between it and the last
    such cut, anywhere when a part has `most`. Kernels take it as it is.
    """

    least: int
    most: int
    step: int
    """Nanoseconds of an epoch, or NO_STEP."""


@compiled
def next_cut(
    offsets: Ints, times: Ints, first: int, part: TimedPart, since: int, cut: CutRule
) -> tuple[int, int, int]:
    """The first row from `first` on to begin a new part, or the number of rows; and the smallest
    and largest time of the last part, `part`, with the rows before that one. `since`: where the
    last change of epoch was cut.
    """
    start, _, smallest, largest = part
    least, most, step = cut
    epoch_end = LARGEST
    if step != NO_STEP and largest >= 0:
        epoch_end = largest - largest % step
        epoch_end = epoch_end + step if epoch_end <= LARGEST - step else LARGEST
    for i in range(first, len(times)):
        now = times[i]
        whole = offsets[i] - since >= least and now >= epoch_end
        if largest >= 0 and (offsets[i] - start >= most or whole):
            return i, smallest, largest
        smallest = min(smallest, now)
        if now > largest:
            largest = now
            if step != NO_STEP and (now >= epoch_end or epoch_end == LARGEST):
                epoch_end = now - now % step
                epoch_end = epoch_end + step if epoch_end <= LARGEST - step else LARGEST
    return len(times), smallest, largest


class Cutter:
    """Cuts the records of one file, from `start` on."""

    def __init__(self, cut: CutRule, start: int) -> None:
        self._cut = cut
        self._since = start
        """The position of the last cut at a change of epoch."""
        self._part = TimedPart(start, start, LARGEST, -1)
        """The part that is not cut off yet."""

    def parts(self, offsets: Ints, times: Ints) -> Iterator[tuple[int, TimedPart]]:
        """The parts that end among these records, each with the row that begins the next one."""
        row, step = 0, self._cut.step
        while row < len(times):
            found = next_cut(offsets, times, row, self._part, self._since, self._cut)
            row, smallest, largest = found
            self._part = self._part._replace(smallest=smallest, largest=largest)
            if row == len(times):
                return
            part = self.last(int(offsets[row]))
            if step != NO_STEP and int(times[row]) // step > part.largest // step:
                self._since = part.end
            self._part = TimedPart(part.end, part.end, LARGEST, -1)
            yield row, part

    def last(self, end: int) -> TimedPart:
        """The part that is not cut off yet, up to `end`."""
        return self._part._replace(end=end)


NANOSECONDS: Final = {"time": TICK_NS["s"], "timestamp": TICK_NS["ns"]}
"""The clocks of packets, by the length of their ticks."""


def cutting(
    target_bytes: int, edge: Edge | None, ticks: Mapping[str, int] = NANOSECONDS
) -> CutRule:
    """The rule for cutting at a target size, with or without an edge of a column of `ticks`."""
    target = max(target_bytes, 1)
    step = NO_STEP
    if edge is not None and edge.column in ticks:
        step = (edge.often or edge.step) * ticks[edge.column]
    if not 0 < step <= LARGEST:
        return CutRule(target, target, NO_STEP)
    return CutRule(target // 2, target + target // 2, step)


class PlannedParts(NamedTuple):
    """The parts of a file up to its last complete record, and how to go on behind it."""

    parts: list[Range]
    end: int
    carried: Options
    """The options for a reader that starts at `end`."""
    is_complete: bool
    """Whether no incomplete record stands at `end`."""


def plan(
    window: SlidingWindow,
    framing: Framing,
    at: int,
    size: int,
    cut: CutRule,
    start: int = 0,
    options: Options = (),
) -> PlannedParts:
    """The parts of a file of `size` bytes whose first record stands at `at`. A file that grows is
    planned from `start` on, where a reader must know `options`; while its window is open-ended, an
    incomplete record at its end belongs to no part.
    """
    records = empty_records()
    scan = RecordScan(window, framing, at, NO_END, ReadReport())
    cutter = Cutter(cut, start)
    parts: list[Range] = []
    end, carried, stuck = start, options, 0
    while not scan.done and stuck < STUCK:
        before, latest = scan.position, framing.latest
        count = scan.fill(records, RECORD_ROWS)
        offsets = records.numbers[OFFSET, :count]
        times = records.numbers[TIMESTAMP, :count]
        for row, part in cutter.parts(offsets, times):
            parts.append(Range(part.start, part.end, options, bounds(part)))
            options = framing.carried(int(times[row - 1]) if row else latest)
        if count:
            end, carried = scan.position, framing.carried(framing.latest)
        is_stuck = window.is_dry and not window.final and scan.position == before
        stuck = stuck + 1 if is_stuck else 0
    is_complete = scan.position >= size and not scan.is_lost
    end = size if scan.done else end
    last = cutter.last(end)
    parts.append(Range(last.start, last.end, options, bounds(last)))
    return PlannedParts(parts, end, carried, is_complete)


def bounds(part: TimedPart) -> Bounds:
    """The times of a part in the units of both clocks; nothing of no packets."""
    if part.is_empty:
        return ()
    clocks = NANOSECONDS.items()
    return tuple((name, part.smallest // unit, part.largest // unit) for name, unit in clocks)
