"""One micro-batch of a running set: slices close, rows are let go, the batch is committed.

In: the told rows of its tasks, and the state before it. Out: parts, manifests and the next state.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from terascope.analysis.moving import ALL
from terascope.analysis.promises import Promises
from terascope.execute.results.part_order import in_sequence
from terascope.execute.results.parts import Part
from terascope.functions.base import Value
from terascope.plan.expr import Col
from terascope.plan.rel import Read
from terascope.spark.stream.close import Closing, close_slices
from terascope.spark.stream.closed_rows import ClosedRows
from terascope.spark.stream.due import compute_due
from terascope.spark.stream.order import DueMerge
from terascope.spark.stream.release import Releasing
from terascope.spark.stream.rows import Leaf
from terascope.spark.stream.running import (
    furthest_epoch,
    running_step,
    state_fields,
    state_stream,
)
from terascope.spark.stream.source import unpacked_offset
from terascope.spark.stream.wiring import Wiring
from terascope.streaming.closing import (
    Slices,
    closed_columns,
    due,
    hear,
    portion_of,
    scan_promises,
    scattered,
)
from terascope.streaming.heartbeat import Heartbeat
from terascope.streaming.passing import pass_by
from terascope.streaming.plan import LowStream, RunningStream
from terascope.streaming.replan.tuple_samples import TupleSample
from terascope.streaming.report import BatchReport
from terascope.streaming.state.crash import crash_here
from terascope.streaming.state.layouts import Layouts
from terascope.streaming.state.segments import Segment, SliceValue
from terascope.streaming.state.state import Progress, State, remove_unneeded

NO_LIMIT = 1 << 62
GRACE_SECONDS = 5.0
"""How far clocks may differ: files that nobody needs and that are older than a batch are removed
with it; younger ones may be of a task that is still at work.
"""


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
        began = time.thread_time_ns()
        self._beats = [Heartbeat.from_json(json.loads(t)) for k, t in told if k == "heartbeat"]
        self._samples = [TupleSample.of(t) for k, t in told if k == "sample"]
        self._hearing_ns = time.thread_time_ns() - began
        self._new_bytes = 0
        self._fresh: list[Segment] = []
        self._emitted: dict[str, SliceValue] = {}
        """By the key of a stream: tasks emitted slices before this one."""
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
            elif kind == "emitted":
                key, until = json.loads(text)
                self._emitted[key] = max(self._emitted.get(key, until), until)

    # ---- slices

    def run(self) -> None:
        state = self.state
        began = time.thread_time_ns()
        hear(state, self._beats, self._offset)
        self._hearing_ns += time.thread_time_ns() - began
        state.peak_bytes = max(state.peak_bytes, self._new_bytes)
        self._promises = self._promised()
        if pass_by(state, self._offset, self._wiring.plan, self._promises):
            self._promises = self._promised()
        self._close_groups()
        self._hops.append(("merge", time.time()))
        self._promises = self._promised()
        for running in self._wiring.plan.running:
            if self._live_on(running):
                self._promises = self._promised()
        merges = self._disordered()
        self._take(Releasing(self._closed_rows, self._promises, self._fresh, merges).run())
        self._replace(merges)
        merges = self._disordered()  # rows of outer joins that lack a side
        rows = self._closed_rows
        self._take(compute_due(rows.spark, rows.stored, self._wiring.sink, merges))
        self._replace(merges)
        known = {rel: value for rel, (_, value) in self._wiring.present.items()}
        self._promises = replace(self._promises, present=known.get)
        self._hops.append(("high level", time.time()))
        self._wiring.forget(state)

    @property
    def _closed_rows(self) -> ClosedRows:
        return ClosedRows(self._wiring, self._spark, self.state)

    def _promised(self) -> Promises:
        """How far every stream of the plan is complete, given how far the low-level ones are."""
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
            elif intended:
                # The batch was begun by another set. Windows that have slices of this stream were
                # let go by those they had before: this one must not hold them back.
                until, made = due(stream, state, promise, NO_LIMIT)
            else:
                emitted = self._emitted.get(stream.key)
                until, made = due(stream, state, promise, portion, emitted)
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

    # ---- rows in order

    def _disordered(self) -> list[DueMerge]:
        """Queries whose parts are in no sequence in which their rows are in order. The parts of all
        others are put into such a sequence.
        """
        found: list[DueMerge] = []
        for output in self._wiring.plan.outputs:
            parts = self._parts.get(output.name, [])
            full = [part for part in parts if part.rows]
            if not all(part.extents for part in full):
                continue
            placed = in_sequence(full)
            if placed is None:
                found.append(DueMerge(output.fields, output.ordered, tuple(full)))
            else:
                self._parts[output.name] = [*placed, *(part for part in parts if not part.rows)]
        return found

    def _replace(self, merges: Sequence[DueMerge]) -> None:
        """Parts that were merged are gone; what they were merged to is there."""
        for part in (part for merge in merges for part in merge.parts):
            part.path.unlink(missing_ok=True)
            self._parts[part.query].remove(part)

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
        last = wiring.horizons(state).of(rel.keys[0][1], rel.source)
        if wiring.replays and reached not in (None, ALL) and last is not None:
            reached = min(reached, last + 1)
        if reached is not ALL and not is_due(reached, progress):
            return False
        high = self._closed_rows.high_level(state.segments)
        source = high.frame(rel.source, wiring.plan.trees.streams)
        if reached is ALL:
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
            self._hops, hearing_ns=self._hearing_ns, samples=self._samples,
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
