"""The live interfaces of a set, and the reading tasks of each micro-batch.

In: a `StreamSource`: the interfaces, and the work of the tasks of a stream. Out: the latest offset,
and for two offsets the `ReadTask`s between them. An offset counts the journal's entries of each
interface and holds a tick of the clock, so that a batch starts though every source is silent. The
tasks are a function of two offsets, the journal and the state of the batch before: a batch that is
run again reads the same tuples and gives the same result.

A task owns the epochs that begin and end within it: no earlier batch has tuples of them, and by the
watermarks at the end of the batch no later batch will. Their groups need no slice store and no
exchange, as in a batch (terascope.physical.splits); all other groups are stored as partials.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from terascope.connectors.arrival import TICKS_NS, arrived, is_arrival
from terascope.connectors.base import Edge, Split, partition_of
from terascope.connectors.live import LinkClock, Links, LiveSettings, Offset
from terascope.connectors.registry import Interface
from terascope.execute.reading_task import NativeRead
from terascope.physical.low_plan import LowAggregate
from terascope.physical.splits import EVERYTHING, Epochs, epoch_of, even_bundles, owned
from terascope.physical.stream.plan import StreamPlan
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.expr import columns_of
from terascope.plan.rel import Scan, SourceField
from terascope.streaming.closing import ingest_offset, portion_of, scan_watermarks
from terascope.streaming.replan.tree_plans import TreesInForce, in_force
from terascope.streaming.state.runs import RunFolder
from terascope.streaming.state.state import (
    Seen,
    StateFolder,
    StreamState,
    packed_offset,
    unpacked_offset,
)
from terascope.streaming.tasks.read import ReadTask, StreamRead


@dataclass(frozen=True)
class StreamSource(StreamRead):
    """The live interfaces of a set, and the work of its tasks."""

    clocks: Mapping[str, LinkClock | None]
    settings: LiveSettings
    folder: str
    """The folder of the run, under the checkpoint."""
    tasks: int
    epochs: Mapping[int, Epoch]
    """The epochs, by the number of a stream of groups."""
    homes: Mapping[str, Sequence[int]]
    """The task that reads each partition, by source."""
    sample_tuples: int
    """The size of the samples that tasks report for planning trees; 0: no samples."""
    sample_seconds: float
    """The interval of these samples."""
    hosts: tuple[tuple[str, ...], ...] = ()
    """The hosts that hold each partition."""

    @property
    def is_located(self) -> bool:
        """Whether the hosts of partitions are known, so that tasks are started there."""
        return any(self.hosts)

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        return tuple(i for native in self.reads for i in native.read.interfaces)

    @property
    def edge(self) -> Edge | None:
        return self.reads[0].read.edge if self.reads else None

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
        for place, native in enumerate(source.reads):
            names = {i.name for i in native.read.interfaces}
            ours = [s for s in splits if s.interface in names]
            ours = arrived(ours, native.read.columns, last.arrived_ns)
            if native.kept or (source.is_located and native.is_partitioned):
                numbers, parts = by_home(ours, source.homes)
            else:
                numbers, parts = [], even_bundles(ours, source.tasks, source.edge)
            mine = owned_epochs(source, native, parts, state, first, last)
            closed = {n: state.closed.get(n, ()) for n in names}
            for at, (some, epochs) in enumerate(zip(parts, mine, strict=True)):
                number = numbers[at] if numbers else len(made)
                task = ReadTask(
                    place, some, number, epochs, closed, planned,
                    json.dumps(end), trees, -(-sample // len(parts)),
                )  # fmt: skip
                made.append(task)
        return made

    def commit(self, end: dict[str, str]) -> None:
        self.links.commit(unpacked_offset(end))

    def _trees(self) -> TreesInForce:
        """The trees that were chosen last; a repeated batch may have others."""
        known = in_force(Path(self._source.folder)) if self._source.sample_tuples else None
        return known or TreesInForce()

    def _wanted(self, now: float) -> int:
        """The number of tuples to sample in a batch."""
        if self._sampled is not None and now - self._sampled < self._source.sample_seconds:
            return 0
        self._sampled = now
        return self._source.sample_tuples


def by_home(
    splits: Sequence[Split], homes: Mapping[str, Sequence[int]]
) -> tuple[list[int], list[tuple[Split, ...]]]:
    """The tasks that read partitions, by number, and the splits of each. Where there is nothing to
    read, one task is left, for its heartbeat.
    """
    found: dict[int, list[Split]] = {}
    for split in splits:
        number = partition_of(split.interface)
        assert number is not None
        found.setdefault(homes[split.source][number], []).append(split)
    numbers = sorted(found)
    return numbers or [0], [tuple(found[number]) for number in numbers] or [()]


def initial_offset(source: StreamSource) -> dict[str, str]:
    """The offset before all data."""
    return packed_offset(Offset.initial(i.name for i in source.interfaces))


# ---- epochs of one task --------------------------------------------------------------------------


@dataclass(frozen=True)
class Epoch:
    """The epochs of a stream of groups as a function of a column of its sources."""

    key: str
    """The key of the stream."""
    scan: Scan
    column: SourceField

    def reached(self, offset: Offset, skew_ns: int) -> SliceValue | None:
        """The value below which no tuple can come after an offset; None: there is no watermark."""
        known: dict[str, Seen] = {}
        ingest_offset(known, offset)
        value = scan_watermarks(known, skew_ns, ended=False)(self.scan).get(self.column.name)
        assert self.column.slope is not None
        return None if value is None else value - self.column.slope.band

    def seen(self, offset: Offset) -> tuple[bool, int | None]:
        """Whether the tuples before an offset are known, and the largest value of these."""
        name = self.column.read_from
        if is_arrival(name):
            return True, offset.arrived_ns // TICKS_NS[name] if offset.arrived_ns else None
        begun = [link for link in map(offset.link, self.scan.interfaces) if link.begun]
        known = [link.seen[name][1] for link in begun if name in link.seen]
        return len(known) == len(begun), max(known, default=None)


def stream_epochs(plan: StreamPlan) -> dict[int, Epoch]:
    """The epochs of each stream of groups, by the number of the stream."""
    found: dict[int, Epoch] = {}
    for read in plan.deliveries.reads:
        for query in read.queries:
            if not isinstance(query, LowAggregate) or query.epoch is None:
                continue
            stream = plan.by_name[query.name]
            (name,) = columns_of(query.keys[query.epoch][1])
            column = next(c for c in stream.scan.columns if c.read_from == name)
            found[stream.number] = Epoch(stream.key, stream.scan, column)
    return found


def crowded_streams(state: StreamState) -> set[str]:
    """The keys of streams with more pending slices than may close in one batch. Groups that their
    tasks complete would be emitted before older slices.
    """
    pending: Counter[str] = Counter()
    for segment in state.segments:
        if segment.kind == "groups":
            pending[segment.stream] += segment.length
    portion = portion_of(state)
    return {key for key, length in pending.items() if length > portion}


def owned_epochs(
    source: StreamSource,
    native: NativeRead,
    tasks: Sequence[Sequence[Split]],
    state: StreamState,
    start: Offset,
    end: Offset,
) -> list[dict[int, Epochs | None]]:
    """The owned epochs of each task of a read, by query. `state`: before the batch."""
    crowded = crowded_streams(state)
    names = {i.name for i in native.read.interfaces}
    found: list[dict[int, Epochs | None]] = [{} for _ in tasks]
    for place, query in enumerate(native.read.queries):
        epoch = source.epochs.get(native.streams[place])
        if not isinstance(query, LowAggregate) or epoch is None or epoch.key in crowded:
            continue
        if not set(query.interfaces) <= names:  # another read has tuples of it, too
            continue
        limits = within(query, epoch, state, start, end, source.settings.skew_ns)
        if limits is None:
            continue
        is_kept = native.streams[place] in native.kept
        having = [EVERYTHING] * len(tasks) if is_kept else owned(query, tasks)
        for task, mine in enumerate(having):
            both = None if mine is None else common(mine, limits)
            if both is not None:
                found[task][place] = both
    return found


def within(
    query: LowAggregate, epoch: Epoch, state: StreamState, start: Offset, end: Offset, skew_ns: int
) -> Epochs | None:
    """The epochs of which only this batch has tuples; None when that is unknown."""
    assert query.epoch is not None
    _, evaluate = epoch_of(query.keys[query.epoch][1])
    if set(epoch.scan.interfaces) != set(query.interfaces):
        return None
    is_known, largest = epoch.seen(start)
    if not is_known:
        return None
    first = None if largest is None else evaluate((largest,))
    first = None if first is None else first + 1
    progress = state.streams.get(epoch.key)
    if progress is not None and progress.until is not None:  # slices before it are closed
        until = int(progress.until)
        first = until if first is None else max(first, until)
    if end.ended:
        return Epochs(first, None)
    reached = epoch.reached(end, skew_ns)
    last = None if reached is None else evaluate((reached,))
    if last is None or (first is not None and first >= last):
        return None
    return Epochs(first, last - 1)


def common(one: Epochs, other: Epochs) -> Epochs | None:
    firsts = [e.first for e in (one, other) if e.first is not None]
    lasts = [e.last for e in (one, other) if e.last is not None]
    made = Epochs(max(firsts, default=None), min(lasts, default=None))
    if made.first is not None and made.last is not None and made.first > made.last:
        return None
    return made
