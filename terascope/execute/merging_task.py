"""The merge of partial groups, in a task or in the driver.

In: packed groups of several streams, all partials of each group. Out: their rows, written as parts
or packed for the high level, and the windows that are assembled from them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from terascope.execute.delivery import Delivery, Outgoing
from terascope.execute.merge import Merger
from terascope.execute.meter import Meter
from terascope.execute.rows.windows import Sequences
from terascope.functions.overflow import overflow_of
from terascope.kernels.merge.float_ranges import finished_blocks
from terascope.kernels.merge.groups import Block, MergedGroups
from terascope.physical.delivery import Sink, Target, TaskJoin


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
                for batch in meter.over(name, batches, lambda made: int(made.num_rows)):
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
        # What windows are put together from stands in memory beside the merger's own table.
        share = share // 3 if target.feeds else share
        folder = Path(tempfile.gettempdir())
        by_key = bool(target.feeds)
        return Merger(
            fields.shape, fields.key_types, share, folder, by_key=by_key, sums=fields.sums
        )
