"""What a micro-batch lets go of the queries that are computed from closed rows.

In: closed rows, and how far everything is complete. Out: told rows and parts of what is newly
complete: of queries that tasks compute, in one job, and of those that Spark does, in another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TypeAlias

from terascope.analysis.moving import ALL, earlier
from terascope.analysis.promises import Promises
from terascope.analysis.release import complete_below
from terascope.execute.results.parts import Part
from terascope.functions.base import Value
from terascope.plan.expr import Col
from terascope.plan.rel import WEND, Aggregate
from terascope.spark.stream.closed_rows import ClosedRows, rows_by_stream
from terascope.spark.stream.due import Due, DueRange, Told, compute_due, fits
from terascope.spark.stream.high import all_parts
from terascope.spark.stream.joins import DueJoin
from terascope.spark.stream.rows import Leaf
from terascope.spark.stream.strands import DueStrands
from terascope.spark.stream.windows import DueSlices, DueSpan, DueWindows, Pieces
from terascope.streaming.plan import StreamOutput
from terascope.streaming.releasing import released
from terascope.streaming.state.segments import Segment
from terascope.streaming.state.tiers import BUILT_AT_ONCE
from terascope.streaming.windowing import Windowing

Waiting: TypeAlias = tuple[StreamOutput, Sequence[tuple[Value, Value]]]
"""A query, and for each part of its release what is let go: from, and up to."""


class Releasing:
    """The queries of one micro-batch."""

    def __init__(
        self,
        closed: ClosedRows,
        promises: Promises,
        fresh: Sequence[Segment],
        merges: Sequence[Due] = (),
    ) -> None:
        """`fresh`: what came with this batch; `merges`: what else is to be done in the same job."""
        self._merges = merges
        self._closed = closed
        self._wiring, self._state = closed.wiring, closed.state
        self._fresh = fresh
        self._promises = replace(promises, present=self._present)

    def run(self) -> list[Told]:
        """The rows of all queries, as far as they are complete; the state says so afterwards."""
        plan, state = self._wiring.plan, self._state
        waiting: list[Waiting] = []
        for output in plan.outputs:
            progress = state.queries[output.name]
            if output.release is None:
                if output.low is not None:
                    progress.until = state.streams[plan.low[output.low].key].until
                progress.ended = state.ended
                continue
            bounds = self._bounds(output)
            if bounds is None:
                continue
            waiting.append((output, bounds))
            if output.release.kind != "at_once":
                progress.bounds = [low if above is ALL else above for low, above in bounds]
                progress.ended = state.ended
        due: list[Due] = [*self._merges]
        computed: list[Waiting] = []
        for members in together(waiting):
            made = self._due(members)
            if made is None or not fits(made, self._wiring.sink.memory_bytes):
                computed += members
            elif made.bytes:  # nothing is made of nothing
                due.append(made)
        due += self._spans()
        closed = self._closed
        told = compute_due(closed.spark, closed.stored, self._wiring.sink, due)
        return [*told, *(("part", part.told()) for part in self._computed(computed))]

    def _due(self, members: Sequence[Waiting]) -> Due | None:
        """Queries that tasks compute of closed rows."""
        output, bounds = members[0]
        plan, release = self._wiring.plan, output.release
        assert release is not None
        at_once = release.kind == "at_once"
        leaves = self._fresh_leaves if at_once else self._leaves
        if output.windowing is not None:
            due = [DueWindows.of(o.windowing, DueRange(*b[0])) for o, b in members if o.windowing]
            pieces = [self._pieces(one, output.windowing) for one in output.windowing.by_stream]
            return DueSlices.of(due, pieces, self._wiring.sink.compiled)
        range_ = DueRange(*bounds[0], release.parts[0].descending) if bounds else None
        if output.pairing is not None and output.tied is not None and range_ is not None:
            left, right = (leaves[plan.low[side.stream].name] for side in output.pairing.sides)
            order = output.output.order
            return DueJoin(output.pairing, left, right, output.tied, range_, order, output.ordered)
        if output.strands is not None:
            found = tuple(leaves[strand.stream] for strand in output.strands.strands)
            return DueStrands(output.strands, found, range_)
        return None

    def _pieces(self, windowing: Windowing, now: Windowing) -> Pieces:
        """The slices of a query, read as those of the stream that gets tuples now."""
        plan = self._wiring.plan
        own, shown = plan.by_name[windowing.stream], plan.by_name[now.stream]
        leaves = self._closed.tiers(own, shown, self._kept)
        return Pieces(plan.windows[own.name], leaves, now.slices)

    def _spans(self) -> Iterator[DueSpan]:
        """Slices that are put together for windows to come."""
        plan = self._wiring.plan
        for name, family in plan.windows.items():
            stream, progress = plan.by_name[name], self._state.streams[plan.leaves[name]]
            if not family.tiers or progress.until is None or self._state.ended:
                continue
            own = family.members[0]
            until, pieces = int(progress.until), self._pieces(own, own)
            since = max(until - family.longest, int(progress.kept_from or until - family.longest))
            built = pieces.built
            missing = built.missing(family.tiers, since, until)
            parts = ((span, pieces.of(built.cover(span.start, span.end))) for span in missing)
            there = ((span, some) for span, some in parts if some.bytes)
            for span, some in islice(there, BUILT_AT_ONCE):
                yield DueSpan(stream, span, some, self._wiring.sink.compiled)

    @cached_property
    def _kept(self) -> dict[str, tuple[Segment, ...]]:
        """The rows that the store has, by stream."""
        return rows_by_stream(self._state.segments)

    @cached_property
    def _leaves(self) -> dict[str, Leaf]:
        """What the store has, for all queries of the batch."""
        return self._closed.leaves(self._state.segments)

    @cached_property
    def _fresh_leaves(self) -> dict[str, Leaf]:
        return self._closed.leaves(self._fresh)

    def _computed(self, computed: Sequence[Waiting]) -> list[Part]:
        """Queries that Spark computes, in one job."""
        plan = self._wiring.plan
        if not computed:
            return []
        high = self._closed.high_level(self._state.segments)
        # What is not ordered waits for nothing: only what is new is looked at.
        fresh = self._closed.high_level(self._fresh)
        frames = []
        for output, bounds in computed:
            assert output.release is not None
            at_once = output.release.kind == "at_once"
            trees = plan.trees.streams
            if not at_once:
                trees = released(trees, output.release, bounds)
            frames.append((fresh if at_once else high).told(output, trees, self._wiring.sink))
        return all_parts(frames)

    def _bounds(self, output: StreamOutput) -> list[tuple[Value, Value]] | None:
        """For each part of a query's release what is let go: from, and up to; None: nothing."""
        release = output.release
        assert release is not None
        progress = self._state.queries[output.name]
        if progress.ended:
            return None
        if release.kind == "at_once":
            return []
        if self._state.ended:
            return [(low, ALL) for low in progress.lows(len(release.parts))]
        if release.kind == "at_end":
            return None
        below = complete_below(release, self._promises)
        lows = progress.lows(len(below))
        # A query that came later may begin after what is complete.
        bounds = [
            (low, low if earlier(high, low, part.trend) else high)
            for low, high, part in zip(lows, below, release.parts, strict=True)
        ]
        return bounds if any(low != high for low, high in bounds) else None

    def _present(self, rel: Aggregate) -> Value:
        """Where the last complete row of an aggregation stands that was made of tuples."""
        wiring, full = self._wiring, replace(rel, emit_empty=None)
        name = next((n for n, e in rel.keys if e == Col(WEND, e.type)), rel.keys[0][0])
        complete = self._promises.of(Col(name, rel.type_of(name)), full)
        if complete is None or complete is ALL:
            return None
        if wiring.present.get(rel, (None, None))[0] != complete:
            high = self._closed.high_level(self._state.segments)
            last = high.last(full, name, complete, wiring.plan.trees.streams)
            wiring.present[rel] = complete, last
        return wiring.present[rel][1]


def together(waiting: Sequence[Waiting]) -> list[list[Waiting]]:
    """Queries over windows of the same slices, and each of the others by itself."""
    found: dict[tuple[str, ...], list[Waiting]] = {}
    for output, bounds in waiting:
        windowing = output.windowing
        which = ("query", output.name) if windowing is None else ("slices", *windowing.streams)
        found.setdefault(which, []).append((output, bounds))
    return list(found.values())
