"""Merging tasks: partial groups merged, leftover rows joined, in a task or in the driver.

In: packed groups of several streams, all of those that belong together; the packed rows of both
sides of task joins that no task could join by itself. Out: rows, written as parts or packed for
Spark, and the windows that are made of them. The leftover rows at the ends of the tasks are few,
and one task joins them faster than Spark makes columns of them. The high level joins many.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.execute.delivery import Delivery
from terascope.execute.merge import Merger
from terascope.execute.reports import Meter, Outgoing
from terascope.execute.results.parts import Part, write_part
from terascope.execute.rows.collect import Sequences, plain
from terascope.execute.rows.task_joins import MEMORY_SHARE, joined
from terascope.functions.overflow import overflow_of
from terascope.kernels.merge.float_ranges import finished_blocks
from terascope.kernels.merge.groups import Block, MergedGroups
from terascope.kernels.merge.payload import unpack_tuples
from terascope.physical.delivery import Side, Sink, Target, TaskJoin


@dataclass(frozen=True)
class Merging:
    """Merges the partials of all streams that reached one partition."""

    targets: Mapping[int, Target]
    sink: Sink | None
    memory_bytes: int
    joins: tuple[TaskJoin, ...] = ()

    def merged(self, packed: Iterable[tuple[int, bytes]]) -> Iterator[Outgoing]:
        """Merge and deliver. `packed`: streams and their packed groups."""
        meter = Meter()
        delivery = Delivery(self.targets, self.sink, 0, self.joins, meter=meter)
        mergers: dict[int, Merger] = {}
        for number, payload in packed:
            if number not in mergers:
                mergers[number] = self.merger(number)
            with meter.timing(f"merge {self.targets[number].name}"):
                mergers[number].add(payload)
        for number in sorted(mergers):
            name, merger = f"merge {self.targets[number].name}", mergers.pop(number)
            meter.add(name, spilled_bytes=merger.spilled_bytes)
            with overflow_of(self.targets[number].user):
                for groups in meter.over(name, merger.results()):
                    yield from self.delivered(number, groups, delivery, meter)
        yield from delivery.close()
        yield Outgoing(-1, 0, "counters", None, json.dumps(meter.report()))

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

    def merger(self, number: int, at_once: int | None = None) -> Merger:
        """A merger of the groups of a stream. `at_once`: the number of mergers that share the
        memory; None: one for every stream.
        """
        target = self.targets[number]
        fields = target.groups
        assert fields is not None
        streams = at_once or sum(t.groups is not None for t in self.targets.values())
        share = max(1 << 24, self.memory_bytes // streams)
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
        for pairing in self.joins:
            sides = [together(rows.pop(side.rest, []), side) for side in pairing.sides]
            made = joined(pairing, sides[0], sides[1])
            yield write_part(self.sink, pairing.query, pairing.fields, made)


def together(batches: Sequence[pa.RecordBatch], side: Side) -> pa.RecordBatch:
    if batches:
        return pa.concat_batches([plain(batch) for batch in batches])
    empty = [pa.array([], arrow_type(f.type)) for f in side.fields]
    return pa.RecordBatch.from_arrays(empty, [f.name for f in side.fields])
