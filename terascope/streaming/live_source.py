"""The live interfaces of a set, and the reading tasks of each micro-batch.

In: a `StreamSource`: the interfaces, and the work of the tasks of a stream. Out: the latest offset,
and for two offsets the `ReadTask`s between them. An offset counts the journal's entries of each
interface and holds a tick of the clock, so that a batch starts though every source is silent. The
tasks are a function of two offsets, the journal and the state of the batch before: a batch that is
run again reads the same tuples and gives the same result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from terascope.connectors.arrival import arrived
from terascope.connectors.base import Edge
from terascope.connectors.live import LinkClock, Links, LiveSettings, Offset
from terascope.connectors.registry import Interface
from terascope.physical.splits import even_bundles
from terascope.streaming.ownership import Epoch, owned_epochs
from terascope.streaming.replan.tree_plans import TreesInForce, in_force
from terascope.streaming.state.runs import RunFolder
from terascope.streaming.state.state import StateFolder, StreamState, packed_offset, unpacked_offset
from terascope.streaming.tasks.read import ReadTask, StreamRead


@dataclass(frozen=True)
class Samples:
    """The size and the interval of the samples that tasks report."""

    tuples: int
    seconds: float


@dataclass(frozen=True)
class StreamSource:
    """The live interfaces of a set, and the work of its tasks."""

    reading: StreamRead
    interfaces: tuple[Interface, ...]
    clocks: Mapping[str, LinkClock | None]
    edge: Edge | None
    settings: LiveSettings
    folder: str
    """The folder of the run, under the checkpoint."""
    tasks: int
    epochs: Mapping[int, Epoch]
    """The epochs, by the number of a stream of groups."""
    skew_ns: int
    samples: Samples | None = None
    """The samples for planning trees; None: no samples."""

    @property
    def journal(self) -> Path:
        return Path(self.folder) / "journal"

    def links(self) -> Links:
        return Links(self.interfaces, self.clocks, self.edge, self.settings, self.journal)


class LiveSource:
    """Finds new data and plans the tasks that read it."""

    def __init__(self, source: StreamSource, links: Links | None = None) -> None:
        self._source = source
        self.links = links or source.links()
        self._sampled: float | None = None
        """The time of the last sample."""

    def latest(self, start: dict[str, str]) -> dict[str, str]:
        """Look for new data after `start`; return the offset behind it."""
        self.links.poll()
        latest = self.links.latest(unpacked_offset(start))
        folder = RunFolder(Path(self._source.folder))
        folder.note_links(self.links.states())
        folder.note_idle(latest.ended and packed_offset(latest) == start)
        return packed_offset(latest)

    def tasks(self, start: dict[str, str], end: dict[str, str]) -> list[ReadTask]:
        """The tasks that read the data between two offsets."""
        source = self._source
        first, last = unpacked_offset(start), unpacked_offset(end)
        state = StateFolder(RunFolder(Path(source.folder)).state).at(start) or StreamState()
        splits = self.links.splits(first, last)
        made: list[ReadTask] = []
        planned = time.time()
        trees, sample = self._trees(), self._wanted(planned) if splits else 0
        for place, native in enumerate(source.reading.reads):
            names = {i.name for i in native.read.interfaces}
            ours = [s for s in splits if s.interface in names]
            ours = arrived(ours, native.read.columns, last.arrived_ns)
            parts = even_bundles(ours, source.tasks, source.edge)
            assert native.read.low is not None
            mine = owned_epochs(
                native.read.low,
                native.streams,
                source.epochs,
                parts,
                state,
                first,
                last,
                source.skew_ns,
                names,
            )
            for number, some in enumerate(parts):
                closed = {n: state.closed.get(n, ()) for n in names}
                task = ReadTask(
                    place, some, len(made), mine[number], closed, planned, json.dumps(end), trees,
                    -(-sample // len(parts)),
                )  # fmt: skip
                made.append(task)
        return made

    def commit(self, end: dict[str, str]) -> None:
        self.links.commit(unpacked_offset(end))

    def _trees(self) -> TreesInForce:
        """The trees that were chosen last; a repeated batch may have others."""
        known = None if self._source.samples is None else in_force(Path(self._source.folder))
        return known or TreesInForce()

    def _wanted(self, now: float) -> int:
        """The number of tuples to sample in a batch."""
        samples = self._source.samples
        if samples is None:
            return 0
        if self._sampled is not None and now - self._sampled < samples.seconds:
            return 0
        self._sampled = now
        return samples.tuples


def initial_offset(source: StreamSource) -> dict[str, str]:
    """The offset before all data."""
    return packed_offset(Offset.initial(i.name for i in source.interfaces))
