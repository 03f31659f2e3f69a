"""A status as Prometheus metrics. In: a `Status`. Out: metric families, made anew at every scrape,
so that a source or query that is gone from the set is gone from the metrics, too.

A metric has the name of a field of the status, and its value, unless a function says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from terascope.operate.status import Status
from terascope.units import NANOSECONDS

Measures: TypeAlias = Mapping[str, str | tuple[str, Callable[[Any], float | None]]]
"""By the name of a metric: its help, or its help and its value. A value of None is no sample."""
Labelled: TypeAlias = Iterable[tuple[tuple[str, ...], object]]
"""Objects with the values of their labels."""

RUN_COUNTERS: Final[Measures] = {
    "batches": ("Micro-batches completed.", lambda run: run.batch + 1),
    "restarts": "Restarts after failures.",
    "callback_seconds": "Time in calls of the callback.",
}
RUN_GAUGES: Final[Measures] = {
    "run_started_seconds": ("Start, unix time.", lambda run: run.started),
    "run_updated_seconds": ("Last status, unix time.", lambda run: run.updated),
    "batch_seconds": "Time the last batch took.",
    "callback_waiting_seconds": (
        "How long the run has waited for the call of the callback that is at work.",
        lambda run: 0.0 if run.callback is None else run.callback.seconds,
    ),
    "driver_memory_bytes": "Memory of the driver.",
    "worker_memory_bytes": "Memory of all workers.",
}
STORE_GAUGES: Final[Measures] = {
    "bytes": "Bytes kept for open slices.",
    "files": "Files kept for open slices.",
    "segments": "Segments kept for open slices.",
    "open_slices": "Slices not closed yet.",
    "groups": "Groups kept for open slices.",
}
SOURCE_COUNTERS: Final[Measures] = {
    "tuples": "Tuples read.",
    "bytes": "Bytes read.",
    "late": "Tuples that came after their window was closed.",
    "malformed": "Packets or rows that could not be read.",
    "skipped_bytes": "Bytes of damaged input that were skipped.",
    "heartbeats": ("Heartbeats given.", lambda source: source.heartbeat),
}
SOURCE_GAUGES: Final[Measures] = {
    "watermark_seconds": (
        "Unix time before which no tuple will come any more.",
        lambda source: unix_seconds(source.watermark_ns),
    ),
    "rate": "Tuples a second, lately.",
    "backlog_bytes": "Bytes that are there and not read yet.",
    "silent_seconds": "Time since the last tuple.",
    "heartbeat_age_seconds": "Time since the last heartbeat.",
    "disorder": (
        "Largest disorder seen, in the source's unit.",
        lambda source: source.disorder_observed,
    ),
    "stalled": ("1 while its watermark stands still.", lambda source: source.stalled is not None),
    "away": "1 while it cannot be read.",
    "replay": "1 while it keeps its own clock, far from the wall clock.",
    "left_behind": "1 while others go on without it.",
}
REASON_COUNTERS: Final[Measures] = {
    "malformed_by_reason": (
        "Packets, rows or files that could not be read, by reason; the reasons are a fixed set.",
        float,
    ),
}
QUERY_COUNTERS: Final[Measures] = {
    "rows": "Rows given.",
    "late": "Tuples that came after their window of it was closed.",
}
QUERY_GAUGES: Final[Measures] = {
    "lag_seconds": "How far its closed windows are behind the present.",
    "closed_seconds": (
        "Unix time up to which its windows are closed.",
        lambda query: unix_seconds(query.closed_until_ns),
    ),
    "pending_rows": "Rows kept until their window closes.",
    "pending_bytes": "Bytes kept until their window closes.",
    "open_slices": "Slices not closed yet.",
}
LOW_COUNTERS: Final[Measures] = {
    "tuples": ("Tuples looked at next to the source.", lambda stream: stream.tuples_in),
    "passed": "Tuples that passed its filter.",
    "evicted": "Groups put out of a full table.",
}
TREE_GAUGES: Final[Measures] = {
    "intermediate": "Intermediate aggregates.",
    "tables": (
        "Tables of several aggregations with the same keys.",
        lambda tree: len(tree.tables),
    ),
    "since_seconds": ("When the tree took its place, unix time.", lambda tree: tree.since),
    "gain": "Part of the cost that it was expected to save.",
    "possible_gain": "What another tree would save now.",
    "probes_per_tuple": "Hash operations, counted.",
}
WINDOW_GAUGES: Final[Measures] = {
    "planned_rate": ("Tuples a second that slices were planned for.", lambda family: family.rate),
    "planned_measured": (
        "1: that rate was measured; 0: assumed.",
        lambda family: family.measured,
    ),
    "planned_seconds": ("When slices were planned, unix time.", lambda family: family.since),
    "rate": (
        "Tuples a second of the slices that were closed last.",
        lambda family: family.rate_now,
    ),
    "clusters": ("Clusters of windows that share slices.", lambda family: len(family.clusters)),
    "retired": "Clusters without new tuples that windows still have.",
    "possible_gain": "What other slices would save now.",
}
COST_GAUGES: Final[Measures] = {
    "cost": (
        "What an alternative costs at the planned rate, in microseconds a second.",
        lambda cost: cost,
    ),
}
INFO_GAUGES: Final[Measures] = {
    "info": ("What is running; the value is always 1.", lambda run: 1),
}


@dataclass(frozen=True)
class StatusCollector(Collector):
    """The metrics of the newest status; empty before the first one."""

    latest: Callable[[], Status | None]

    def collect(self) -> Iterator[Metric]:
        status = self.latest()
        if status is not None:
            yield from status_families(status)


def status_families(status: Status) -> Iterator[Metric]:
    """All families of a status."""
    run = status.run
    yield from families(
        "run", ("set", "state"), [((run.set_name, run.state), run)], {}, INFO_GAUGES
    )
    yield from families("", (), [((), run)], RUN_COUNTERS, RUN_GAUGES)
    yield from families("store", (), [((), status.store)], {}, STORE_GAUGES)
    sources = [((s.name,), s) for s in status.sources]
    yield from families("source", ("source",), sources, SOURCE_COUNTERS, SOURCE_GAUGES)
    reasons = [((*n, why), many) for n, s in sources for why, many in s.malformed_reasons.items()]
    yield from families("source", ("source", "reason"), reasons, REASON_COUNTERS, {})
    queries = [((q.name,), q) for q in status.queries]
    yield from families("query", ("query",), queries, QUERY_COUNTERS, QUERY_GAUGES)
    low = [((stream.name,), stream) for stream in status.low]
    yield from families("low", ("stream",), low, LOW_COUNTERS, {})
    trees = [((tree.source, tree.queries[0]), tree) for tree in status.trees]
    yield from families("tree", ("source", "first"), trees, {}, TREE_GAUGES)
    labels = ("on", "keys", "first")
    windows = [((w.on, ", ".join(w.keys), w.queries[0]), w) for w in status.windows if w.queries]
    yield from families("windows", labels, windows, {}, WINDOW_GAUGES)
    costs = [((*which, name), cost) for which, w in windows for name, cost in w.costs.items()]
    yield from families("windows", (*labels, "alternative"), costs, {}, COST_GAUGES)


def families(
    subject: str, labels: tuple[str, ...], things: Labelled, counters: Measures, gauges: Measures
) -> Iterator[Metric]:
    """A family for each measure, with a sample for each object whose value is known."""
    prefix = f"terascope_{subject}_" if subject else "terascope_"
    kinds = ((CounterMetricFamily, counters), (GaugeMetricFamily, gauges))
    for kind, measures in kinds:
        for name, measure in measures.items():
            help, value = (measure, None) if isinstance(measure, str) else measure
            family = kind(prefix + name, help, labels=labels)
            for values, thing in things:
                amount = getattr(thing, name) if value is None else value(thing)
                if amount is not None:
                    family.add_metric(values, amount)
            yield family


def unix_seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / NANOSECONDS
