"""The traffic of a family of windows, measured while its slices close.

In: after every micro-batch the number of tuples next to the source, and the value up to which
slices were closed. Out: tuples for each unit of event time, and the number of their groups. The
unit is event time between two closings, so that the result does not depend on the speed of reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from terascope.functions.slices import SliceVector
from terascope.physical.split.slicing import SliceFamily
from terascope.physical.stream.plan import LowStream, StreamPlan
from terascope.physical.stream.slice_streams import keys_of_family
from terascope.sharing.windows import Groups, TupleTraffic, fitted
from terascope.streaming.heartbeat import BatchReport, Heartbeat
from terascope.streaming.state.state import StreamState

SMOOTHED: Final = 3
"""The number of closings over which traffic is averaged."""


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
    vector: SliceVector
    keys: int
    grouped: bool
    """Whether the store has rows of the stream, which are the groups of the family."""
    scale: int = 1
    """The factor from values of the stream to the start of a slice."""
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
        grouped = sliced.keys == keys and sliced.scale == 1
        return Measuring(stream, sliced.vector, len(keys), grouped, sliced.scale)

    def ingest(self, report: BatchReport) -> Closing | None:
        """Ingest a batch; return what it closed."""
        self.passed += passed_by(self.stream.name, report.beats)
        progress = report.state.streams.get(self.stream.key)
        until = None if progress is None else progress.until
        reached = None if until is None else int(until) * self.scale
        if reached is None or report.state.ended:
            return None
        if self.until is not None and reached <= self.until:
            return None
        before, self.until = self.until, reached
        tuples, self.passed = self.passed, 0
        if before is None:  # tuples of earlier slices may be among them
            return None
        time = reached - before
        each = self.vector.period / len(self.vector.lengths)
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
        kept = sum(length * times for length, times in self.vector.kept.items())
        rate = tuples / time * self.vector.period / kept
        slices = sum(one.slices for one in self.closings)
        known = [one.groups for one in self.closings if one.groups]
        groups = before
        if self.keys and tuples and len(known) == len(self.closings):
            groups = fitted(tuples / slices, sum(known) / slices)
        return TupleTraffic(rate, groups)


def passed_by(stream: str, beats: Iterable[Heartbeat]) -> int:
    """The number of tuples that a low-level stream took."""
    found = 0
    for beat in beats:
        passed = dict(zip(beat.queries, beat.counters["passed"], strict=True))
        found += passed.get(stream, 0)
    return found
