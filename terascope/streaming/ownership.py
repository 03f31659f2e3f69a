"""Epochs that begin and end within one task of one micro-batch, and are complete there.

In: the state before a batch, its offsets and the bounds of its splits. Out: by query the epochs
that one task owns: no earlier batch has tuples of them, and by the watermarks at the end of the
batch no later batch will. Their groups need no slice store and no exchange, as in a batch
(terascope.physical.splits); all other groups are stored as partials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from terascope.connectors.arrival import TICKS_NS, is_arrival
from terascope.connectors.base import Split
from terascope.connectors.live import Offset
from terascope.physical.low_plan import LowAggregate, LowPlan
from terascope.physical.splits import Epochs, epoch_of, owned
from terascope.physical.stream.plan import StreamPlan
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.expr import columns_of
from terascope.plan.rel import Scan, SourceField
from terascope.streaming.closing import ingest_offset, portion_of, scan_watermarks
from terascope.streaming.state.state import Seen, StreamState


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
    """By the number of a stream of groups, its epochs."""
    found: dict[int, Epoch] = {}
    for read in plan.deliveries.reads:
        assert read.low is not None
        for query in read.low.queries:
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
    low: LowPlan,
    streams: Sequence[int],
    epochs: Mapping[int, Epoch],
    tasks: Sequence[Sequence[Split]],
    state: StreamState,
    start: Offset,
    end: Offset,
    skew_ns: int,
    names: set[str],
) -> list[dict[int, Epochs | None]]:
    """The owned epochs of each task, by query of a read with these interfaces. `state`: before the
    batch.
    """
    crowded = crowded_streams(state)
    found: list[dict[int, Epochs | None]] = [{} for _ in tasks]
    for place, query in enumerate(low.queries):
        if not isinstance(query, LowAggregate) or streams[place] not in epochs:
            continue
        if not set(query.interfaces) <= names:  # another read has tuples of it, too
            continue
        epoch = epochs[streams[place]]
        if epoch.key in crowded:
            continue
        progress = state.streams.get(epoch.key)
        until = None if progress is None else progress.until
        limits = within(query, epoch, until, start, end, skew_ns)
        if limits is None:
            continue
        for task, mine in enumerate(owned(query, tasks)):
            both = None if mine is None else common(mine, limits)
            if both is not None:
                found[task][place] = both
    return found


def within(
    query: LowAggregate,
    epoch: Epoch,
    until: SliceValue | None,
    start: Offset,
    end: Offset,
    skew_ns: int,
) -> Epochs | None:
    """The epochs of which only this batch has tuples; None when that is unknown. `until`: all
    slices before this one are closed.
    """
    assert query.epoch is not None
    _, evaluate = epoch_of(query.keys[query.epoch][1])
    if set(epoch.scan.interfaces) != set(query.interfaces):
        return None
    is_known, largest = epoch.seen(start)
    if not is_known:
        return None
    first = None if largest is None else evaluate((largest,))
    first = None if first is None else first + 1
    if until is not None:
        first = int(until) if first is None else max(first, int(until))
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
