"""Groups moved to disk for lack of memory: files that nothing can be left of.

In: groups, as bytes or in blocks. Out: the same again. The files have no names: a file is gone when
it is closed, or when its process ends, however that happens. Two forms of groups are spilled:
payloads (terascope.kernels.merge.payload) by their partition, in `Spill`, and rows of a table by
their epoch, in `SpilledGroups`. They differ for a reason: partials of a merge come in any order and
are merged by key, the groups of a task are wanted again epoch by epoch. An epoch of many groups is
read part by part: all rows of a group are in the same part, so that a part can be merged by itself.

The states of rows (terascope.kernels.merge.states) are in further files, in the order of the rows.
While a row is on disk, the word of a state says where the bytes of the state begin; they end where
those of the next row begin. So the memory of spilled groups does not grow with their number.
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
from numpy.typing import NDArray

from terascope.diagnostic import OutputError, as_mistake
from terascope.kernels.columns.arrays import Bytes, Codes, Ints, Rows
from terascope.kernels.merge.float_ranges import has_ranges
from terascope.kernels.merge.groups import Block, in_order_of, largest, row_hash, rows_at
from terascope.kernels.merge.states import (
    LOT_BYTES,
    RowStates,
    States,
    StoredStates,
    seen_rows,
)
from terascope.kernels.tables.slots import Shape
from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.sketches.base import bytes_of, packed_of
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
LONG_STATES: Final = 1 << 6
"""The same for groups with states, which may be some kilobytes each."""
TAKEN_ROWS: Final = 1 << 16
"""The approximate number of rows that are read at a time, unless one epoch has more."""
PARTS: Final = 1 << 10
"""The most parts of an epoch."""
PART_ROWS: Final = LONG_RUN >> 6
"""The fewest rows of a part, in the mean."""
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
    """By the epoch of a long run, which is in the order of PARTS parts: the start of some of them,
    which are equally far from each other."""
    reach: int
    """An upper bound of the sums of a group. It exceeds 64 bits also where FLOATs of several ranges
    are summed: such rows are combined above as well."""
    state_ends: tuple[int, ...] = ()
    """The end of the states of its last row, in the file of each."""
    state_bytes: int = 0

    def places(self, first: int, last: int) -> tuple[int, int, int, int]:
        """The runs of the epochs from one to another, and their rows."""
        begin = int(np.searchsorted(self.epochs, first))
        end = int(np.searchsorted(self.epochs, last, "right"))
        start = int(self.ends[begin - 1]) if begin else 0
        return begin, end, start, int(self.ends[end - 1]) if end else 0

    def has(self, first: int, last: int) -> bool:
        begin, end, _, _ = self.places(first, last)
        return begin < end

    def part_counts(self, epoch: int) -> Ints | NDArray[np.float64]:
        """The rows of each of PARTS parts of an epoch, as far as is known."""
        _, _, start, stop = self.places(epoch, epoch)
        if epoch not in self.edges:
            return np.full(PARTS, (stop - start) / PARTS)
        counts = np.diff(self.edges[epoch])
        return np.repeat(counts * (len(counts) / PARTS), PARTS // len(counts))


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
        self._state_files = [temporary_file() for _ in shape.states]
        self._lots: list[SpilledBlock] = []

    def __bool__(self) -> bool:
        return bool(self._lots)

    def spill(self, block: Block, states: RowStates[States] | None = None) -> None:
        """Write groups in order of their epochs. `states`: where the states of the rows are."""
        offset, edges, done = self._file.size, {}, 0
        before = sum(file.size for file in self._state_files)
        long = LONG_RUN if states is None else LONG_STATES
        for run in np.flatnonzero(block.counts >= long).tolist():
            end = int(block.ends[run])
            start = end - int(block.counts[run])
            self._write(block.rows[done:start], states)
            rows = block.rows[start:end]
            order, parts = apart(rows, self._shape, PARTS, ON_DISK)
            self._write(rows, states, order)
            edges[int(block.epochs[run])] = parts[:: PARTS // parts_for(len(rows))].copy()
            done = end
        self._write(block.rows[done:], states)
        sums = [largest(block.rows[:, self._shape.slot(j)]) for j in self._shape.sums]
        reach = max(sums, default=0) * (1 if self._once else len(block.rows))
        if has_ranges(block.rows, self._shape):
            reach = INT_MAX + 1
        ends = tuple(file.size for file in self._state_files)
        epochs, runs = block.epochs.copy(), block.ends.copy()
        lot = SpilledBlock(offset, epochs, runs, edges, reach, ends, sum(ends) - before)
        self._lots.append(lot)

    def _write(
        self, rows: Rows, states: RowStates[States] | None, order: Codes | None = None
    ) -> None:
        for start in range(0, len(rows), WRITTEN_ROWS):
            some = rows[start : start + WRITTEN_ROWS]
            if order is not None:
                some = rows_at(rows, order[start : start + WRITTEN_ROWS])
            if states is not None:
                some = self._write_states(some, states)
            self._file.append(np.ascontiguousarray(some).data)
            self.written_bytes += some.nbytes

    def _write_states(self, rows: Rows, states: RowStates[States]) -> Rows:
        """Rows with the places of their states in the files."""
        made, begin = rows.copy(), 0
        for end in states.lots(rows).tolist():
            lot = rows[begin:end]
            for (j, word, store), file in zip(states.places, self._state_files, strict=True):
                seen = seen_rows(lot, j)
                offsets, data = bytes_of(store.take(lot[seen, word]))
                sizes = np.zeros(len(lot), np.int64)
                sizes[seen] = np.diff(offsets)
                made[begin:end, word] = file.size + np.cumsum(sizes) - sizes
                content = data[int(offsets[0]) : int(offsets[-1])]
                file.append(np.ascontiguousarray(content).data)
                self.written_bytes += content.nbytes
            begin = end
        return made

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
        ends, most = np.cumsum(counts), self._most_rows()
        at = 0
        while at < len(epochs):
            limit = most + (int(ends[at - 1]) if at else 0)
            end = max(at + 1, int(np.searchsorted(ends, limit, "right")))
            first, last = int(epochs[at]), int(epochs[end - 1])
            lots = [lot for lot in self._lots if lot.has(first, last)]
            can_overflow = sum(lot.reach for lot in lots) > INT_MAX
            if first == last and counts[at] > most:
                for parts in part_ranges(lots, first, most):
                    states = RowStates.of(self._shape)
                    blocks = [self._part(lot, first, parts, states) for lot in lots]
                    yield [b for b in blocks if len(b.rows)], can_overflow
            else:
                states = RowStates.of(self._shape)
                yield [self._some(lot, first, last, states) for lot in lots], can_overflow
            at = end
        self._lots = [
            self._since(lot, before)
            for lot in self._lots
            if before is not None and lot.epochs[-1] >= before
        ]
        if not self._lots:
            for file in (self._file, *self._state_files):
                file.close()

    def _most_rows(self) -> int:
        """The number of rows that are read at a time."""
        rows = sum(int(lot.ends[-1]) for lot in self._lots)
        size = sum(lot.state_bytes for lot in self._lots)
        return max(PART_ROWS, min(TAKEN_ROWS, LOT_BYTES * rows // max(1, size)))

    def _sizes(self, before: int | None) -> tuple[Ints, Ints]:
        """The epochs before one, and the rows of each."""
        epochs = np.concatenate([lot.epochs for lot in self._lots])
        counts = np.concatenate([np.diff(lot.ends, prepend=0) for lot in self._lots])
        if before is not None:
            due = epochs < before
            epochs, counts = epochs[due], counts[due]
        found, place = np.unique(epochs, return_inverse=True)
        return found, np.bincount(place, counts, len(found)).astype(np.int64)

    def _some(self, lot: SpilledBlock, first: int, last: int, states: StoredStates | None) -> Block:
        begin, end, start, stop = lot.places(first, last)
        rows = self._read(lot, start, stop, states)
        return Block(lot.epochs[begin:end], lot.ends[begin:end] - start, rows, states)

    def _part(
        self, lot: SpilledBlock, epoch: int, parts: range, states: StoredStates | None
    ) -> Block:
        """The rows of an epoch that belong to some of PARTS parts."""
        _, _, start, stop = lot.places(epoch, epoch)
        edges = lot.edges.get(epoch)
        if edges is None:
            rows = self._read(lot, start, stop, states)
            order, edges = apart(rows, self._shape, PARTS, ON_DISK)
            return Block.of(
                epoch, rows_at(rows, order[edges[parts.start] : edges[parts.stop]]), states
            )
        each = PARTS // (len(edges) - 1)
        first, last = parts.start // each, -(-parts.stop // each)
        begin, end = start + int(edges[first]), start + int(edges[last])
        if parts.start % each or parts.stop % each:
            numbers = part_numbers(self._rows(lot, begin, end), self._shape, PARTS, ON_DISK)
            within = np.searchsorted(numbers, (parts.start, parts.stop)).tolist()
            begin, end = begin + within[0], begin + within[1]
        return Block.of(epoch, self._read(lot, begin, end, states), states)

    def _since(self, lot: SpilledBlock, epoch: int) -> SpilledBlock:
        """A lot without the epochs before one."""
        runs = int(np.searchsorted(lot.epochs, epoch))
        start = int(lot.ends[runs - 1]) if runs else 0
        offset, ends = lot.offset + start * self._shape.row_bytes, lot.ends[runs:] - start
        return replace(lot, offset=offset, epochs=lot.epochs[runs:], ends=ends)

    def _read(self, lot: SpilledBlock, begin: int, end: int, states: StoredStates | None) -> Rows:
        """Some rows of a lot. Their states are added to `states`."""
        if begin == end or states is None:
            return self._rows(lot, begin, end)
        tops = [*lot.state_ends]
        rows = self._rows(lot, begin, min(end + 1, int(lot.ends[-1])))
        if len(rows) > end - begin:
            tops = [int(rows[-1, word]) for _, word, _ in states.places]
            rows = rows[:-1]
        files = zip(states.places, self._state_files, tops, strict=True)
        for (j, word, store), file, top in files:
            seen = seen_rows(rows, j)
            starts = rows[:, word]
            first = int(starts[0])
            offsets = np.append(starts[seen], top) - first
            packed = packed_of(offsets, file.read(first, top - first))
            rows[:, word] = 0
            rows[seen, word] = store.add(packed)
        return rows

    def _rows(self, lot: SpilledBlock, begin: int, end: int) -> Rows:
        row_bytes = self._shape.row_bytes
        data = self._file.read(lot.offset + begin * row_bytes, (end - begin) * row_bytes)
        return data.view(np.int64).reshape(-1, self._shape.stride)


def part_ranges(lots: Sequence[SpilledBlock], epoch: int, most: int) -> Iterator[range]:
    """The parts of an epoch, as many at a time as have about `most` rows."""
    ends = np.cumsum(np.sum([lot.part_counts(epoch) for lot in lots], axis=0))
    begin = 0
    while begin < PARTS:
        wanted = most + (ends[begin - 1] if begin else 0)
        end = max(begin + 1, int(np.searchsorted(ends, wanted, "right")))
        yield range(begin, min(end, PARTS))
        begin = end


def parts_for(rows: int) -> int:
    """The number of parts of so many rows, a power of two."""
    return min(PARTS, 1 << max(0, (rows // PART_ROWS).bit_length() - 1))


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
    return in_order_of(part_numbers(rows, shape, parts, bits), parts)


def part_numbers(rows: Rows, shape: Shape, parts: int, bits: int) -> Codes:
    """The part of each row."""
    numbers = np.empty(len(rows), np.int32)
    number_parts(rows, shape.first_word, shape.first_slot, PARTS // parts, bits, numbers)
    return numbers


@compiled_for(column(np.int64, 2), INTEGER, INTEGER, INTEGER, INTEGER, output(np.int32))
def number_parts(
    rows: Rows, first_word: int, first_slot: int, each: int, bits: int, numbers: Codes
) -> None:
    """The part of each row. `each`: how many of PARTS parts are one, a power of two: parts are runs
    of smaller ones.
    """
    shift = 0
    while each >> shift > 1:
        shift += 1
    for i in range(len(rows)):
        part = (np.int64(row_hash(rows, i, first_word, first_slot)) >> bits) & (PARTS - 1)
        numbers[i] = part >> shift
