"""Groups moved to disk for lack of memory: files that nothing can be left of.

In: groups, as bytes or in blocks. Out: the same again. The files have no names: a file is gone when
it is closed, or when its process ends, however that happens. Two forms of groups are spilled:
payloads (terascope.kernels.merge.payload) by their partition, in `Spill`, and rows of a table by
their epoch, in `SpilledGroups`. They differ for a reason: partials of a merge come in any order and
are merged by key, the groups of a task are wanted again epoch by epoch. An epoch of many groups is
read part by part: all rows of a group are in the same part, so that a part can be merged by itself.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BufferedRandom
from pathlib import Path
from typing import Final

import numpy as np

from terascope.diagnostic import OutputError, as_mistake
from terascope.kernels.columns.arrays import Bytes, Codes, Ints, Rows
from terascope.kernels.merge.float_ranges import has_ranges
from terascope.kernels.merge.groups import Block, in_order_of, largest, row_hash, rows_at
from terascope.kernels.tables.slots import Shape
from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.types import INT_MAX


class SpillFile:
    """Bytes appended to a file and read from any place of it.

    Raises:
        OutputError: the folder cannot be written, or is full.
    """

    def __init__(self, folder: Path) -> None:
        self.size = 0
        self._folder = folder
        self._file: BufferedRandom | None = None

    def append(self, data: bytes | memoryview) -> None:
        what = f"groups do not fit in memory and cannot be kept in '{self._folder}' meanwhile"
        with as_mistake(OutputError, what):
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            self._file.seek(0, 2)
            self.size += self._file.write(data)
            self._file.flush()

    def read(self, offset: int, size: int) -> Bytes:
        data = np.empty(size, np.uint8)
        if self._file is not None:
            self._file.seek(offset)
        if size and (self._file is None or self._file.readinto(data.data) < size):
            raise OutputError("groups that were kept on disk meanwhile are no longer there")
        return data

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self.size = None, 0


def temporary_file() -> SpillFile:
    return SpillFile(Path(tempfile.gettempdir()))


class Spill:
    """Payloads by partition, a file for each partition that has some."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self.bytes = 0
        self._files = [SpillFile(folder) for _ in range(partitions)]
        self._lengths: list[list[int]] = [[] for _ in range(partitions)]

    def append(self, partition: int, payload: bytes) -> None:
        self._files[partition].append(payload)
        self._lengths[partition].append(len(payload))
        self.bytes += len(payload)

    def partitions(self) -> Iterator[Iterator[bytes]]:
        """The payloads of every partition that has some; its file is closed after it was read."""
        for file, lengths in zip(self._files, self._lengths, strict=True):
            if lengths:
                yield self._payloads(file, lengths)
                file.close()

    @staticmethod
    def _payloads(file: SpillFile, lengths: list[int]) -> Iterator[bytes]:
        offset = 0
        for length in lengths:
            yield file.read(offset, length).tobytes()
            offset += length

    def close(self) -> None:
        for file in self._files:
            file.close()


WRITTEN_ROWS: Final = 1 << 14
LONG_RUN: Final = 1 << 12
"""The number of groups of one epoch from which on they are written in the order of their parts."""
TAKEN_ROWS: Final = 1 << 16
"""The approximate number of rows that are read at a time, unless one epoch has more."""
PARTS: Final = 64
ON_DISK: Final = 0
IN_MEMORY: Final = 32
"""Other bits of the hash, so that a part that was on disk can be partitioned again."""


@dataclass(frozen=True)
class SpilledBlock:
    """The position of one block of groups on disk; its rows are in order of their epochs."""

    offset: int
    epochs: Ints
    """The epoch of each run of groups."""
    ends: Ints
    edges: Mapping[int, Ints]
    """By the epoch of a long run, which is in the order of its parts: the start of each part."""
    reach: int
    """An upper bound of the sums of a group. It exceeds 64 bits also where FLOATs of several ranges
    are summed: such rows are combined above as well."""

    def places(self, first: int, last: int) -> tuple[int, int, int, int]:
        """The runs of the epochs from one to another, and their rows."""
        begin = int(np.searchsorted(self.epochs, first))
        end = int(np.searchsorted(self.epochs, last, "right"))
        start = int(self.ends[begin - 1]) if begin else 0
        return begin, end, start, int(self.ends[end - 1]) if end else 0

    def has(self, first: int, last: int) -> bool:
        begin, end, _, _ = self.places(first, last)
        return begin < end


class SpilledGroups:
    """The spilled groups of one query.

    Raises OutputError when the disk is full.
    """

    def __init__(self, shape: Shape, once: bool) -> None:
        """`once`: whether every group occurs only once in a lot."""
        self._shape = shape
        self._once = once
        self.written_bytes = 0
        """All bytes that were written."""
        self._file = temporary_file()
        self._lots: list[SpilledBlock] = []

    def __bool__(self) -> bool:
        return bool(self._lots)

    def spill(self, block: Block) -> None:
        """Write groups in order of their epochs."""
        offset, edges, done = self._file.size, {}, 0
        for run in np.flatnonzero(block.counts >= LONG_RUN).tolist():
            end = int(block.ends[run])
            start = end - int(block.counts[run])
            self._write(block.rows[done:start])
            rows = block.rows[start:end]
            order, parts = apart(rows, self._shape, PARTS, ON_DISK)
            self._write(rows, order)
            edges[int(block.epochs[run])] = parts
            done = end
        self._write(block.rows[done:])
        sums = [largest(block.rows[:, self._shape.slot(j)]) for j in self._shape.sums]
        reach = max(sums, default=0) * (1 if self._once else len(block.rows))
        if has_ranges(block.rows, self._shape):
            reach = INT_MAX + 1
        self._lots.append(
            SpilledBlock(offset, block.epochs.copy(), block.ends.copy(), edges, reach)
        )

    def _write(self, rows: Rows, order: Codes | None = None) -> None:
        for start in range(0, len(rows), WRITTEN_ROWS):
            some = rows[start : start + WRITTEN_ROWS]
            if order is not None:
                some = rows_at(rows, order[start : start + WRITTEN_ROWS])
            self._file.append(np.ascontiguousarray(some).data)
            self.written_bytes += some.nbytes

    @property
    def last(self) -> int:
        """The last spilled epoch; there must be one."""
        return max(int(lot.epochs[-1]) for lot in self._lots)

    def take(self, before: int | None) -> Iterator[tuple[list[Block], bool]]:
        """Read the groups of the epochs before one, or of all, in order: some epochs at a time, or
        a part of one that has many groups, with all partials of each group, and whether its merged
        sums might exceed 64 bits. They are forgotten once all of them were read.
        """
        epochs, counts = self._sizes(before)
        ends = np.cumsum(counts)
        at = 0
        while at < len(epochs):
            limit = TAKEN_ROWS + (int(ends[at - 1]) if at else 0)
            end = max(at + 1, int(np.searchsorted(ends, limit, "right")))
            first, last = int(epochs[at]), int(epochs[end - 1])
            lots = [lot for lot in self._lots if lot.has(first, last)]
            can_overflow = sum(lot.reach for lot in lots) > INT_MAX
            if first == last and counts[at] > TAKEN_ROWS:
                for part in range(PARTS):
                    blocks = [self._part(lot, first, part) for lot in lots]
                    yield [b for b in blocks if len(b.rows)], can_overflow
            else:
                yield [self._some(lot, first, last) for lot in lots], can_overflow
            at = end
        self._lots = [
            self._since(lot, before)
            for lot in self._lots
            if before is not None and lot.epochs[-1] >= before
        ]
        if not self._lots:
            self._file.close()

    def _sizes(self, before: int | None) -> tuple[Ints, Ints]:
        """The epochs before one, and the rows of each."""
        epochs = np.concatenate([lot.epochs for lot in self._lots])
        counts = np.concatenate([np.diff(lot.ends, prepend=0) for lot in self._lots])
        if before is not None:
            due = epochs < before
            epochs, counts = epochs[due], counts[due]
        found, place = np.unique(epochs, return_inverse=True)
        return found, np.bincount(place, counts, len(found)).astype(np.int64)

    def _some(self, lot: SpilledBlock, first: int, last: int) -> Block:
        begin, end, start, stop = lot.places(first, last)
        rows = self._read(lot, start, stop)
        return Block(lot.epochs[begin:end], lot.ends[begin:end] - start, rows)

    def _part(self, lot: SpilledBlock, epoch: int, part: int) -> Block:
        _, _, start, stop = lot.places(epoch, epoch)
        if epoch in lot.edges:
            begin, end = lot.edges[epoch][part : part + 2].tolist()
            return Block.of(epoch, self._read(lot, start + begin, start + end))
        rows = self._read(lot, start, stop)
        order, edges = apart(rows, self._shape, PARTS, ON_DISK)
        return Block.of(epoch, rows_at(rows, order[edges[part] : edges[part + 1]]))

    def _since(self, lot: SpilledBlock, epoch: int) -> SpilledBlock:
        """A lot without the epochs before one."""
        runs = int(np.searchsorted(lot.epochs, epoch))
        start = int(lot.ends[runs - 1]) if runs else 0
        offset, ends = lot.offset + start * self._shape.row_bytes, lot.ends[runs:] - start
        return replace(lot, offset=offset, epochs=lot.epochs[runs:], ends=ends)

    def _read(self, lot: SpilledBlock, begin: int, end: int) -> Rows:
        row_bytes = self._shape.row_bytes
        data = self._file.read(lot.offset + begin * row_bytes, (end - begin) * row_bytes)
        return data.view(np.int64).reshape(-1, self._shape.stride)


def arranged(block: Block, shape: Shape) -> Rows:
    """The rows of a block in the order in which they are written."""
    if not bool((block.counts >= LONG_RUN).any()):
        return block.rows
    rows = block.rows.copy()
    for run in np.flatnonzero(block.counts >= LONG_RUN).tolist():
        end = int(block.ends[run])
        start = end - int(block.counts[run])
        order, _ = apart(block.rows[start:end], shape, PARTS, ON_DISK)
        rows[start:end] = rows_at(block.rows[start:end], order)
    return rows


def parts_of(lots: Sequence[Rows], shape: Shape, parts: int) -> Iterator[list[Rows]]:
    """One list of rows in memory for every part."""
    ordered = [apart(rows, shape, parts, IN_MEMORY) for rows in lots]
    for part in range(parts):
        yield [
            rows_at(rows, order[edges[part] : edges[part + 1]])
            for rows, (order, edges) in zip(lots, ordered, strict=True)
        ]


def apart(rows: Rows, shape: Shape, parts: int, bits: int) -> tuple[Codes, Ints]:
    """The order of rows by a hash of their keys, and the start of each part. `bits`: the bits of
    the hash that decide, from this one on.
    """
    numbers = np.empty(len(rows), np.int32)
    number_parts(rows, shape.first_word, shape.first_slot, parts - 1, bits, numbers)
    return in_order_of(numbers, parts)


@compiled_for(column(np.int64, 2), INTEGER, INTEGER, INTEGER, INTEGER, output(np.int32))
def number_parts(
    rows: Rows, first_word: int, first_slot: int, last: int, bits: int, numbers: Codes
) -> None:
    """The part of each row. `last`: the number of the last part, a power of two less one."""
    for i in range(len(rows)):
        numbers[i] = (np.int64(row_hash(rows, i, first_word, first_slot)) >> bits) & last
