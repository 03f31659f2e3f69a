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
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from terascope.connectors.base import Bounds, Edge, Range, ReadReport
from terascope.connectors.file_bytes import NO_END
from terascope.connectors.packets.memory import SlidingWindow
from terascope.connectors.packets.records import OFFSET, SECOND, TIMESTAMP, empty_records
from terascope.connectors.packets.scan import Framing, RecordScan
from terascope.connectors.packets.words import Ints
from terascope.machine_code import compiled

NO_STEP: Final = 0
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


@dataclass(frozen=True)
class CutRule:
    """When to cut: at a change of epoch when `least` bytes lie between it and the last such cut,
    anywhere when a part has `most`.
    """

    least: int
    most: int
    step: int
    """Nanoseconds of an epoch, or NO_STEP."""


@compiled
def next_cut(
    offset: Ints,
    timestamp: Ints,
    first: int,
    count: int,
    start: int,
    since: int,
    smallest: int,
    largest: int,
    least: int,
    most: int,
    step: int,
) -> tuple[int, int, int]:
    """The first of rows first..count to begin a new part, or `count`; and the smallest and largest
    time of the part that began at offset `start`, with the rows before that one. `since`: where
    the last change of epoch was cut.
    """
    epoch_end = LARGEST
    if step != NO_STEP and largest >= 0:
        epoch_end = largest - largest % step
        epoch_end = epoch_end + step if epoch_end <= LARGEST - step else LARGEST
    for i in range(first, count):
        now = timestamp[i]
        whole = offset[i] - since >= least and now >= epoch_end
        if largest >= 0 and (offset[i] - start >= most or whole):
            return i, smallest, largest
        smallest = min(smallest, now)
        if now > largest:
            largest = now
            if step != NO_STEP and (now >= epoch_end or epoch_end == LARGEST):
                epoch_end = now - now % step
                epoch_end = epoch_end + step if epoch_end <= LARGEST - step else LARGEST
    return count, smallest, largest


@dataclass
class Cutter:
    """Cuts the records of one file; `start` is where the part begins that is not cut off yet."""

    cut: CutRule
    start: int
    _since: int = field(init=False)
    """The position of the last cut at a change of epoch."""
    _smallest: int = field(default=LARGEST, init=False)
    _largest: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        self._since = self.start

    def parts(self, offsets: Ints, times: Ints) -> Iterator[tuple[int, TimedPart]]:
        """The parts that end among these records, each with the row that begins the next one."""
        row, cut = 0, self.cut
        while row < len(times):
            row, self._smallest, self._largest = next_cut(
                offsets, times, row, len(times), self.start, self._since,
                self._smallest, self._largest, cut.least, cut.most, cut.step,
            )  # fmt: skip
            if row == len(times):
                return
            part = self.last(int(offsets[row]))
            if cut.step != NO_STEP and int(times[row]) // cut.step > part.largest // cut.step:
                self._since = part.end
            self.start, self._smallest, self._largest = part.end, LARGEST, -1
            yield row, part

    def last(self, end: int) -> TimedPart:
        """The part that is not cut off yet, up to `end`."""
        return TimedPart(self.start, end, self._smallest, self._largest)


NANOSECONDS: Final = {"time": SECOND, "timestamp": 1}
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


def plan(
    window: SlidingWindow,
    framing: Framing,
    at: int,
    size: int,
    cut: CutRule,
    start: int = 0,
    options: tuple[tuple[str, str], ...] = (),
    stop: int = NO_END,
) -> Iterator[Range]:
    """The parts of a file of `size` bytes whose first record stands at `at`. A file that grows is
    planned from `start` on, where a reader must know `options`, and up to `stop`.
    """
    records = empty_records()
    scan = RecordScan(window, framing, at, stop, ReadReport())
    cutter = Cutter(cut, start)
    while not scan.done:
        latest = framing.latest
        count = scan.fill(records, records.capacity)
        offsets = records.numbers[OFFSET, :count]
        times = records.numbers[TIMESTAMP, :count]
        for row, part in cutter.parts(offsets, times):
            yield Range(part.start, part.end, options, bounds(part))
            options = framing.carried(int(times[row - 1]) if row else latest)
    last = cutter.last(size)
    yield Range(last.start, last.end, options, bounds(last))


def bounds(part: TimedPart) -> Bounds:
    """The times of a part in the units of both clocks; nothing of no packets."""
    if part.is_empty:
        return ()
    clocks = NANOSECONDS.items()
    return tuple((name, part.smallest // unit, part.largest // unit) for name, unit in clocks)
