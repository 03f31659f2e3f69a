"""The report of a micro-batch that is done. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from terascope.analysis.watermarks import Watermarks
from terascope.connectors.live import Offset
from terascope.streaming.heartbeat import Heartbeat
from terascope.streaming.replan.tuple_samples import TupleSample
from terascope.streaming.state.state import StreamState


@dataclass
class BatchReport:
    """A batch that is done: its state is on disk, and its rows are in the manifests."""

    batch: int
    offset: Offset
    state: StreamState
    beats: list[Heartbeat]
    delivered: Mapping[str, int]
    watermarks: Watermarks
    seconds: float
    hops: list[tuple[str, float]] = field(default_factory=list)
    replayed: bool = False
    hearing_ns: int = 0
    """Processor time that the driver took to take the heartbeats in."""
    samples: list[TupleSample] = field(default_factory=list)
    """The samples that tasks were asked for."""

    @property
    def heartbeat_seconds(self) -> float:
        """Processor time of the heartbeats of the batch, in all processes."""
        return (self.hearing_ns + sum(beat.cost_ns for beat in self.beats)) / 1e9
