"""The closed rows of a micro-batch, and Spark's view of them.

In: the state of the set, and the segments that are looked at. Out: for each stream that is read
from the store what it has, and the high level over it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from terascope.spark.stream.high import HighLevel
from terascope.spark.stream.rows import Leaf, StoredRows
from terascope.spark.stream.wiring import Wiring
from terascope.streaming.plan import LowStream
from terascope.streaming.state.layouts import Layouts
from terascope.streaming.state.segments import Segment
from terascope.streaming.state.state import State
from terascope.streaming.state.tiers import SLICES, Length, tier_stream


@dataclass(frozen=True)
class ClosedRows:
    wiring: Wiring
    spark: SparkSession
    state: State

    @property
    def stored(self) -> StoredRows:
        return StoredRows(str(self.wiring.folder.slices), Layouts(self.state.layouts))

    def leaves(self, segments: Sequence[Segment]) -> dict[str, Leaf]:
        """The streams that are read from the store."""
        plan = self.wiring.plan
        rows = rows_by_stream(segments)
        found = {
            stream.name: Leaf(
                plan.deliveries.targets[stream.number].fields,
                rows.get(stream.key, ()),
                stream.texts,
            )
            for stream in plan.low
        }
        for running in plan.running:
            found[running.name] = Leaf(running.rel.fields, rows.get(running.key, ()))
        return found

    def tiers(
        self, stream: LowStream, shown: LowStream, rows: Mapping[str, tuple[Segment, ...]]
    ) -> dict[Length, Leaf]:
        """The slices of a stream, and the spans of them that were put together, with the columns of
        another one that differs from it in its slices.
        """
        plan = self.wiring.plan
        fields = plan.deliveries.targets[shown.number].fields
        texts = tuple(stream.epoch_text if t == shown.epoch_text else t for t in shown.texts)
        return {
            tier: Leaf(fields, rows.get(tier_stream(stream.key, tier), ()), texts)
            for tier in (SLICES, *plan.windows[stream.name].tiers)
        }

    def high_level(self, segments: Sequence[Segment]) -> HighLevel:
        return HighLevel(
            self.spark,
            self.stored,
            self.leaves(segments),
            self.wiring.plan.job.parameters,
            self.wiring.horizons(self.state),
            self.wiring.tasks,
        )


def rows_by_stream(segments: Sequence[Segment]) -> dict[str, tuple[Segment, ...]]:
    found: dict[str, list[Segment]] = {}
    for segment in segments:
        if segment.kind == "rows":
            found.setdefault(segment.stream, []).append(segment)
    return {stream: tuple(some) for stream, some in found.items()}
