"""Closing slices: partial groups of all micro-batches are merged, and their queries' rows written.

In: for each destination the segments of the streams whose slices close. Out: told rows: the parts
of queries that tasks finish, and the segments of closed rows that the high level reads. One Spark
job, a task for each destination; no raw row and no partial passes through the JVM.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from terascope.execute.delivery import Delivery
from terascope.execute.merge import Merger
from terascope.functions.overflow import overflow_of
from terascope.kernels.merge.float_ranges import finished_blocks
from terascope.physical.delivery import Sink, Target
from terascope.spark.stream.task import TOLD, Stored, kept, told_row
from terascope.spark.worker import working
from terascope.streaming.closing import Slices
from terascope.streaming.state.layouts import Layouts
from terascope.streaming.state.segments import (
    Segment,
    SegmentWriter,
    SliceValue,
    groups_between,
    read_segment,
)

LEAST_BYTES = 1 << 24
"""Of memory that a merge gets, however many streams there are."""


@dataclass(frozen=True)
class Closing:
    """Merges in the tasks."""

    targets: Mapping[int, Target]
    stored: Mapping[int, Stored]
    sink: Sink
    store: str
    memory_bytes: int
    work: Mapping[int, tuple[Slices, ...]]
    """By destination."""
    layouts: Layouts = field(default_factory=Layouts)
    starts: Mapping[str, SliceValue] = field(default_factory=dict)
    """Queries that are new, and the first slice each of them has a whole."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with working():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for told in self.closed(self.work[number]):
                        yield told_row(*told)

    def closed(self, work: Sequence[Slices]) -> Iterator[tuple[str, str]]:
        delivery = Delivery(self.targets, self.sink, 0, starts=self.starts)
        folder = Path(self.store)
        with SegmentWriter(folder) as writer:
            for slices in work:
                merger = self.merger(slices.number)
                for segment in slices.segments:
                    payload = self.payload(slices.number, folder, segment)
                    for some in groups_between(payload, slices.low, slices.high):
                        merger.add(some)
                if slices.together:
                    self.keep(merger, slices, writer)
                    continue
                target = self.targets[slices.number]
                assert target.groups is not None
                with overflow_of(target.user):
                    for groups in merger.results():
                        several = groups.several and not target.merged_above
                        for block in finished_blocks(groups.blocks, target.groups.shape, several):
                            rows = delivery.take_groups(slices.number, block, groups.dictionaries)
                            yield from kept(rows, self.stored, writer)
            yield from kept(delivery.close(), self.stored, writer)
            writer.close()
        yield from writer.told()

    def payload(self, number: int, folder: Path, segment: Segment) -> bytes:
        how, fields = self.stored[number], self.targets[number].groups
        assert fields is not None
        payload = read_segment(folder, segment)
        return self.layouts.groups(payload, segment.layout, how.texts, len(fields.keys))

    def keep(self, merger: Merger, slices: Slices, writer: SegmentWriter) -> None:
        """Slices that stay open: fewer partials of them go back to the store."""
        how = self.stored[slices.number]
        for payload in merger.partials():
            writer.append(
                how.key, "groups", slices.destination, payload, "epoch", how.shelf, how.layout
            )

    def merger(self, number: int) -> Merger:
        fields = self.targets[number].groups
        assert fields is not None
        share = max(LEAST_BYTES, self.memory_bytes // 4)
        folder = Path(tempfile.gettempdir())
        return Merger(fields.shape, fields.key_types, share, folder, sums=fields.sums)


def close_slices(spark: SparkSession, closing: Closing) -> list[tuple[str, str]]:
    """What the tasks tell."""
    numbers = sorted(closing.work)
    if not numbers:
        return []
    dense = {place: closing.work[number] for place, number in enumerate(numbers)}
    job = replace(closing, work=dense)
    tasks = spark.range(0, len(numbers), 1, len(numbers))
    return [(row[0], row[1]) for row in tasks.mapInArrow(job, TOLD).collect()]
