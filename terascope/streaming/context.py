"""The surroundings of a micro-batch: its run, its engine, and the expiry of stored rows.

A `RunContext` holds the plan, the folders and the results that all batches of a run share. A
`StreamEngine` runs the tasks of a batch and computes the queries that are not placed in tasks:
Spark is the engine of the product (terascope.spark.stream.engine); tests drive streams with a plain
one. `Expiry` drops the rows of the store that no query will read again, after every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from terascope.analysis.moving import ALL
from terascope.analysis.retention import Leaf
from terascope.connectors.live import LiveSettings
from terascope.functions.base import Value
from terascope.physical.delivery import Sink
from terascope.physical.stream.plan import RunningStream, StreamOutput, StreamPlan
from terascope.plan.horizon import Horizons
from terascope.plan.rel import Aggregate, Rel
from terascope.streaming.closing import furthest
from terascope.streaming.partition_values import PartitionValues
from terascope.streaming.state.manifest import GrowingResult
from terascope.streaming.state.runs import RunFolder
from terascope.streaming.state.segments import Layouts, Segment, Stored
from terascope.streaming.state.state import StateFolder, StreamState
from terascope.streaming.stored_rows import StoredRows, StoredStream, base_stream

Report: TypeAlias = tuple[str, str]
"""A line that a task reports to the driver: its kind (`part`, `segment`, `heartbeat`, ..) and its
text."""
TaskWork: TypeAlias = Callable[[], Iterator[Report]]
"""The work of one task. It is sent to the task, and yields its reports there."""


@dataclass(frozen=True)
class RunContext:
    """The plan, the folders and the results of a running set, for all of its batches."""

    plan: StreamPlan
    folder: RunFolder
    sink: Sink
    results: Mapping[str, GrowingResult]
    live: LiveSettings
    present: dict[Aggregate, tuple[Value, Value]] = field(default_factory=dict)
    """The aggregations that also emit rows for empty windows, each with the watermark at which it
    was last computed, and its last row then that has tuples."""

    @cached_property
    def stored(self) -> dict[int, Stored]:
        """The storage of each low-level stream, by its number."""
        return {stream.number: Stored.of(stream) for stream in self.plan.low}

    @cached_property
    def partition_values(self) -> PartitionValues:
        """The values that the partitions of sources have."""
        job, before = self.plan.job, self.states.newest()
        done = -1 if before is None else before.batch
        otherwise = {
            one.key
            for one in self.plan.low
            if one.groups is not None and (one.descending or one.kept_by not in (None, one.value))
        }
        folder = self.folder.path / "partitions"
        return PartitionValues(folder, job.ownership, job.reads, otherwise, done)

    @cached_property
    def expire(self) -> Expiry:
        return Expiry(self.plan)

    @property
    def states(self) -> StateFolder:
        return StateFolder(self.folder.state)

    def horizons(self, state: StreamState) -> Horizons:
        """The horizons of time, for groups that stay alive without tuples."""
        job = self.plan.job
        return Horizons(furthest(state.seen), job.trees, job.parameters)

    def stored_rows(self, state: StreamState) -> StoredRows:
        return StoredRows(str(self.folder.slices), Layouts(state.layouts))


class HighLevel(Protocol):
    """Computes relations over stored rows."""

    def query(self, output: StreamOutput, trees: Mapping[str, Rel]) -> Any:
        """The rows of a query over relations, computed when `StreamEngine.write` gets them."""
        ...

    def last(self, rel: Rel, name: str, below: Value = None) -> Value:
        """The largest value of a column, or the largest that is below another value."""
        ...

    def running_step(
        self, running: RunningStream, alive: StoredStream, low: int | None, until: int
    ) -> list[Report]:
        """Compute the epochs of a running aggregate from `low` up to, and without, `until`.
        `alive`: its groups that were alive before them.
        """
        ...


class StreamEngine(Protocol):
    def run_tasks(self, work: Sequence[TaskWork]) -> list[Report]:
        """Run every piece of work in a task of its own, and return all reports."""
        ...

    def high_level(
        self, context: RunContext, state: StreamState, segments: Sequence[Segment]
    ) -> HighLevel:
        """The high level over the rows of some segments."""
        ...

    def write(self, queries: Sequence[Any]) -> list[Report]:
        """Compute queries of the high level together, and report the written parts."""
        ...


class Expiry:
    """Drops expired segments after every batch; a batch that is run again starts from an earlier
    state.
    """

    def __init__(self, plan: StreamPlan) -> None:
        self._plan = plan
        self._moved: object = None
        self._least: dict[str, Value] = {}

    def __call__(self, state: StreamState) -> None:
        every = (*state.queries.values(), *state.streams.values())
        moved = [(one.until, tuple(one.bounds), one.ended) for one in every]
        if moved != self._moved:  # computing all bounds takes longer than most batches
            self._moved, self._least = moved, retained_from(self._plan, state)
        least = self._least

        def is_over(segment: Segment) -> bool:
            stream = base_stream(segment.stream)
            if segment.kind != "rows" or stream not in least:
                return False
            bound = least[stream]
            return bound is ALL or (bound is not None and segment.ends_before(bound))

        state.segments = [s for s in state.segments if not is_over(s)]
        for key, bound in least.items():
            state.streams[key].kept_from = None if bound is ALL else bound


def retained_from(plan: StreamPlan, state: StreamState) -> dict[str, Value]:
    """The earliest slice of each stream that a query will read again, by the key of the stream."""
    keys, retention = plan.leaves, plan.retention
    falling = {stream.name for stream in plan.low if stream.descending}
    least: dict[str, Value] = dict.fromkeys(keys.values(), ALL)
    found: list[tuple[Leaf, Value]] = []
    for output in plan.outputs:
        if output.release is None or output.release.kind == "at_once":
            continue
        progress, parts = state.queries[output.name], len(output.release.parts)
        if progress.ended and output.release.kind != "ordered":
            continue
        values = [ALL] * parts if progress.ended else progress.lows(parts)
        found += retention.after_release(output.release, values).items()
    for running in plan.running:
        one = state.streams[running.key]
        if not one.ended:
            found += retention.from_epoch(running.rel, one.until).items()
    for leaf, value in found:
        if isinstance(leaf, str):
            sign = -1 if leaf in falling else 1
            least[keys[leaf]] = smaller(least[keys[leaf]], value, sign)
    return least


def smaller(a: Value, b: Value, sign: int) -> Value:
    """The earlier of two bounds, as the store has them; None is before all."""
    if a is None or b is None:
        return None
    other = b if b is ALL else sign * b
    return other if a is ALL else a if other is ALL else min(a, other)
