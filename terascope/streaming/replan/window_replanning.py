"""Re-planning of windows: which of them share slices follows the rate of tuples.

In: after every micro-batch how many tuples passed next to the source, and the slices that it
closed. Out: now and then other compositions, to be put in force between two batches. Those in force
and the best ones are compared at the measured traffic whenever slices close. What is measured is
the event time between two closings, so that it does not matter how fast a stream is read. When the
best would save more than 15% for three slices one after the other, and the last change was a minute
ago, it is time for a change, as it is for trees.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from terascope.config import Config
from terascope.physical.split.slicing import SliceFamily, ticks
from terascope.physical.stream.plan import LowStream, StreamPlan
from terascope.physical.stream.slice_streams import SliceStream, keys_of_family
from terascope.plan.show import show_expr
from terascope.sharing.compositions import MOST_RETIRED, Composition, best_clusters, recomposed
from terascope.sharing.windows import Cluster, Groups, TupleTraffic, fitted, total_cost
from terascope.streaming.heartbeat import BatchReport
from terascope.streaming.replan.sharing_status import ClusterStatus, WindowStatus
from terascope.streaming.replan.tree_choice import Patience
from terascope.streaming.replan.window_plans import WindowPlans, family_key
from terascope.streaming.state.state import StreamState

SAVE_SECONDS: Final = 10.0
"""The least time between two savings of the measured traffic."""

SMOOTHED: Final = 3
"""The number of closings over which traffic is averaged."""


@dataclass(frozen=True)
class Judged:
    """The compositions of a family at the last measured traffic."""

    traffic: TupleTraffic
    best: tuple[Cluster, ...]
    gain: float
    """The share of the present cost that the best composition would save."""


@dataclass
class WatchedWindows:
    """One family of a running set."""

    family: SliceFamily
    second: int
    """The units of its time in a second."""
    composition: Composition
    measuring: Measuring | None
    may_change: bool
    pinned: bool = False
    """Whether tumbling windows cannot be released in another way."""
    slices: int = 0
    """The slices that closed since the family was judged last."""
    judged: Judged | None = None

    def judge(self, least_core: float) -> Judged | None:
        """Compare compositions. `least_core`: the least cost of windows, in cores."""
        known = self.composition.traffic.groups
        traffic = None if self.measuring is None else self.measuring.traffic(known)
        if traffic is None:
            return None
        before, gain = self.composition, 0.0
        best = before.clusters
        now = total_cost(best, traffic)
        if self.may_change and now * self.second >= least_core * 1e9:
            best = best_clusters(before, before.windows, traffic, self.pinned)
            gain = 1 - total_cost(best, traffic) / now
        return Judged(traffic, best, gain)


class WindowReplanner:
    """Ingests the report of every batch, and finds better compositions of windows."""

    def __init__(
        self,
        plan: StreamPlan,
        plans: WindowPlans,
        config: Config,
        folder: Path,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`plans`: the compositions in force; `folder`: of the run."""
        self._plan = plan
        self._plans = plans
        self._config = config
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._saved = clock()
        self._rest_until = 0.0
        self._watched = {family_key(one.family): one for one in self._families()}
        last = max((one.composition.since for one in self._watched.values()), default=0.0)
        self._patience = Patience(config, last)

    def _families(self) -> Iterator[WatchedWindows]:
        slicing, config = self._plan.slicing, self._config
        free = config.replan_windows and config.share_tables != "always" and slicing.mode == "cost"
        for family in slicing.compositions:
            made = self._plans.known[family_key(family)]
            several = len(made.windows) > 1
            if several or not all(cluster.own for cluster in made.clusters):
                second = ticks(slicing.scans[family], family.time)
                measuring = Measuring.of(family, self._plan)
                yield WatchedWindows(family, second, made, measuring, free and several)

    def ingest(self, report: BatchReport) -> None:
        with self._lock:
            resting = self._clock() < self._rest_until
            began = time.thread_time()
            for key, one in self._watched.items():
                closed = None if one.measuring is None else one.measuring.ingest(report)
                one.slices += 0 if closed is None else closed.slices
                if not one.slices or resting:
                    continue
                one.judged = one.judge(self._config.replan_least_core)
                if one.judged is not None:
                    self._plans.latest[key] = one.judged.traffic
                    self._patience.note(key, one.judged.gain, one.slices)
                one.slices = 0
            if not resting:
                spent = time.thread_time() - began
                self._rest_until = self._clock() + spent / self._config.replan_core
            if self._clock() - self._saved > SAVE_SECONDS:
                self._save()

    def _save(self) -> None:
        self._plans.save(self._folder)
        self._saved = self._clock()

    def close(self) -> None:
        """Save the measured traffic for a later run."""
        with self._lock:
            if self._plans.latest:
                self._save()

    def due(self) -> dict[str, Composition]:
        """The better compositions that are due, by the key of a family."""
        with self._lock:
            now = self._clock()
            found = {key: self._changed(self._watched[key], now) for key in self._patience.due(now)}
            return {key: made for key, made in found.items() if made is not None}

    def _changed(self, one: WatchedWindows, now: float) -> Composition | None:
        if one.judged is None or len(one.composition.retired) >= MOST_RETIRED:
            return None
        made = recomposed(one.composition, one.judged.best, one.judged.traffic, now)
        return None if set(made.clusters) == set(one.composition.clusters) else made

    def pin(self, keys: Iterable[str]) -> None:
        """Keep the tumbling windows of some families as they are."""
        with self._lock:
            for key in keys:
                self._watched[key].pinned = True
            self._patience.change(keys, self._clock())

    def put_in_force(self, changed: dict[str, Composition]) -> None:
        """Save other compositions, between two batches: the next plan of the run uses them.

        Raises:
            StreamError: they cannot be written down.
        """
        with self._lock:
            self._plans.known |= changed
            self._save()

    # ---- status

    def status(self) -> tuple[WindowStatus, ...]:
        with self._lock:
            return tuple(map(self._status, self._watched.values()))

    def _status(self, one: WatchedWindows) -> WindowStatus:
        made, asked = one.composition, self._plan.slicing.asked.get(one.family, {})
        costs = made.alternatives | {"chosen": made.cost()}
        microseconds = one.second / 1000
        clusters = tuple(
            ClusterStatus(
                tuple(q for w in c.windows for q in asked.get(w, ())),
                tuple(f"{w.range}/{w.slide}" for w in c.windows),
                str(c.vector),
            )
            for c in made.clusters
        )
        return WindowStatus(
            f"{one.family.scan[1]}.{show_expr(one.family.time)}",
            tuple(sorted(show_expr(key) for key in one.family.keys)),
            clusters,
            made.traffic.rate * one.second,
            made.traffic.known,
            made.since,
            {n: None if cost is None else cost * microseconds for n, cost in costs.items()},
            None if one.judged is None else one.judged.traffic.rate * one.second,
            0.0 if one.judged is None else max(0.0, one.judged.gain),
            len(made.retired),
        )


@dataclass(frozen=True)
class Closing:
    """The slices that were closed between two batches."""

    tuples: int
    time: int
    slices: int
    groups: int | None
    """The rows of all these slices; None: the stream has other keys than the family."""


@dataclass
class Measuring:
    """Measures the tuples of one family by one of its streams."""

    stream: LowStream
    sliced: SliceStream
    keys: int
    grouped: bool
    """Whether the store has rows of the stream, which are the groups of the family."""
    until: int | None = None
    passed: int = 0
    closings: deque[Closing] = field(default_factory=lambda: deque(maxlen=SMOOTHED))

    @staticmethod
    def of(family: SliceFamily, plan: StreamPlan) -> Measuring | None:
        """The measuring of a family; None: no stream of it receives tuples."""
        keys = keys_of_family(family)
        found = list(plan.slices_of(family, retired=False))
        if not found:
            return None
        stream, sliced = min(
            found,
            key=lambda one: (one[1].scale > 1, one[1].keys != keys, bool(one[1].vector.gaps)),
        )
        return Measuring(stream, sliced, len(keys), sliced.keys == keys and sliced.scale == 1)

    def ingest(self, report: BatchReport) -> Closing | None:
        """Ingest a batch; return what it closed."""
        self.passed += sum(beat.passed.get(self.stream.name, 0) for beat in report.beats)
        progress = report.state.streams.get(self.stream.key)
        until = None if progress is None else progress.until
        reached = None if until is None else int(until) * self.sliced.scale
        if reached is None or report.state.ended:
            return None
        if self.until is not None and reached <= self.until:
            return None
        before, self.until = self.until, reached
        tuples, self.passed = self.passed, 0
        if before is None:  # tuples of earlier slices may be among them
            return None
        time = reached - before
        each = self.sliced.vector.period / len(self.sliced.vector.lengths)
        rows = self._rows(report.state, before, reached) if self.grouped else None
        closed = Closing(tuples, time, max(1, round(time / each)), rows)
        self.closings.append(closed)
        return closed

    def _rows(self, state: StreamState, since: int, until: int) -> int:
        """The rows of the slices that begin between two times."""
        return sum(
            segment.rows
            for segment in state.segments
            if segment.kind == "rows"
            and segment.stream == self.stream.key
            and segment.low is not None
            and segment.high is not None
            and since <= segment.low
            and segment.high < until
        )

    def traffic(self, before: Groups) -> TupleTraffic | None:
        """The traffic of the last closings; None: there were none. `before`: the assumed groups
        where they were not counted.
        """
        if not self.closings:
            return None
        tuples = sum(one.tuples for one in self.closings)
        time = sum(one.time for one in self.closings)
        vector = self.sliced.vector
        kept = sum(length * times for length, times in vector.kept.items())
        rate = tuples / time * vector.period / kept
        slices = sum(one.slices for one in self.closings)
        known = [one.groups for one in self.closings if one.groups]
        groups = before
        if self.keys and tuples and len(known) == len(self.closings):
            groups = fitted(tuples / slices, sum(known) / slices)
        return TupleTraffic(rate, groups)
