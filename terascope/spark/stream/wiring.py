"""What all micro-batches of a running set share: its plan, its folders, its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from terascope.functions.base import Value
from terascope.physical.delivery import Sink
from terascope.plan.horizon import Horizons
from terascope.plan.rel import Aggregate
from terascope.spark.stream.task import Stored
from terascope.streaming.closing import furthest
from terascope.streaming.plan import StreamPlan
from terascope.streaming.state.forgetting import Forgetting
from terascope.streaming.state.growing_result import GrowingResult
from terascope.streaming.state.state import State, StateFolder


@dataclass(frozen=True)
class RunFolder:
    """Where everything of a run is, under its checkpoint."""

    path: Path

    @property
    def state(self) -> Path:
        return self.path / "state"

    @property
    def slices(self) -> Path:
        return self.path / "slices"

    @property
    def results(self) -> Path:
        """Of a set whose results nobody asked to have elsewhere."""
        return self.path / "results"


@dataclass(frozen=True)
class Wiring:
    """What all batches of a running set share."""

    plan: StreamPlan
    stored: Mapping[int, Stored]
    folder: RunFolder
    sink: Sink
    results: Mapping[str, GrowingResult]
    skew_ns: int
    tasks: int
    forget: Forgetting
    replays: bool = False
    """Sources are replayed: time is what their tuples say, as in a batch, and not what heartbeats
    of silent sources say."""
    present: dict[Aggregate, tuple[Value, Value]] = field(default_factory=dict)
    """Of aggregations that also give rows for empty windows: up to where they were complete when
    they were looked at, and their last row then that was made of tuples."""

    @property
    def states(self) -> StateFolder:
        return StateFolder(self.folder.state)

    def horizons(self, state: State) -> Horizons:
        """How far time has moved, for groups that live on without tuples."""
        job = self.plan.job
        return Horizons(furthest(state.seen), job.trees, job.parameters)
