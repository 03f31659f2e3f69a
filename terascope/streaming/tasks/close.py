"""Closing slices: the partial groups of all micro-batches are merged, and rows of queries written.

In: the segments of the slices that close. Out: reports of the parts of queries that tasks write,
and of the segments of rows that other queries read. Each destination is a task of its own; no
partial passes through the JVM.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from terascope.execute.delivery import Delivery, Outgoing
from terascope.execute.merge import Merger
from terascope.execute.merging_task import Merging
from terascope.execute.meter import Meter
from terascope.functions.overflow import overflow_of
from terascope.physical.delivery import Sink, Target
from terascope.physical.stream.slice_streams import SliceValue
from terascope.streaming.closing import ClosingSlices
from terascope.streaming.engine import Report
from terascope.streaming.state.segments import (
    Layouts,
    Segment,
    SegmentWriter,
    Stored,
    groups_between,
    read_segment,
)

MEMORY_PARTS: Final = 4
"""The divisor of a task's memory for one merge; streams are merged one after the other."""


@dataclass(frozen=True)
class CloseSlices:
    """The slices of one destination that close, or whose partials are only compacted."""

    targets: Mapping[int, Target]
    stored: Mapping[int, Stored]
    sink: Sink
    store: str
    work: tuple[ClosingSlices, ...]
    layouts: Layouts = field(default_factory=Layouts)
    starts: Mapping[str, SliceValue] = field(default_factory=dict)
    """For new queries: the first slice of which they have all tuples."""

    def __call__(self) -> Iterator[Report]:
        meter = Meter()
        merging = Merging(self.targets, self.sink, self.sink.memory_bytes)
        delivery = Delivery(self.targets, self.sink, 0, starts=self.starts, meter=meter)
        folder = Path(self.store)
        with SegmentWriter(folder) as writer:
            for slices in self.work:
                number = slices.number
                merger = merging.merger(number, MEMORY_PARTS)
                for segment in slices.segments:
                    payload = self.payload(number, folder, segment)
                    for some in groups_between(payload, slices.low, slices.high):
                        merger.add(some)
                if slices.together:
                    self.keep(merger, slices, writer)
                    continue
                with overflow_of(self.targets[number].user):
                    merged = meter.over(f"merge {self.targets[number].name}", merger.results())
                    for groups in merged:
                        rows = merging.delivered(number, groups, delivery, meter)
                        yield from store_payloads(rows, self.stored, writer)
            yield from store_payloads(delivery.close(), self.stored, writer)
            writer.close()
        yield from writer.reports()
        yield "measures", json.dumps(meter.figures)

    def payload(self, number: int, folder: Path, segment: Segment) -> bytes:
        how, fields = self.stored[number], self.targets[number].groups
        assert fields is not None
        payload = read_segment(folder, segment)
        return self.layouts.groups(payload, segment.layout, how.texts, len(fields.keys))

    def keep(self, merger: Merger, slices: ClosingSlices, writer: SegmentWriter) -> None:
        """Store the merged partials of slices that stay open."""
        for payload in merger.partials():
            writer.append(self.stored[slices.number], "groups", slices.destination, payload)


def store_payloads(
    rows: Iterator[Outgoing], stored: Mapping[int, Stored], writer: SegmentWriter
) -> Iterator[Report]:
    """Write the payloads among the output of a task to the store, and yield all other reports."""
    for row in rows:
        if row.kind in ("groups", "rows"):
            assert row.payload is not None
            writer.append(stored[row.stream], row.kind, row.destination, row.payload)
        elif row.told is not None:
            yield row.kind, row.told
