"""The growing files of the partitions of packets: records are scattered into buffers, buffers are
written.

In: a window of bytes with the places of records in it, and the partition of each record. Out: bytes
at the ends of N files. A file is opened for each write of a buffer and closed again, so that a
thousand partitions need no thousand open files.

What must stand before the records of a file or of a section of it is its heading. A partition gets
the heading when its first record with that heading comes; a heading that cannot stand inside of a
file begins a new one.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from terascope.connectors.packets.words import SLACK, Bytes, Ints, load64, store64
from terascope.diagnostic import OutputError, reason_of
from terascope.files import PRIVATE, make_folder, sync
from terascope.machine_code import INTEGER, column, compiled_for, output

MOST_BUFFERED: Final = 64 << 20
"""Bytes of all buffers together."""
LARGEST_BUFFER: Final = 1 << 17
"""Little enough for the buffers of some partitions to stay in a cache."""
SMALLEST_BUFFER: Final = 1 << 13


@dataclass(frozen=True)
class Heading:
    """The bytes that stand before records."""

    content: bytes
    suffix: str
    """The ending of the names of files that begin with it."""
    within: bool = False
    """Whether it may stand inside of a file of that suffix, behind other records."""


@dataclass
class OutputState:
    """How far the files of one partition have grown."""

    segment: int = -1
    """The number of the file that grows; -1: there is none yet."""
    suffix: str = ""
    size: int = 0
    tuples: int = 0
    closed_bytes: int = 0
    """The bytes of the files before."""
    heading: str = ""
    """The heading of the last record, in hexadecimal digits."""

    @property
    def name(self) -> str:
        return f"{self.segment:05}{self.suffix}"

    @property
    def bytes(self) -> int:
        return self.closed_bytes + self.size


def folder_name(number: int, count: int) -> str:
    """The folder of a partition; in the order of their names they are in order of their numbers."""
    return f"p{number:0{max(3, len(str(count - 1)))}}"


class Outputs:
    """The files of all partitions."""

    def __init__(self, folder: Path, states: Sequence[OutputState]) -> None:
        count = len(states)
        self.states = list(states)
        self.folders = [folder / folder_name(number, count) for number in range(count)]
        for one in self.folders:
            make_folder(one)
        room = min(max(MOST_BUFFERED // count, SMALLEST_BUFFER), LARGEST_BUFFER)
        self._buffers: NDArray[np.uint8] = np.empty((count, room + SLACK), np.uint8)
        self._fills: Ints = np.zeros(count, np.int64)
        self.tuples: Ints = np.array([one.tuples for one in states], np.int64)
        self._changed: set[int] = set()

    def path(self, number: int) -> Path:
        return self.folders[number] / self.states[number].name

    def add(
        self, heading: Heading, window: Bytes, starts: Ints, lengths: Ints, numbers: Ints
    ) -> None:
        """Append records to the partitions with these numbers, in order.

        Raises:
            OutputError: a file cannot be written.
        """
        self._put_headings(heading, numbers)
        done, count = 0, len(starts)
        while done < count:
            place = (window, starts, lengths, numbers, done)
            done = scatter(*place, self._buffers, self._fills, self.tuples)
            if done == count:
                return
            number, start, length = int(numbers[done]), int(starts[done]), int(lengths[done])
            self._flush(number)
            if length > self._buffers.shape[1] - SLACK:
                self._write(number, window[start : start + length].data)
                self.tuples[number] += 1
                done += 1

    def put_heading(self, number: int, heading: Heading) -> None:
        """Begin a file, or a section of a file, in a partition."""
        self._flush(number)
        state = self.states[number]
        if state.segment < 0 or state.suffix != heading.suffix or not heading.within:
            state.segment += 1
            state.closed_bytes += state.size
            state.suffix, state.size = heading.suffix, 0
        state.heading = heading.content.hex()
        self._write(number, memoryview(heading.content))

    def _put_headings(self, heading: Heading, numbers: Ints) -> None:
        wanted = heading.content.hex()
        lacking = [n for n, state in enumerate(self.states) if state.heading != wanted]
        if lacking:
            present = np.bincount(numbers, minlength=len(self.states))
            for number in lacking:
                if present[number]:
                    self.put_heading(number, heading)

    def flush(self) -> None:
        """Write everything that is buffered."""
        for number in np.flatnonzero(self._fills).tolist():
            self._flush(number)
        for state, tuples in zip(self.states, self.tuples.tolist(), strict=True):
            state.tuples = tuples

    def force(self) -> None:
        """Force everything that was written since the last time to disk."""
        for number in sorted(self._changed):
            sync(self.path(number))
        self._changed.clear()

    def _flush(self, number: int) -> None:
        fill = int(self._fills[number])
        if fill:
            self._write(number, self._buffers[number, :fill].data)
            self._fills[number] = 0

    def _write(self, number: int, content: memoryview) -> None:
        """Write at the recorded end of the file: what a process that died wrote beyond it is the
        same, and is written once more.
        """
        state, path = self.states[number], self.path(number)
        with written(path):
            file = os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE)
            try:
                for done in put_at(file, content, state.size):
                    state.size += done
            finally:
                os.close(file)
        self._changed.add(number)

    def cut(self) -> None:
        """Drop what lies beyond the recorded ends of the files."""
        for number, (folder, state) in enumerate(zip(self.folders, self.states, strict=True)):
            path = self.path(number)
            if state.segment >= 0 and path.exists() and path.stat().st_size > state.size:
                os.truncate(path, state.size)
            for extra in folder.iterdir():
                if segment_of(extra.name) > state.segment:
                    extra.unlink()


def segment_of(name: str) -> int:
    """The number of a file that a split made; -1: of any other file."""
    digits = name.partition(".")[0]
    return int(digits) if len(digits) == 5 and digits.isdigit() else -1


def put_at(file: int, content: memoryview, place: int) -> Iterator[int]:
    """Write all of it, and give the number of bytes after each step."""
    while content:
        done = os.pwrite(file, content, place)
        yield done
        content, place = content[done:], place + done


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Turn an error of writing a file into a clear line."""
    try:
        yield
    except OSError as problem:
        full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
        more = "; make room and split again" if full else ""
        raise OutputError(f"cannot write '{path}': {reason_of(problem)}{more}") from problem


@compiled_for(
    column(np.uint8), column(np.int64), column(np.int64), column(np.int64), INTEGER,
    output(np.uint8, 2), output(np.int64), output(np.int64),
)  # fmt: skip
def scatter(
    window: Bytes,
    starts: Ints,
    lengths: Ints,
    numbers: Ints,
    first: int,
    buffers: NDArray[np.uint8],
    fills: Ints,
    tuples: Ints,
) -> int:
    """Copy records from `first` on behind what the buffers of their partitions hold; the first one
    that does not fit, or their number. Copied by whole words: excess bytes are overwritten by the
    next record.
    """
    room = buffers.shape[1] - SLACK
    line = buffers.shape[1]
    flat = buffers.reshape(buffers.size)
    for i in range(first, len(starts)):
        number = numbers[i]
        to = fills[number]
        size = lengths[i]
        if to + size > room:
            return i
        place = number * line + to
        start = starts[i]
        for k in range(0, size, 32):
            one = load64(window, start + k)
            two = load64(window, start + k + 8)
            three = load64(window, start + k + 16)
            four = load64(window, start + k + 24)
            store64(flat, place + k, one)
            store64(flat, place + k + 8, two)
            store64(flat, place + k + 16, three)
            store64(flat, place + k + 24, four)
        fills[number] = to + size
        tuples[number] += 1
    return len(starts)
