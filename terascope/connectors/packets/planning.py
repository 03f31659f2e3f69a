"""Cutting capture files: where splits begin, and what times they hold.

In: a file's records, all of them, by the walk that reading makes too. Out: `Range`s, ranges that
start and end on records, each with the smallest and largest time of its packets and what a reader
must know where it starts.

Why every record header is walked: a reader that jumps into the middle of a file can only guess
where a record starts, and a capture of a file transfer may carry another capture in its payloads,
record after record, as long as one likes. The walk cannot be fooled, costs a small part of what
reading costs, and sees every time on its way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from terascope.connectors.base import Bounds, Edge, Range, ReadReport
from terascope.connectors.cutting import LARGEST, NO_STEP, CutRule, Cutter, TimedPart
from terascope.connectors.file_bytes import NO_END
from terascope.connectors.packets.extract import SECOND
from terascope.connectors.packets.records import empty_records
from terascope.connectors.packets.scan import Framing, RecordScan
from terascope.connectors.packets.window import SlidingWindow

NANOSECONDS: Final = {"time": SECOND, "timestamp": 1}
"""The clocks of packets, by the length of their ticks."""


def cutting(target_bytes: int, edge: Edge | None) -> CutRule:
    """The rule for cutting at a target size, with or without an edge."""
    target = max(target_bytes, 1)
    step = NO_STEP
    if edge is not None and edge.column in NANOSECONDS:
        step = (edge.often or edge.step) * NANOSECONDS[edge.column]
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
        offsets, times = records.offset[:count], records.timestamp[:count]
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
