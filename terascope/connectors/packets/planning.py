"""Cutting capture files: where splits begin, and what times they hold.

In: a file's records, all of them, by the walk that reading makes too. Out: `Part`s, ranges that
start and end on records, each with the smallest and largest time of its packets and what a reader
must know where it starts.

Why every record header is walked: a reader that jumps into the middle of a file can only guess
where a record starts, and a capture of a file transfer may carry another capture in its payloads,
record after record, as long as one likes. The walk cannot be fooled, costs a small part of what
reading costs, and sees every time on its way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from terascope.connectors.base import Edge, ReadReport
from terascope.connectors.packets.compiled import Ints
from terascope.connectors.packets.extract import SECOND
from terascope.connectors.packets.records import empty_records
from terascope.connectors.packets.scan import Framing, Scan
from terascope.connectors.packets.window import NO_END, Window
from terascope.machine_code import compiled

NO_STEP: Final = 0
LARGEST: Final = (1 << 63) - 1
EMPTY: Final = (LARGEST, -1)
"""The smallest and largest time of no packets."""
NANOSECONDS: Final = {"time": SECOND, "timestamp": 1}
"""The clocks of packets, by the length of their ticks."""


@dataclass(frozen=True)
class Part:
    """A range of a file, its options for the reader, and the bounds of its clocks."""

    start: int
    end: int
    options: tuple[tuple[str, str], ...]
    bounds: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Cutting:
    """When to cut: at a change of epoch when `least` bytes lie between it and the last such cut,
    anywhere when a part has `most`.
    """

    least: int
    most: int
    step: int
    """Nanoseconds of an epoch, or NO_STEP."""


def cutting(target_bytes: int, edge: Edge | None) -> Cutting:
    """How to cut for a target, with or without an edge to look for."""
    target = max(target_bytes, 1)
    step = NO_STEP
    if edge is not None and edge.column in NANOSECONDS:
        step = (edge.often or edge.step) * NANOSECONDS[edge.column]
    if not 0 < step <= LARGEST:
        return Cutting(target, target, NO_STEP)
    return Cutting(target // 2, target + target // 2, step)


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


def plan(
    window: Window,
    framing: Framing,
    at: int,
    size: int,
    cut: Cutting,
    start: int = 0,
    options: tuple[tuple[str, str], ...] = (),
    stop: int = NO_END,
) -> Iterator[Part]:
    """The parts of a file of `size` bytes whose first record stands at `at`. A file that grows is
    planned from `start` on, where a reader must know `options`, and up to `stop`.
    """
    records = empty_records()
    scan = Scan(window, framing, at, stop, ReadReport())
    since = start
    smallest, largest = EMPTY
    while not scan.done:
        latest = framing.latest
        count = scan.fill(records, records.capacity)
        row = 0
        while row < count:
            row, smallest, largest = next_cut(
                records.offset, records.timestamp, row, count, start, since, smallest, largest,
                cut.least, cut.most, cut.step,
            )  # fmt: skip
            if row == count:
                break
            here = int(records.offset[row])
            yield Part(start, here, options, bounds(smallest, largest))
            if (
                cut.step != NO_STEP
                and int(records.timestamp[row]) // cut.step > largest // cut.step
            ):
                since = here
            before = int(records.timestamp[row - 1]) if row else latest
            start, options = here, framing.carried(before)
            smallest, largest = EMPTY
    yield Part(start, size, options, bounds(smallest, largest))


def bounds(smallest: int, largest: int) -> tuple[tuple[str, int, int], ...]:
    """The times of a part as a split tells them; nothing of no packets."""
    if largest < 0:
        return ()
    return tuple((name, smallest // unit, largest // unit) for name, unit in NANOSECONDS.items())
