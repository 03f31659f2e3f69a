"""Windows assembled from stored slices, in a task (paper 0, the superqueries).

In: the stored rows of the slices of a stream and of spans of slices, and all queries over their
windows that are released now; where windows had another composition before, also the slices of the
retired streams. Out: the rows of each query. The slices are read and sorted by group once for all
of these queries; each query then passes over them once, whatever its range and slide are.

Spans of slices are merged once, so that long windows need not read every slice. A span of a tier
consists of eight of those below, or of eight periods of the slices, and begins at a multiple of its
length. Of a range of r/s slices some ten spans of each tier are read: a window costs O(log r/s)
merges, even if it is the only one that is due.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.analysis.moving import ALL
from terascope.execute.results.parts import write_part
from terascope.execute.rows.collect import ALWAYS, Ranking, Regrouping, Sequences
from terascope.execute.rows.steps import run_steps
from terascope.functions.base import Value
from terascope.functions.overflow import overflow_of
from terascope.functions.slices import SliceVector
from terascope.kernels.merge.finish import columns as finished_columns
from terascope.kernels.merge.payload import pack_tuples
from terascope.physical.delivery import Sink
from terascope.physical.row_pipeline import KeptOrder, Regroup, Top
from terascope.physical.stream.plan import LowStream
from terascope.physical.stream.windows import Length, StoredWindows, WindowFamily
from terascope.streaming.context import Report
from terascope.streaming.state.segments import Segment, SegmentWriter, Stored
from terascope.streaming.stored_rows import SLICES, StoredRows, StoredStream, tier_stream
from terascope.streaming.tasks.work import DueRange, in_order

MOST_EDGES: Final = 256
"""The most edges of due windows; beyond that slices are read: each serves many windows."""
BUILT_AT_ONCE: Final = 4
"""The most spans of a stream that one micro-batch builds."""


@dataclass(frozen=True)
class DueWindows:
    """A query and its windows that are released now."""

    windows: StoredWindows
    since: int
    """Windows ending at or after this value."""
    until: int
    """Windows ending before this value."""
    ordered: KeptOrder = ()
    """The columns in whose order parts of other partitions have rows, too."""

    @classmethod
    def of(cls, windows: StoredWindows, due: DueRange, ordered: KeptOrder = ()) -> DueWindows:
        window = windows.windows.window
        shift = window.range if windows.by_start else 0
        since = -ALWAYS if due.low is None else edge(due.low) + shift
        until = -ALWAYS if due.high is None else edge(due.high) + shift
        return cls(windows, -(-since // window.slide) * window.slide, until, ordered)

    @property
    def ends(self) -> range:
        return range(self.since, self.until, self.windows.windows.window.slide)

    @property
    def first(self) -> int:
        """The start of the first window."""
        return self.since - self.windows.windows.window.range

    def rows(self, groups: Sequences, slices: Regrouping) -> pa.RecordBatch:
        program, windows = self.windows.program, self.windows.windows
        made = [
            run_steps(program.steps, batch)
            for batch in groups.batches(windows, slices.dictionaries, self.since, self.until)
        ]
        found = [rows for rows in made if rows.num_rows]
        if isinstance(program.whole, Top) and found:
            ranking = Ranking(program.whole)
            for rows in found:
                ranking.take(rows)
            found = [run_steps(program.after, ranking.result())]
        return in_order(found, self.windows.fields, self.windows.order)


@dataclass(frozen=True)
class SliceSpan:
    """The span [start, end) of a tier."""

    tier: Length
    start: int
    end: int


@dataclass(frozen=True)
class Built:
    """The stored spans of a stream: their starts, by tier."""

    vector: SliceVector
    begins: Mapping[Length, Collection[int]]

    def cover(self, first: int, until: int, edges: Collection[int] = ()) -> list[SliceSpan]:
        """The longest spans that cover all time from `first` up to `until`, both edges of slices,
        with no edge inside.
        """
        cuts = sorted({edge for edge in edges if first < edge < until} | {until})
        longest_first = sorted(self.begins, reverse=True)
        found: list[SliceSpan] = []
        at = first
        for cut in cuts:
            while at < cut:
                made = self._longest(at, cut, longest_first)
                found.append(made)
                at = made.end
        return found

    def _longest(self, at: int, until: int, tiers: Sequence[Length]) -> SliceSpan:
        for tier in tiers:
            if at % tier == 0 and at + tier <= until and at in self.begins[tier]:
                return SliceSpan(tier, at, at + tier)
        return SliceSpan(SLICES, at, self.vector.end(at))

    def missing(self, tiers: Iterable[Length], since: int, until: int) -> Iterator[SliceSpan]:
        """Spans that could be built of closed slices, the latest of the shortest tier first."""
        for tier in sorted(tiers):
            known = self.begins.get(tier, ())
            for end in range(until // tier * tier, since + tier - 1, -tier):
                if end - tier not in known:
                    yield SliceSpan(tier, end - tier, end)


def within(
    segments: Iterable[Segment], spans: Iterable[SliceSpan], tier: Length
) -> Iterator[Segment]:
    """The segments of a tier that may have something of one of the spans."""
    begins = sorted(span.start for span in spans if span.tier == tier)
    for segment in segments:
        if segment.low is not None and segment.high is not None:
            place = bisect_left(begins, segment.low)
            if place < len(begins) and begins[place] <= segment.high:
                yield segment


@dataclass(frozen=True)
class Pieces:
    """Slices of a stream and spans of slices that together cover some time."""

    family: WindowFamily
    """The queries whose windows contain them."""
    leaves: Mapping[Length, StoredStream]
    """The stored rows, by tier."""
    groups: Regroup
    """The aggregation that makes groups of the stored rows."""
    spans: tuple[SliceSpan, ...] | None = None
    """The spans to read; None: all slices."""

    @property
    def bytes(self) -> int:
        return sum(leaf.bytes for leaf in self.leaves.values())

    def of(self, spans: Sequence[SliceSpan]) -> Pieces:
        leaves = {
            tier: replace(leaf, segments=tuple(within(leaf.segments, spans, tier)))
            for tier, leaf in self.leaves.items()
        }
        return replace(self, leaves=leaves, spans=tuple(spans))

    def between(self, first: int, until: int) -> Pieces:
        """The slices that begin between two times."""
        leaf = self.leaves[SLICES]
        kept = [s for s in leaf.segments if s.has_before(until) and not s.ends_before(first)]
        return replace(self, leaves={SLICES: replace(leaf, segments=tuple(kept))})

    @property
    def built(self) -> Built:
        begins = {
            tier: {int(s.low) for s in leaf.segments if s.low is not None}
            for tier, leaf in self.leaves.items()
            if tier != SLICES
        }
        return Built(self.family.vector, begins)

    def batches(self, stored: StoredRows) -> Iterator[pa.RecordBatch]:
        for tier, leaf in self.leaves.items():
            begins = None
            if self.spans is not None:
                begins = pa.array([s.start for s in self.spans if s.tier == tier], pa.int64())
            for batch in stored.batches(leaf):
                if begins is not None:
                    starts = batch.column(self.column).cast(pa.int64())
                    batch = batch.filter(pc.is_in(starts, value_set=begins))
                yield batch

    @property
    def column(self) -> str:
        """The column with the start of a slice or span."""
        assert self.groups.epoch is not None
        return self.groups.keys[self.groups.epoch][0]

    @cached_property
    def _ends(self) -> Mapping[int, int]:
        return {span.start: span.end for span in self.spans or ()}

    def end(self, start: int) -> int:
        """The end of the slice or span that begins there; the start itself when none does."""
        if self.spans is not None:
            return self._ends.get(start, start)
        vector = self.family.vector
        return vector.end(start) if vector.start(start) == start else start


@dataclass(frozen=True)
class DueSlices:
    """All queries over windows of the same streams that are released now. No slice of any of the
    streams has an edge of a window inside, so that overlapping slices are in the same windows.
    """

    members: tuple[DueWindows, ...]
    pieces: tuple[Pieces, ...]
    """The pieces of each stream."""
    compiled: bool

    @classmethod
    def of(
        cls, members: Sequence[DueWindows], pieces: Sequence[Pieces], compiled: bool
    ) -> DueSlices:
        """The work, with as few pieces as the windows can be assembled from."""
        due = tuple(one for one in members if one.ends)
        if not due:
            return cls((), tuple(some.of(()) for some in pieces), compiled)
        first, until = min(one.first for one in due), max(one.until for one in due)
        bounded = first > -ALWAYS // 2 and until < ALWAYS // 2
        if not bounded or sum(len(o.ends) for o in due) > MOST_EDGES:
            return cls(due, tuple(some.between(first, until) for some in pieces), compiled)
        edges = {edge for one in due for edge in one.ends}
        edges |= {edge - one.windows.windows.window.range for one in due for edge in one.ends}

        def needed(some: Pieces) -> Pieces:
            if len(some.leaves) == 1:
                return some.between(first, until)
            return some.of(some.built.cover(first, max(edges), edges))

        return cls(due, tuple(map(needed, pieces)), compiled)

    @property
    def bytes(self) -> int:
        return sum(some.bytes for some in self.pieces)

    def run(self, stored: StoredRows, sink: Sink) -> Iterator[Report]:
        slices = Regrouping(self.pieces[0].groups, self.compiled)
        for some in self.pieces:
            for batch in some.batches(stored):
                slices.take(batch)

        def end(start: int) -> int:
            return max(some.end(start) for some in self.pieces)

        groups = Sequences(slices.blocks(), slices.fields, end)
        for due in self.members:
            with overflow_of(due.windows.query):
                rows = due.rows(groups, slices)
                part = write_part(sink, due.windows.query, due.windows.fields, rows, due.ordered)
                yield "part", part.to_json()


@dataclass(frozen=True)
class DueSpan:
    """A span of slices that is stored for later windows."""

    stream: LowStream
    span: SliceSpan
    pieces: Pieces
    compiled: bool
    home: int = 0
    """The partition that it is of, where each has slices of its own."""

    def run(self, stored: StoredRows, sink: Sink) -> Iterator[Report]:
        del sink
        slices = Regrouping(self.pieces.groups, self.compiled)
        place = self.pieces.groups.epoch
        assert place is not None
        for batch in self.pieces.batches(stored):
            start = np.full(batch.num_rows, self.span.start)
            column = pa.array(start).cast(batch.column(place).type)
            slices.take(batch.set_column(place, self.pieces.column, column))
        key = tier_stream(self.stream.key, self.span.tier)
        kept = Stored(key, self.pieces.column, f"span {self.span.tier}", self.stream.layout)
        with SegmentWriter(Path(stored.store)) as writer:
            for block in slices.blocks():
                rows = finished_columns([block], slices.fields, slices.dictionaries)
                writer.append(kept, "rows", self.home, pack_tuples(rows))
            writer.close()
        yield from writer.reports()


def edge(value: Value) -> int:
    return ALWAYS if value is ALL else int(value)
