"""Merging the partials of all workers into groups (paper 1, 3.2: the super-aggregate), in a task or
in the driver.

In: payloads (terascope.kernels.merge.payload) of several streams, all of those that belong
together; the packed rows of both sides of task joins that no task could join by itself. Out: every
group once, epoch by epoch, with the codes of the merger's own dictionaries, delivered as rows with
the windows that are made of them; an integer sum that exceeds 64 bits is a mistake. A group with
sums of extraordinary FLOATs has a row for each of their ranges
(terascope.kernels.merge.float_ranges). The leftover rows at the ends of the tasks are few, and one
task joins them faster than Spark makes columns of them. The high level joins many.

Groups that do not fit into the memory are spilled as payloads, in a few files by fresh bits of a
hash; each file is merged later by a merger of its own, which may spill again: any number of groups
is merged.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from terascope.execute.delivery import Delivery
from terascope.execute.held_payloads import by_stream
from terascope.execute.reading_task import addressed
from terascope.execute.reports import Meter, Outgoing
from terascope.execute.results.parts import Part, write_part
from terascope.execute.rows.collect import Sequences
from terascope.execute.rows.steps import batch_of
from terascope.execute.rows.task_joins import MEMORY_SHARE, joined
from terascope.execute.spill import Spill
from terascope.functions.overflow import SUM, Overflow, overflow_of
from terascope.kernels.columns.arrays import Codes, Ints, give_back
from terascope.kernels.columns.dictionary import Dictionary, dictionary_for
from terascope.kernels.merge.float_ranges import finished_blocks
from terascope.kernels.merge.groups import NO_EPOCH, Block, MergedGroups
from terascope.kernels.merge.merge_table import (
    STRIP,
    MergeTable,
    fits,
    order_by_epoch,
    put_code,
    take_rows,
    wide_shape,
)
from terascope.kernels.merge.payload import (
    PAYLOAD_ROWS,
    Unpacked,
    pack,
    runs_of,
    unpack,
    unpack_tuples,
)
from terascope.kernels.merge.states import RowStates
from terascope.kernels.tables.slots import Shape
from terascope.physical.delivery import Sink, Target, TaskJoin
from terascope.types import Type

BLOCK_ROWS: Final = 1 << 16
SPILL_PARTS: Final = 16
FEW_ROWS: Final = 1 << 11
"""Fewer rows are not worth a file, however small the memory."""

FEW_STATES: Final = 1 << 6
"""The same for rows with states, which may be some kilobytes each."""

DEEPEST: Final = 8
"""The deepest level of spilling; each level has sixteen times as many files."""


@dataclass(eq=False)
class Merger:
    """Takes payloads of one aggregation in any order, then emits its groups."""

    shape: Shape
    key_types: Sequence[Type]
    memory_bytes: int
    folder: Path
    level: int = 0
    by_key: bool = False
    """Each item of `results` has all epochs of its groups."""
    sums: Sequence[str] = ()
    """The text of each slot that is a sum of integers, for messages."""

    def __post_init__(self) -> None:
        self._wide = wide_shape(self.shape)
        self._strip: Ints = np.empty((STRIP, self._wide.stride), np.int64)
        self._spill: Spill | None = None
        self._start()

    @property
    def spilled_bytes(self) -> int:
        return self._spill.bytes if self._spill else 0

    def _start(self) -> None:
        self._states = RowStates.of(self.shape)
        self._table = MergeTable(self.shape, self._states)
        self._dictionaries = [dictionary_for(type) for type in self.key_types]
        self._epochs = dictionary_for(Type.LLONG)
        self._empty_bytes = self._dictionary_bytes()

    def _dictionary_bytes(self) -> int:
        return sum(d.memory_bytes for d in (*self._dictionaries, self._epochs))

    # ---- taking payloads -------------------------------------------------------------------------

    def add(self, payload: bytes) -> None:
        """Take the partials of a payload.

        Raises OutputError when the disk is full.
        """
        unpacked = unpack(payload)
        if not self._has_room(self._table.memory_bytes, unpacked):
            self._to_disk()
        keys, slots = self._encoded(unpacked), self._numbered(unpacked, 0)
        for start in range(0, unpacked.rows, STRIP):
            count = min(STRIP, unpacked.rows - start)
            self._fill_strip(unpacked, keys, slots, start, start + count)
            at = self._table.take_in(self._strip, count, 0)
            while at < count:
                if self._has_room(self._table.next_bytes):
                    self._table.grow()
                else:
                    self._to_disk()
                    keys, slots = self._encoded(unpacked), self._numbered(unpacked, start + at)
                    self._fill_strip(unpacked, keys, slots, start, start + count)
                at = self._table.take_in(self._strip, count, at)
        if not self._has_room(self._table.memory_bytes):
            self._to_disk()

    def _encoded(self, unpacked: Unpacked) -> list[tuple[Codes, Codes]]:
        """For each key, the epoch last: indices, and the code of each value."""
        keys = [
            (indices, dictionary.encode(values))
            for (indices, values), dictionary in zip(unpacked.keys, self._dictionaries, strict=True)
        ]
        epochs = runs_of(unpacked, self._epochs.encode(unpacked.epochs))
        return [*keys, (epochs, np.arange(len(self._epochs), dtype=np.int32))]

    def _numbered(self, unpacked: Unpacked, since: int) -> list[Ints]:
        """The words of each slot; the states of the rows from `since` on are stored."""
        words: list[Ints] = []
        stores = iter(() if self._states is None else self._states.stores)
        for j, slot in enumerate(unpacked.slots):
            if isinstance(slot, np.ndarray):
                words.append(slot)
                continue
            seen = unpacked.state >> np.int64(j + 1) & 1 != 0
            seen[:since] = False
            numbers = np.zeros(unpacked.rows, np.int64)
            numbers[seen] = next(stores).add(slot.filter(pa.array(seen)))
            words.append(numbers)
        return words

    def _fill_strip(
        self,
        unpacked: Unpacked,
        keys: Sequence[tuple[Codes, Codes]],
        slots: Sequence[Ints],
        start: int,
        end: int,
    ) -> None:
        wide, strip = self._wide, self._strip[: end - start]
        strip[:, 0] = unpacked.state[start:end]
        for k, (indices, meaning) in enumerate(keys):
            put_code(strip, 1 + k // 2, k % 2 == 0, indices[start:end], meaning)
        for j, words in enumerate(slots):  # high words stand right after the slots
            strip[:, wide.slot(j)] = words[start:end]
        if len(slots) == len(self.shape.slots):
            for high, slot in enumerate(self.shape.sums, len(self.shape.slots)):
                strip[:, wide.slot(high)] = slots[slot][start:end] >> 63

    def _has_room(self, table_bytes: int, coming: Unpacked | None = None) -> bool:
        """Whether a table of this size fits beside the dictionaries, as they are or with the next
        payload. As much memory again is reserved for growing dictionaries and tables and for rows
        that are sorted to be packed.
        """
        known = self._dictionary_bytes() if coming is None else self._bytes_with(coming)
        states = 0 if self._states is None else self._states.memory_bytes
        few = FEW_ROWS if self._states is None else FEW_STATES
        small = len(self._table) <= few or self.level >= DEEPEST
        return small or 3 * (table_bytes + known + states - self._empty_bytes) <= self.memory_bytes

    def _bytes_with(self, coming: Unpacked) -> int:
        new = [len(values) for _, values in coming.keys] + [len(coming.epochs)]
        pairs = zip((*self._dictionaries, self._epochs), new, strict=True)
        return sum(dictionary.bytes_with(more) for dictionary, more in pairs)

    # ---- giving groups ---------------------------------------------------------------------------

    def results(self) -> Iterator[MergedGroups]:
        """All groups. The blocks of one `Groups` have to be read before the next `Groups`; the
        merger is empty afterwards.

        Raises:
            ValueMistake: a sum is too large.
            OutputError: there is no room on disk for what memory does not hold.
        """
        for merger in self._combined():
            several = merger._table.has_any([*map(self._wide.slot, self.shape.ranges)])
            yield MergedGroups(merger._dictionaries, merger._blocks(self.shape), several)

    def partials(self) -> Iterator[bytes]:
        """All groups as payloads that a merger takes, for groups that are not complete yet: each
        once, with sums that may still be too large. The merger is empty afterwards.

        Raises:
            OutputError: there is no room on disk for what memory does not hold.
        """
        for blocks, dictionaries, shape in self.partial_blocks():
            for _, payload in pack(blocks, dictionaries, shape, 1):
                yield payload

    def partial_blocks(self) -> Iterator[tuple[Iterator[Block], Sequence[Dictionary], Shape]]:
        """The same groups as blocks of rows, with their dictionaries and their shape."""
        shape = self.shape.with_high_words
        for merger in self._combined():
            yield merger._blocks(shape), merger._dictionaries, shape

    def _combined(self) -> Iterator[Merger]:
        """This merger, or one for each file of spilled groups, with every group once; each is
        empty when the next is asked for.
        """
        if self._spill is None:
            if len(self._table):
                self._table.combine()
                yield self
                self._start()
            return
        self._to_disk()
        try:
            for payloads in self._spill.partitions():
                merger = replace(self, level=self.level + 1)
                for payload in payloads:
                    merger.add(payload)
                yield from merger._combined()
        finally:
            self._spill.close()
            self._spill = None

    def _blocks(self, shape: Shape) -> Iterator[Block]:
        """The rows in the order of their epochs, as rows of a shape: this one's, or the one with
        high words.
        """
        rows, wide, odd = self._table.rows, self._wide, shape.keys % 2 == 1
        order, edges, epochs = self._by_epoch()
        used = np.diff(edges) > 0
        runs = Block(epochs[used], edges[1:][used], order.reshape(-1, 1), self._states)
        for start in range(0, len(order), BLOCK_ROWS):
            some = order[start : start + BLOCK_ROWS]
            if shape == self.shape:
                self._check_sums(some)
            target = np.empty((len(some), shape.stride), np.int64)
            take_rows(rows, some, shape.words, odd, wide.first_slot, target)
            yield replace(runs.between(start, start + len(some)), rows=target)

    def _by_epoch(self) -> tuple[Ints, Ints, Ints]:
        """Row numbers in the order of their epochs, the start of each epoch, and the epochs."""
        values = self._epochs.values().fill_null(NO_EPOCH).to_numpy()
        ranked = np.lexsort((values, values == NO_EPOCH))  # NULL comes last
        ranks = np.empty(len(ranked), np.int32)
        ranks[ranked] = np.arange(len(ranked), dtype=np.int32)
        edges = np.zeros(len(ranked) + 1, np.int64)
        table, upper = self._table, self.shape.keys % 2 == 0
        order = np.empty(len(table), np.int64)
        order_by_epoch(
            table.rows, table.fills, table.capacity, self._wide.words, upper, ranks, edges, order
        )
        return order, edges, values[ranked]

    def _check_sums(self, order: Ints) -> None:
        wide = self._wide
        for high, slot in enumerate(self.shape.sums, len(self.shape.slots)):
            if not fits(self._table.rows, order, wide.slot(slot), wide.slot(high)):
                raise Overflow(self.sums[slot] if self.sums else SUM)

    # ---- more than memory ------------------------------------------------------------------------

    def _to_disk(self) -> None:
        """Spill everything; codes and dictionaries begin anew."""
        if self._spill is None:
            self._spill = Spill(self.folder, SPILL_PARTS)
        self._table.combine()
        share = self.memory_bytes // (8 * self._wide.row_bytes)
        most_rows = max(FEW_ROWS // SPILL_PARTS, min(PAYLOAD_ROWS, share))
        shape, blocks = self.shape.with_high_words, self._blocks(self.shape.with_high_words)
        seed = self.level + 1
        packed = pack(blocks, self._dictionaries, shape, SPILL_PARTS, seed, most_rows, self.by_key)
        for part, payload in packed:
            self._spill.append(part, payload)
        self._start()
        give_back()


@dataclass(frozen=True)
class Merging:
    """Merges the partials of all streams that reached one partition."""

    targets: Mapping[int, Target]
    sink: Sink | None
    memory_bytes: int
    joins: tuple[TaskJoin, ...] = ()

    def merged(self, packed: Iterable[tuple[int, bytes]]) -> Iterator[Outgoing]:
        meter = Meter()
        delivery = Delivery(self.targets, self.sink, 0, self.joins, meter=meter)
        with delivery:
            for number, merger in self._filled(packed, "merge", meter):
                name = f"merge {self.targets[number].name}"
                with overflow_of(self.targets[number].user):
                    for groups in meter.over(name, merger.results()):
                        yield from self.delivered(number, groups, delivery, meter)
            yield from delivery.close()
        yield Outgoing(-1, 0, "counters", None, json.dumps(meter.report()))

    def combined(
        self, packed: Iterable[tuple[int, bytes]], destinations: int
    ) -> Iterator[Outgoing]:
        """The partials of several tasks of one host as fewer ones, before they leave the host
        (paper 2, 5.2.2).
        """
        meter = Meter()
        for number, merger in self._filled(packed, "combine", meter):
            target = self.targets[number]
            name = f"combine {target.name}"
            for blocks, dictionaries, shape in merger.partial_blocks():
                some = list(blocks)
                meter.add(name, given=sum(len(block.rows) for block in some))
                for row in addressed(number, target, some, dictionaries, shape, destinations):
                    meter.add(name, exchanged_bytes=len(row.payload or b""))
                    yield row
        yield Outgoing(-1, 0, "counters", None, json.dumps(meter.report()))

    def _filled(
        self, packed: Iterable[tuple[int, bytes]], operator: str, meter: Meter
    ) -> Iterator[tuple[int, Merger]]:
        """Give a merger with all partials of a stream, one stream after the other, so that each has
        the whole memory.
        """
        for number, payloads in by_stream(packed):
            name, merger = f"{operator} {self.targets[number].name}", self.merger(number)
            for payload in payloads:
                with meter.timing(name):
                    merger.add(payload)
            meter.add(name, spilled_bytes=merger.spilled_bytes)
            yield number, merger

    def delivered(
        self, number: int, groups: MergedGroups, delivery: Delivery, meter: Meter
    ) -> Iterator[Outgoing]:
        """Deliver groups, and the windows that are assembled from them."""
        target = self.targets[number]
        blocks: Iterable[Block] = list(groups.blocks) if target.feeds else groups.blocks
        assert target.groups is not None
        several = groups.several and not target.merged_above
        for block in finished_blocks(blocks, target.groups.shape, several):
            meter.add(f"merge {target.name}", given=len(block.rows))
            yield from delivery.take_groups(number, block, groups.dictionaries)
        if target.feeds:
            sequences = Sequences(list(blocks), target.groups, target.feeds[0][1].vector.end)
            for stream, windows in target.feeds:
                wanted = [f.name for f in self.targets[stream].fields]
                name = f"windows {self.targets[stream].name}"
                batches = sequences.batches(windows, groups.dictionaries)
                for batch in meter.over(name, batches):
                    meter.add(name, given=batch.num_rows)
                    yield from delivery.take(stream, batch.select(wanted))

    def merger(self, number: int, at_once: int = 1) -> Merger:
        """A merger of the groups of a stream. `at_once`: the number of mergers that share the
        memory.
        """
        target = self.targets[number]
        fields = target.groups
        assert fields is not None
        share = max(1 << 24, self.memory_bytes // at_once)
        by_key = bool(target.feeds)
        # What windows are put together from stands in memory beside the merger's own table.
        share = share // 3 if by_key else share
        folder = Path(tempfile.gettempdir())
        return Merger(fields.shape, fields.key_types, share, folder, 0, by_key, fields.sums)


def small_leftovers(sizes: Mapping[str, int], memory_bytes: int) -> list[str]:
    """The queries whose leftover rows fit into the memory of one task, by the bytes of each."""
    chosen: list[str] = []
    free = memory_bytes // MEMORY_SHARE
    for query, size in sorted(sizes.items(), key=lambda item: item[1]):
        free -= size
        if free < 0:
            break
        chosen.append(query)
    return chosen


@dataclass(frozen=True)
class LeftoverJoin:
    """Joins the leftover rows of all tasks, each task join at once."""

    joins: tuple[TaskJoin, ...]
    sink: Sink

    def parts(self, packed: Iterable[tuple[int, bytes]]) -> Iterator[Part]:
        """The parts of the joins. `packed`: streams and their packed rows."""
        rows: dict[int, list[pa.RecordBatch]] = {}
        for stream, payload in packed:
            rows.setdefault(stream, []).extend(unpack_tuples(payload))
        for join in self.joins:
            sides = [batch_of(rows.pop(side.leftovers, []), side.fields) for side in join.sides]
            made = joined(join, sides[0], sides[1])
            yield write_part(self.sink, join.query, join.fields, made)
