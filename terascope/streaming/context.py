"""The context of all micro-batches of a running set: its plan, its folders, its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from terascope.functions.base import Value
from terascope.physical.delivery import Sink
from terascope.physical.stream.plan import StreamPlan
from terascope.plan.horizon import Horizons
from terascope.plan.rel import Aggregate
from terascope.streaming.closing import furthest
from terascope.streaming.engine import HighLevel, StreamEngine
from terascope.streaming.state.manifest import GrowingResult
from terascope.streaming.state.retention import Expiry
from terascope.streaming.state.runs import RunFolder
from terascope.streaming.state.segments import Layouts, Segment, Stored
from terascope.streaming.state.state import StateFolder, StreamState
from terascope.streaming.stored_rows import StoredRows, stored_leaves


@dataclass(frozen=True)
class RunContext:
    """The plan, the folders and the results of a running set, for all of its batches."""

    plan: StreamPlan
    stored: Mapping[int, Stored]
    folder: RunFolder
    sink: Sink
    results: Mapping[str, GrowingResult]
    skew_ns: int
    expire: Expiry
    replays: bool = False
    """Whether sources are replayed: as in a batch, only tuples move time, and not the heartbeats of
    silent sources."""
    present: dict[Aggregate, tuple[Value, Value]] = field(default_factory=dict)
    """For aggregations that also emit rows for empty windows: the watermark at which they were last
    computed, and their last row then that has tuples."""

    @property
    def states(self) -> StateFolder:
        return StateFolder(self.folder.state)

    def horizons(self, state: StreamState) -> Horizons:
        """The horizons of time, for groups that stay alive without tuples."""
        job = self.plan.job
        return Horizons(furthest(state.seen), job.trees, job.parameters)

    def stored_rows(self, state: StreamState) -> StoredRows:
        return StoredRows(str(self.folder.slices), Layouts(state.layouts))

    def high_level(
        self, engine: StreamEngine, state: StreamState, segments: Sequence[Segment]
    ) -> HighLevel:
        """The high level over the rows of some segments."""
        leaves = stored_leaves(self.plan, segments)
        parameters = self.plan.job.parameters
        return engine.high_level(self.stored_rows(state), leaves, parameters, self.horizons(state))
