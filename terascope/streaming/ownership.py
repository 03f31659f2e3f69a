"""Epochs that begin and end within one task of one micro-batch, and are complete there.

In: the state before a batch, its offsets and the bounds of its splits. Out: by query the epochs
that one task owns: no earlier batch has tuples of them, and by the watermarks at the end of the
batch no later batch will. Their groups need no slice store and no exchange, as in a batch
(terascope.physical.splits); all other groups are stored as partials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from terascope.analysis.order import FINENESS
from terascope.connectors.arrival import TICKS_NS, is_arrival
from terascope.connectors.base import Split
from terascope.connectors.live import Offset
from terascope.physical.low_plan import LowAggregate, LowPlan
from terascope.physical.splits import Epochs, epoch_of, owned
from terascope.physical.stream.plan import StreamPlan
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.expr import columns_of
from terascope.plan.rel import ClockUnit
from terascope.streaming.closing import portion_of
from terascope.streaming.late import ClosedColumn
from terascope.streaming.state.state import StreamState


@dataclass(frozen=True)
class Epoch:
    """The epochs of a stream of groups as a function of a column of its sources."""

    key: str
    """The key of the stream."""
    column: str
    interfaces: tuple[str, ...]
    band: int | float
    clock: ClockUnit | None

    def reached(self, offset: Offset, skew_ns: int) -> SliceValue | None:
        """The value below which no tuple can come after an offset; None: there is no watermark."""
        if is_arrival(self.column):
            return offset.arrived_ns // TICKS_NS[self.column]
        least: SliceValue | None = None
        for name in self.interfaces:
            link = offset.link(name)
            told = [link.seen[self.column][1] - self.band] if self.column in link.seen else []
            if self.clock is not None and link.quiet_ns is not None:
                told.append((link.quiet_ns - skew_ns) // (10**9 // FINENESS[self.clock]))
            if not told:
                return None
            least = max(told) if least is None else min(least, max(told))
        return least

    def seen(self, offset: Offset) -> tuple[bool, int | None]:
        """Whether the tuples before an offset are known, and the largest value of these."""
        if is_arrival(self.column):
            return True, offset.arrived_ns // TICKS_NS[self.column] if offset.arrived_ns else None
        links = [offset.link(name) for name in self.interfaces]
        begun = [link for link in links if link.begun]
        known = [link.seen[self.column][1] for link in begun if self.column in link.seen]
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
            band = 0 if column.slope is None else column.slope.band
            found[stream.number] = Epoch(
                stream.key, name, stream.scan.interfaces, band, column.clock
            )
    return found


@dataclass(frozen=True)
class Beginning:
    """The part of the earlier state that tasks need."""

    closed: Mapping[str, tuple[ClosedColumn, ...]] = field(default_factory=dict)
    """By interface: columns, the value below which a slice of a stream is closed, and its key."""
    until: Mapping[str, SliceValue] = field(default_factory=dict)
    """By the key of a stream: all slices before this one are closed."""
    crowded: frozenset[str] = frozenset()
    """The keys of streams with more pending slices than may close in one batch. Groups that their
    tasks complete would be emitted before older slices."""

    @staticmethod
    def of(state: StreamState | None) -> Beginning:
        if state is None:
            return Beginning()
        pending: Counter[str] = Counter()
        for segment in state.segments:
            if segment.kind == "groups":
                pending[segment.stream] += segment.length
        portion = portion_of(state)
        return Beginning(
            {name: tuple(limits) for name, limits in state.closed.items()},
            {key: one.until for key, one in state.streams.items() if one.until is not None},
            frozenset(key for key, length in pending.items() if length > portion),
        )


def owned_epochs(
    low: LowPlan,
    streams: Sequence[int],
    epochs: Mapping[int, Epoch],
    tasks: Sequence[Sequence[Split]],
    beginning: Beginning,
    start: Offset,
    end: Offset,
    skew_ns: int,
    names: set[str],
) -> list[dict[int, Epochs | None]]:
    """The owned epochs of each task, by query of a read with these interfaces."""
    found: list[dict[int, Epochs | None]] = [{} for _ in tasks]
    for place, query in enumerate(low.queries):
        if not isinstance(query, LowAggregate) or streams[place] not in epochs:
            continue
        if not set(query.interfaces) <= names:  # another read has tuples of it, too
            continue
        limits = within(query, epochs[streams[place]], beginning, start, end, skew_ns)
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
    beginning: Beginning,
    start: Offset,
    end: Offset,
    skew_ns: int,
) -> Epochs | None:
    """The epochs of which only this batch has tuples; None when that is unknown."""
    assert query.epoch is not None
    _, evaluate = epoch_of(query.keys[query.epoch][1])
    if set(epoch.interfaces) != set(query.interfaces) or epoch.key in beginning.crowded:
        return None
    is_known, largest = epoch.seen(start)
    if not is_known:
        return None
    first = None if largest is None else evaluate((largest,))
    first = None if first is None else first + 1
    until = beginning.until.get(epoch.key)
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
