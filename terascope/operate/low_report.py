"""The work of the low level since the run began, query by query.

In: the heartbeats of the tasks, with their counters and the time at which each operator passed them
on (dissertation 4.6). Out: a `LowStatus` for each low-level stream, and the last traces.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

from terascope.operate.status import LowStatus, OperatorStatus, Trace
from terascope.physical.operators import Measure, measures_from, summed
from terascope.physical.stream.plan import LowStream
from terascope.streaming.heartbeat import BatchReport, Heartbeat
from terascope.units import NANOSECONDS

KEPT_TRACES: Final = 16
TRACES_A_BATCH: Final = 4
AT_WORK: Final = ("low level", "slice store")
"""The hops between which a task read its tuples."""


class LowReporter:
    """Adds up the counters of heartbeats."""

    def __init__(
        self, streams: Sequence[LowStream], readers: Mapping[str, tuple[str, ...]]
    ) -> None:
        """`readers`: by low-level stream, the queries above it."""
        self._done: dict[str, Counter[str]] = {}
        """By low-level stream: its counters, and the nanoseconds of its tasks, for all their
        queries together."""
        self._traces: deque[Trace] = deque(maxlen=KEPT_TRACES)
        self._measures: dict[str, Measure] = {}
        self.follow(streams, readers)

    def follow(self, streams: Sequence[LowStream], readers: Mapping[str, tuple[str, ...]]) -> None:
        """Report on another set; streams that stay keep their counters."""
        self._streams = tuple(streams)
        self._readers = readers
        self._done = {stream.name: self._done.get(stream.name, Counter()) for stream in streams}

    def ingest(self, report: BatchReport) -> None:
        """Ingest the heartbeats of a batch."""
        for beat in report.beats:
            self._add(beat)
        self._measures = summed([self._measures, *map(measures_from, report.measures)])
        for beat in report.beats[:TRACES_A_BATCH]:
            hops = (*beat.hops, *report.hops)
            sources = ", ".join(sorted(beat.interfaces))
            self._traces.append(Trace(f"{report.batch}-{beat.task}", sources, hops))

    def _add(self, beat: Heartbeat) -> None:
        counters = beat.counters
        self._measures = summed([self._measures, measures_from(counters.get("measures", {}))])
        times = dict(beat.hops)
        seconds = times.get(AT_WORK[1], 0.0) - times.get(AT_WORK[0], 0.0)
        for place, name in enumerate(beat.queries):
            if name in self._done:
                done = {kind: counters[kind][place] for kind in ("passed", "evicted", "partials")}
                done |= {"tuples": counters["tuples"], "ns": round(max(0.0, seconds) * NANOSECONDS)}
                self._done[name].update(done)

    def status(self, report: BatchReport | None) -> tuple[LowStatus, ...]:
        """All low-level streams."""
        segments = () if report is None else report.state.segments
        found = []
        for stream in self._streams:
            done = self._done[stream.name]
            groups = sum(s.rows for s in segments if s.stream == stream.key and s.kind == "groups")
            found.append(
                LowStatus(
                    stream.name,
                    self._readers.get(stream.name, ()),
                    done["tuples"],
                    done["passed"],
                    done["passed"] / max(1, done["tuples"]),
                    groups,
                    done["evicted"],
                    done["partials"],
                    done["ns"] / max(1, done["tuples"]),
                )
            )
        return tuple(found)

    @property
    def operators(self) -> tuple[OperatorStatus, ...]:
        """The figures of every operator of a task, in the order of first reports."""
        return tuple(
            OperatorStatus(name=name, **asdict(one)) for name, one in self._measures.items()
        )

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The last traces, newest last."""
        return tuple(self._traces)
