"""One micro-batch of a running set: slices close, rows are let go, the batch is committed.

In: the told rows of its tasks, and the state before it. Out: parts, manifests and the next state.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from terascope.analysis.moving import ALL, earlier
from terascope.analysis.needs import Leaf as AnyLeaf
from terascope.analysis.needs import epoch_needs, needs
from terascope.analysis.promises import Promises
from terascope.analysis.release import complete_below
from terascope.functions.base import Value
from terascope.low.delivery import Sink
from terascope.low.parts import Part
from terascope.plan.expr import Col
from terascope.plan.horizon import Horizons
from terascope.plan.rel import WEND, Aggregate, Read
from terascope.spark.stream_close import Closing, close_slices
from terascope.spark.stream_due import Due, DueRange, compute_due, fits
from terascope.spark.stream_high import HighLevel, all_parts
from terascope.spark.stream_joins import DueJoin
from terascope.spark.stream_rows import Leaf, StoredRows
from terascope.spark.stream_running import (
    furthest_epoch,
    running_step,
    state_fields,
    state_stream,
)
from terascope.spark.stream_source import unpacked_offset
from terascope.spark.stream_strands import DueStrands
from terascope.spark.stream_task import Stored
from terascope.stream.closing import (
    Slices,
    closed_columns,
    due,
    furthest,
    hear,
    portion_of,
    scan_promises,
    scattered,
)
from terascope.stream.crash import crash_here
from terascope.stream.growing_result import GrowingResult
from terascope.stream.heartbeat import Heartbeat
from terascope.stream.layouts import Layouts
from terascope.stream.plan import LowStream, RunningStream, StreamOutput, StreamPlan
from terascope.stream.releasing import released
from terascope.stream.report import BatchReport
from terascope.stream.segments import Segment
from terascope.stream.state import Progress, State, StateFolder, remove_unneeded

NO_LIMIT = 1 << 62
GRACE_SECONDS = 5.0
"""How far clocks may differ: files that nobody needs and that are older than a batch are removed
with it; younger ones may be of a task that is still at work.
"""


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


class Batch:
    """One micro-batch at work."""

    def __init__(
        self,
        wiring: Wiring,
        spark: SparkSession,
        number: int,
        state: State,
        offset: Mapping[str, Any],
        told: Sequence[tuple[str, str]],
    ) -> None:
        self._wiring = wiring
        self._spark = spark
        self._number = number
        self.state = state
        self._told_offset = offset
        self._offset = unpacked_offset(offset)
        self._parts: dict[str, list[Part]] = {}
        self._beats = [Heartbeat.from_json(json.loads(t)) for k, t in told if k == "heartbeat"]
        self._new_bytes = 0
        self._fresh: list[Segment] = []
        self._hops = [("driver", time.time())]
        self._take(told)

    def _take(self, told: Iterable[tuple[str, str]]) -> None:
        """Segments and parts that tasks tell of."""
        for kind, text in told:
            if kind == "segment":
                segment = Segment.of(json.loads(text))
                self.state.segments.append(segment)
                self._fresh.append(segment)
                if segment.kind == "groups":
                    self._new_bytes += segment.length
            elif kind == "part":
                part = Part.of(text)
                self._parts.setdefault(part.query, []).append(part)

    # ---- slices

    def run(self) -> None:
        state = self.state
        hear(state, self._beats, self._offset)
        state.peak_bytes = max(state.peak_bytes, self._new_bytes)
        self._promises = self._promised()
        self._close_groups()
        self._hops.append(("merge", time.time()))
        self._promises = self._promised()
        for running in self._wiring.plan.running:
            if self._live_on(running):
                self._promises = self._promised()
        self._promises = replace(self._promises, present=self._present)
        self._let_go()
        known = {rel: value for rel, (_, value) in self._wiring.present.items()}
        self._promises = replace(self._promises, present=known.get)
        self._hops.append(("high level", time.time()))
        self._forget()

    def _promised(self) -> Promises:
        """How far everything is, given how far low-level streams were closed."""
        plan = self._wiring.plan
        limits: dict[str, tuple[str, Value]] = {}
        if not self.state.ended:
            for stream in plan.low:
                if stream.value is not None and stream.groups is not None:
                    until = self.state.streams[stream.key].until
                    limits[stream.name] = stream.value, until
            for running in plan.running:
                limits[running.name] = running.value, self.state.streams[running.key].until
        scan = scan_promises(self.state.seen, self._wiring.skew_ns, self.state.ended)
        return Promises(plan.trees, scan, limits=limits)

    def _present(self, rel: Aggregate) -> Value:
        """Where the last complete row of an aggregation stands that was made of tuples."""
        wiring, full = self._wiring, replace(rel, emit_empty=None)
        name = next((n for n, e in rel.keys if e == Col(WEND, e.type)), rel.keys[0][0])
        complete = self._promises.of(Col(name, rel.type_of(name)), full)
        if complete is None or complete is ALL:
            return None
        if wiring.present.get(rel, (None, None))[0] != complete:
            high = self._high_level(self.state.segments)
            last = high.last(full, name, complete, wiring.plan.trees.streams)
            wiring.present[rel] = complete, last
        return wiring.present[rel][1]

    def _close_groups(self) -> None:
        plan, state = self._wiring.plan, self.state
        unlimited = Promises(plan.trees, self._promises.scan)
        portion = portion_of(state)
        states = self._wiring.states
        intended = {} if state.ended else states.intended(self._number, self._told_offset)
        jobs: list[Slices] = []
        reached: dict[str, Any] = {}
        for stream in plan.low:
            if stream.groups is None:
                continue
            promise = ALL if state.ended else epoch_promise(stream, unlimited)
            if stream.key in intended:
                until, made = due(stream, state, intended[stream.key], NO_LIMIT)
            else:
                until, made = due(stream, state, promise, portion)
            reached[stream.key] = until
            jobs += made
            if not made:
                jobs += scattered(stream, state)
        if not state.ended and jobs:
            states.intend(self._number, self._told_offset, reached)
        told = self._closed(jobs)
        done = {s for slices in jobs if slices.together for s in slices.segments}
        state.segments = [s for s in state.segments if s not in done]
        self._take(told)
        for key, until in reached.items():
            progress = state.streams[key]
            progress.until, progress.ended = until, state.ended
        self._drop_closed()

    def _closed(self, jobs: Sequence[Slices]) -> list[tuple[str, str]]:
        if not jobs:
            return []
        work: dict[int, tuple[Slices, ...]] = {}
        for slices in jobs:
            work[slices.destination] = (*work.get(slices.destination, ()), slices)
        wiring = self._wiring
        closing = Closing(
            wiring.plan.deliveries.targets,
            wiring.stored,
            wiring.sink,
            str(wiring.folder.slices),
            wiring.sink.memory_bytes,
            work,
            Layouts(self.state.layouts),
            self.state.starts,
        )
        return close_slices(self._spark, closing)

    def _drop_closed(self) -> None:
        """Partials of closed slices, and those that came too late for theirs."""

        def is_closed(segment: Segment) -> bool:
            one = self.state.streams.get(segment.stream)
            if segment.kind != "groups" or one is None:
                return False
            return one.ended or (one.until is not None and segment.ends_before(one.until))

        self.state.segments = [s for s in self.state.segments if not is_closed(s)]

    # ---- groups that live on

    def _live_on(self, running: RunningStream) -> bool:
        """The epochs of running groups that are complete; whether there were any."""
        state, wiring = self.state, self._wiring
        progress = state.streams[running.key]
        if progress.ended:
            return False
        unlimited = replace(self._promises, limits=without(self._promises.limits, running.name))
        rel = running.rel
        column = Col(running.value, rel.type_of(running.value))
        reached = unlimited.of(column, rel)
        if reached is not ALL and not is_due(reached, progress):
            return False
        high = self._high_level(state.segments)
        source = high.frame(rel.source, wiring.plan.trees.streams)
        if reached is ALL:
            last = wiring.horizons(state).of(rel.keys[0][1], rel.source)
            if last is None:
                last = furthest_epoch(rel, source, wiring.plan.job.parameters)
            reached = None if last is None else last + 1
        if not is_due(reached, progress):
            progress.ended = state.ended
            return False
        before = [s for s in state.segments if s.stream == state_stream(running.key)]
        alive = high.read(Leaf(state_fields(rel), tuple(before)))
        low = None if progress.until is None else int(progress.until)
        told = running_step(
            rel, source, alive, wiring.plan.job.parameters, low, int(reached), running.key,
            wiring.folder.slices,
        )  # fmt: skip
        state.segments = [s for s in state.segments if s not in before]
        self._take(told)
        progress.until, progress.ended = reached, state.ended
        return True

    # ---- the high level

    def _let_go(self) -> None:
        """The rows of all queries that are computed from closed rows, as far as they are
        complete.
        """
        plan, state = self._wiring.plan, self.state
        due: list[Due] = []
        computed: list[tuple[StreamOutput, Sequence[tuple[Value, Value]]]] = []
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
            of_tasks = self._due(output, bounds)
            if of_tasks is not None and fits(of_tasks, self._wiring.sink.memory_bytes):
                due.append(of_tasks)
            else:
                computed.append((output, bounds))
            if output.release.kind != "at_once":
                progress.bounds = [low if above is ALL else above for low, above in bounds]
                progress.ended = state.ended
        self._take(compute_due(self._spark, self._stored_rows, self._wiring.sink, due))
        self._compute(computed)

    def _due(self, output: StreamOutput, bounds: Sequence[tuple[Value, Value]]) -> Due | None:
        """A query that tasks compute of closed rows."""
        plan, release = self._wiring.plan, output.release
        if output.pairing is not None and output.tied is not None and bounds:
            leaves = self._leaves(self.state.segments)
            left, right = (leaves[plan.low[side.stream].name] for side in output.pairing.sides)
            return DueJoin(output.pairing, left, right, output.tied, DueRange(*bounds[0]))
        if output.strands is not None and release is not None:
            found = self._leaves(self._fresh if release.kind == "at_once" else self.state.segments)
            leaves_of = tuple(found[strand.stream] for strand in output.strands.strands)
            part = output.strands.part
            within = None if part is None else DueRange(*bounds[0], part.descending)
            return DueStrands(output.strands, leaves_of, within)
        return None

    def _compute(
        self, computed: Sequence[tuple[StreamOutput, Sequence[tuple[Value, Value]]]]
    ) -> None:
        """Queries that Spark computes, in one job."""
        plan = self._wiring.plan
        if not computed:
            return
        high = self._high_level(self.state.segments)
        # What is not ordered waits for nothing: only what is new is looked at.
        fresh = self._high_level(self._fresh)
        frames = []
        for output, bounds in computed:
            assert output.release is not None
            at_once = output.release.kind == "at_once"
            trees = plan.trees.streams
            if not at_once:
                trees = released(trees, output.release, bounds)
            frames.append((fresh if at_once else high).told(output, trees, self._wiring.sink))
        for part in all_parts(frames):
            self._parts.setdefault(part.query, []).append(part)

    def _bounds(self, output: StreamOutput) -> list[tuple[Value, Value]] | None:
        """For each part of a query's release what is let go: from, and up to; None: nothing."""
        release = output.release
        assert release is not None
        progress = self.state.queries[output.name]
        if progress.ended:
            return None
        if release.kind == "at_once":
            return []
        if self.state.ended:
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

    @property
    def _stored_rows(self) -> StoredRows:
        return StoredRows(str(self._wiring.folder.slices), Layouts(self.state.layouts))

    def _leaves(self, segments: Sequence[Segment]) -> dict[str, Leaf]:
        """The streams that are read from the store."""
        plan = self._wiring.plan
        rows: dict[str, list[Segment]] = {}
        for segment in segments:
            if segment.kind == "rows":
                rows.setdefault(segment.stream, []).append(segment)
        found = {
            stream.name: Leaf(
                plan.deliveries.targets[stream.number].fields,
                tuple(rows.get(stream.key, ())),
                stream.texts,
            )
            for stream in plan.low
        }
        for running in plan.running:
            own = tuple(rows.get(running.key, ()))
            found[running.name] = Leaf(running.rel.fields, own)
        return found

    def _high_level(self, segments: Sequence[Segment]) -> HighLevel:
        return HighLevel(
            self._spark,
            self._stored_rows,
            self._leaves(segments),
            self._wiring.plan.job.parameters,
            self._wiring.horizons(self.state),
            self._wiring.tasks,
        )

    def _forget(self) -> None:
        """Rows of the store that can matter no more."""
        plan, state = self._wiring.plan, self.state
        keys, kept_by = plan.leaves, plan.kept_by
        falling = {stream.name for stream in plan.low if stream.descending}
        least: dict[str, Value] = dict.fromkeys(keys.values(), ALL)
        found: list[tuple[AnyLeaf, Value]] = []
        for output in plan.outputs:
            if output.release is None or output.release.kind == "at_once":
                continue
            progress = state.queries[output.name]
            values = (
                [ALL] * len(output.release.parts)
                if progress.ended
                else progress.lows(len(output.release.parts))
            )
            if progress.ended and output.release.kind != "ordered":
                continue
            found += needs(output.release, values, plan.trees, keys, kept_by).items()
        for running in plan.running:
            one = state.streams[running.key]
            if not one.ended:
                found += epoch_needs(running.rel, one.until, plan.trees, keys, kept_by).items()
        for leaf, value in found:
            if isinstance(leaf, str):
                sign = -1 if leaf in falling else 1
                least[keys[leaf]] = smaller(least[keys[leaf]], value, sign)

        def is_over(segment: Segment) -> bool:
            if segment.kind != "rows" or segment.stream not in least:
                return False
            bound = least[segment.stream]
            return bound is ALL or (bound is not None and segment.ends_before(bound))

        state.segments = [s for s in state.segments if not is_over(s)]
        for key, bound in least.items():
            state.streams[key].kept_from = None if bound is ALL else bound

    # ---- the end of a batch

    def commit(self) -> BatchReport:
        wiring, state = self._wiring, self.state
        state.batch = self._number
        state.offset = dict(self._told_offset)
        state.closed = closed_columns(wiring.plan, state)
        delivered: dict[str, int] = {}
        for name, result in wiring.results.items():
            until = None
            if name in state.queries:
                until = state.queries[name].told()
            delivered[name] = result.deliver(self._number, self._parts.pop(name, []), until)
            crash_here("manifest")
        assert not self._parts, f"rows of unknown queries: {sorted(self._parts)}"
        self._hops.append(("sinks", time.time()))
        crash_here("manifests")
        wiring.states.save(state)
        crash_here("state")
        kept = wiring.states.prune()
        remove_unneeded(wiring.folder.slices, kept, self._hops[0][1] - GRACE_SECONDS)
        crash_here("cleaned")
        return BatchReport(
            self._number, self._offset, state, self._beats, delivered, self._promises, 0.0,
            self._hops,
        )  # fmt: skip


def epoch_promise(stream: LowStream, promises: Promises) -> Value:
    """The epoch before which all groups of a stream are complete."""
    assert stream.value is not None
    column = next(f for f in stream.fields if f.name == stream.value)
    return promises.of(Col(column.name, column.type), Read(stream.name, stream.tree_fields))


def is_due(reached: Value, progress: Progress) -> bool:
    """Whether there are epochs that are complete and were not let go."""
    return reached is not None and (progress.until is None or reached > progress.until)


def without(limits: Mapping[str, tuple[str, Value]], name: str) -> dict[str, tuple[str, Value]]:
    return {stream: limit for stream, limit in limits.items() if stream != name}


def smaller(a: Value, b: Value, sign: int) -> Value:
    """The earlier of two bounds, as the store has them; None is before all."""
    if a is None or b is None:
        return None
    other = b if b is ALL else sign * b
    return other if a is ALL else a if other is ALL else min(a, other)
