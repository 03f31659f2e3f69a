"""The micro-batches of a running set: slices close, rows are released, the batch is committed.

In: the reports of a batch's tasks, and the state before it. Out: the slice store grows, slices
close, rows of queries are emitted, and the state of the batch is put in place, in an order in which
a process may be killed between any two steps: segments -> parts -> manifests -> state -> removal of
files that the state before the last one needed. A batch that is run again finds the files of its
first run.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from terascope.analysis.moving import ALL
from terascope.analysis.watermarks import Watermarks
from terascope.diagnostic import OutputError
from terascope.execute.results.parts import Part
from terascope.execute.results.result_files import in_sequence
from terascope.functions.base import Value
from terascope.physical.stream.plan import RunningStream
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.expr import Col
from terascope.plan.rel import Project
from terascope.streaming.closing import (
    ClosingSlices,
    due,
    epoch_watermark,
    ingest_heartbeats,
    portion_of,
    scan_watermarks,
    scattered,
)
from terascope.streaming.context import Report, RunContext, StreamEngine
from terascope.streaming.heartbeat import BatchReport, Heartbeat
from terascope.streaming.release import Releasing, run_due
from terascope.streaming.replan.samples import TupleSample
from terascope.streaming.sources import closed_columns, pass_by
from terascope.streaming.state.crash import crash_here
from terascope.streaming.state.segments import Layouts, Segment
from terascope.streaming.state.state import (
    StreamProgress,
    StreamState,
    remove_unneeded,
    unpacked_offset,
)
from terascope.streaming.stored_rows import StoredStream, state_fields, state_stream
from terascope.streaming.tasks.read import CloseSlices
from terascope.streaming.tasks.work import DueMerge

NO_LIMIT = 1 << 62
GRACE_SECONDS = 5.0
"""The assumed difference of clocks. Files that no state refers to are removed when they are older
than the batch; a younger file may be one that a task is still writing."""


class MicroBatch:
    def __init__(
        self,
        context: RunContext,
        engine: StreamEngine,
        number: int,
        state: StreamState,
        offset: Mapping[str, Any],
        reports: Sequence[Report],
    ) -> None:
        self._context = context
        self._engine = engine
        self._number = number
        self.state = state
        self._told_offset = offset
        self._offset = unpacked_offset(offset)
        self._parts: dict[str, list[Part]] = {}
        began = time.thread_time_ns()
        self._beats = [Heartbeat.of_text(t) for k, t in reports if k == "heartbeat"]
        self._measures: list[dict[str, Any]] = []
        self._samples = [TupleSample.of(t) for k, t in reports if k == "sample"]
        self._values = [text for kind, text in reports if kind == "values"]
        self._heartbeat_ns = time.thread_time_ns() - began
        self._new_bytes = 0
        self._fresh: list[Segment] = []
        self._emitted: dict[str, SliceValue] = {}
        """The slice before which reading tasks emitted rows, by the key of a stream."""
        self._hops = [("driver", time.time())]
        self._ingest(reports)

    def _ingest(self, reports: Iterable[Report]) -> None:
        for kind, text in reports:
            if kind == "segment":
                segment = Segment(*json.loads(text))
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
            elif kind == "measures":
                self._measures.append(json.loads(text))

    # ---- slices

    def run(self) -> None:
        state = self.state
        self._context.partition_values.take(self._number, self._values, self._fresh)
        began = time.thread_time_ns()
        ingest_heartbeats(state, self._beats, self._offset)
        self._heartbeat_ns += time.thread_time_ns() - began
        state.peak_bytes = max(state.peak_bytes, self._new_bytes)
        self._watermarks = self._current_watermarks()
        if pass_by(state, self._offset, self._context.plan, self._watermarks):
            self._watermarks = self._current_watermarks()
        self._close_groups()
        self._hops.append(("merge", time.time()))
        self._watermarks = self._current_watermarks()
        for running in self._context.plan.running:
            if self._live_on(running):
                self._watermarks = self._current_watermarks()
        merges = self._disordered()
        releasing = Releasing(
            self._context, self._engine, self.state, self._watermarks, self._fresh, merges
        )
        self._ingest(releasing.run())
        self._replace(merges)
        merges = self._disordered()  # rows of outer joins that lack a side
        self._ingest(run_due(self._context, self._engine, state, merges))
        self._replace(merges)
        known = {rel: value for rel, (_, value) in self._context.present.items()}
        self._watermarks = replace(self._watermarks, present=known.get)
        self._hops.append(("high level", time.time()))
        self._context.expire(state)
        self._context.partition_values.expire(state.segments)

    def _current_watermarks(self) -> Watermarks:
        """The watermarks of every stream of the plan, from those of the low-level streams."""
        plan = self._context.plan
        limits: dict[str, tuple[str, Value]] = {}
        if not self.state.ended:
            for stream in plan.low:
                if stream.value is not None and stream.groups is not None:
                    until = self.state.streams[stream.key].until
                    limits[stream.name] = stream.value, until
            for running in plan.running:
                limits[running.name] = running.value, self.state.streams[running.key].until
        scan = scan_watermarks(self.state.seen, self._context.live.skew_ns, self.state.ended)
        return Watermarks(plan.trees, scan, limits=limits)

    def _close_groups(self) -> None:
        plan, state = self._context.plan, self.state
        unlimited = Watermarks(plan.trees, self._watermarks.scan)
        portion = portion_of(state)
        states = self._context.states
        intended = {} if state.ended else states.intended(self._number, self._told_offset)
        jobs: list[ClosingSlices] = []
        reached: dict[str, Any] = {}
        for stream in plan.low:
            if stream.groups is None:
                continue
            watermark = ALL if state.ended else epoch_watermark(stream, unlimited)
            if stream.key in intended:
                until, made = due(stream, state, intended[stream.key], NO_LIMIT)
            elif intended:
                # The batch was begun by another set. Windows that have slices of this stream were
                # released with their earlier slices: this stream must not hold them back.
                until, made = due(stream, state, watermark, NO_LIMIT)
            else:
                emitted = self._emitted.get(stream.key)
                until, made = due(stream, state, watermark, portion, emitted)
            reached[stream.key] = until
            jobs += made
            if not made:
                jobs += scattered(stream, state)
        if not state.ended and jobs:
            states.intend(self._number, self._told_offset, reached)
        reports = self._closed(jobs)
        done = {s for slices in jobs if slices.together for s in slices.segments}
        state.segments = [s for s in state.segments if s not in done]
        self._ingest(reports)
        for key, until in reached.items():
            progress = state.streams[key]
            progress.until, progress.ended = until, state.ended
        self._drop_closed()

    def _closed(self, jobs: Sequence[ClosingSlices]) -> list[Report]:
        """Close slices, in one task for each destination."""
        work: dict[int, tuple[ClosingSlices, ...]] = {}
        for slices in jobs:
            work[slices.destination] = (*work.get(slices.destination, ()), slices)
        context, state = self._context, self.state
        tasks = [
            CloseSlices(
                context.plan.deliveries.targets,
                context.stored,
                context.sink,
                str(context.folder.slices),
                work[home],
                Layouts(state.layouts),
                state.starts,
            )
            for home in sorted(work)
        ]
        return self._engine.run_tasks(tasks) if tasks else []

    def _drop_closed(self) -> None:
        """Drop the partials of closed slices, late ones included."""

        def is_closed(segment: Segment) -> bool:
            one = self.state.streams.get(segment.stream)
            if segment.kind != "groups" or one is None:
                return False
            return one.ended or (one.until is not None and segment.ends_before(one.until))

        self.state.segments = [s for s in self.state.segments if not is_closed(s)]

    # ---- rows in order

    def _disordered(self) -> list[DueMerge]:
        """The queries whose parts have to be merged to be in order. The parts of all other queries
        are put into a sequence in which their rows are in order.
        """
        found: list[DueMerge] = []
        for output in self._context.plan.outputs:
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
        """Remove the parts that were merged."""
        for part in (part for merge in merges for part in merge.parts):
            part.path.unlink(missing_ok=True)
            self._parts[part.query].remove(part)

    # ---- running aggregates

    def _live_on(self, running: RunningStream) -> bool:
        """Compute the complete epochs of a running aggregate; return whether there were any."""
        state, context = self.state, self._context
        progress = state.streams[running.key]
        if progress.ended:
            return False
        others = {n: one for n, one in self._watermarks.limits.items() if n != running.name}
        unlimited = replace(self._watermarks, limits=others)
        rel = running.rel
        column = Col(running.value, rel.type_of(running.value))
        reached = unlimited.of(column, rel)
        last = context.horizons(state).of(rel.keys[0][1], rel.source)
        if context.live.speed is not None and reached not in (None, ALL) and last is not None:
            # Sources are replayed: as in a batch, only tuples move time, not heartbeats.
            reached = min(reached, last + 1)
        if reached is not ALL and not is_due(reached, progress):
            return False
        high = self._engine.high_level(context, state, state.segments)
        if reached is ALL:
            if last is None:
                epochs = Project(rel.source, ((running.value, rel.keys[0][1]),))
                last = high.last(epochs, running.value)
            reached = None if last is None else last + 1
        if not is_due(reached, progress):
            progress.ended = state.ended
            return False
        before = [s for s in state.segments if s.stream == state_stream(running.key)]
        alive = StoredStream(state_fields(rel), tuple(before))
        low = None if progress.until is None else int(progress.until)
        reports = high.running_step(running, alive, low, int(reached))
        state.segments = [s for s in state.segments if s not in before]
        self._ingest(reports)
        progress.until, progress.ended = reached, state.ended
        return True

    # ---- the end of a batch

    def commit(self) -> BatchReport:
        context, state = self._context, self.state
        state.batch = self._number
        state.offset = dict(self._told_offset)
        state.closed = closed_columns(context.plan, state)
        delivered: dict[str, int] = {}
        for name, result in context.results.items():
            progress = state.queries.get(name)
            until = None if progress is None else progress.bounds or progress.until
            delivered[name] = result.deliver(self._number, self._parts.pop(name, []), until)
            crash_here("manifest")
        assert not self._parts, f"rows of unknown queries: {sorted(self._parts)}"
        self._hops.append(("sinks", time.time()))
        crash_here("manifests")
        context.states.save(state)
        crash_here("state")
        kept = context.states.prune()
        remove_unneeded(context.folder.slices, kept, self._hops[0][1] - GRACE_SECONDS)
        crash_here("cleaned")
        return BatchReport(
            self._number, self._offset, state, self._beats, delivered, self._watermarks, 0.0,
            self._hops, heartbeat_ns=self._heartbeat_ns, samples=self._samples,
            measures=self._measures,
        )  # fmt: skip


def is_due(reached: Value, progress: StreamProgress) -> bool:
    """Whether there are complete epochs that were not released yet."""
    return reached is not None and (progress.until is None or reached > progress.until)


class Resting(Exception):
    """A batch came while the stream was being stopped; it runs when the stream resumes."""


class Pipeline:
    def __init__(
        self,
        context: RunContext,
        state: StreamState,
        watch: Callable[[BatchReport], None],
    ) -> None:
        self.context = context
        self._watch = watch
        self.state = state
        self._working = threading.Lock()
        """Held while a batch runs."""
        self._resting = False

    def run(self, number: int, read: Callable[[], list[Report]], engine: StreamEngine) -> None:
        """Run a batch; `read` runs its reading tasks."""
        with self._working:
            if self._resting:  # were it to return, Spark would take the batch for done
                raise Resting(f"batch {number} was not begun: the stream is being stopped")
            self._run(number, read, engine)

    def rest(self) -> None:
        """Begin no other batch, and return when none is running. Stopping Spark's stream during a
        batch would wait for that batch.
        """
        with self._working:
            self._resting = True

    def _run(self, number: int, read: Callable[[], list[Report]], engine: StreamEngine) -> None:
        began = time.monotonic()
        reports = read()
        crash_here("stored")
        at = next((text for kind, text in reports if kind == "offset"), None)
        if at is None:  # a batch without tasks changes nothing
            return
        offset = json.loads(at)
        known = self.context.states.load(number)
        if known is not None and known.offset == offset:
            # Spark runs a batch again that is done: its parts were delivered already.
            for kind, text in reports:
                if kind == "part":
                    Part.of(text).path.unlink(missing_ok=True)
            self.state = known
            return
        batch = MicroBatch(self.context, engine, number, self._before(number), offset, reports)
        batch.run()
        crash_here("parts")
        report = batch.commit()
        self.state = report.state
        report.seconds = time.monotonic() - began
        self._watch(report)

    def _before(self, number: int) -> StreamState:
        if self.state.batch < number:
            return self.state.copy()
        found = self.context.states.newest(number - 1)
        if found is None:
            raise OutputError(
                f"the state before batch {number} is gone from '{self.context.folder.state}':"
                " begin anew with another --checkpoint"
            )
        return found
