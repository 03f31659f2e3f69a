"""A status as Prometheus metrics. In: a `Status`. Out: metric families, made anew at every scrape,
so that a source or query that is gone is gone here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from terascope.operate.status import QueryStatus, SourceStatus, Status
from terascope.streaming.replan.sharing_status import TreeStatus, WindowStatus
from terascope.units import NANOSECONDS

Row: TypeAlias = tuple[tuple[str, ...], float | None]
"""The labels of a sample, and its value; None when there is none."""


class StatusCollector(Collector):
    """Asks for the newest status when it is asked."""

    def __init__(self, latest: Callable[[], Status | None]) -> None:
        self._latest = latest

    def collect(self) -> Iterator[Metric]:
        """All families; none before the first status."""
        status = self._latest()
        if status is not None:
            yield from run_families(status)
            yield from source_families(status.sources)
            yield from query_families(status.queries)
            yield from low_families(status)
            yield from tree_families(status.trees)
            yield from window_families(status.windows)


def counter(
    name: str, help: str, rows: Iterable[Row], labels: tuple[str, ...] = ()
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, help, labels=labels)
    for values, amount in rows:
        if amount is not None:
            family.add_metric(values, amount)
    return family


def gauge(
    name: str, help: str, rows: Iterable[Row], labels: tuple[str, ...] = ()
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help, labels=labels)
    for values, amount in rows:
        if amount is not None:
            family.add_metric(values, amount)
    return family


def run_families(status: Status) -> Iterator[Metric]:
    """The run as a whole, and its store."""
    run, store = status.run, status.store

    def one(amount: float) -> list[Row]:
        return [((), amount)]

    yield gauge(
        "terascope_run_info",
        "What is running; the value is always 1.",
        [((run.set_name, run.state), 1)],
        ("set", "state"),
    )
    yield gauge("terascope_run_started_seconds", "Start, unix time.", one(run.started))
    yield gauge("terascope_run_updated_seconds", "Last status, unix time.", one(run.updated))
    yield counter("terascope_batches", "Micro-batches completed.", one(run.batch + 1))
    yield gauge("terascope_batch_seconds", "Time the last batch took.", one(run.batch_seconds))
    yield counter("terascope_restarts", "Restarts after failures.", one(run.restarts))
    waiting = 0.0 if run.callback is None else run.callback.seconds
    yield gauge(
        "terascope_callback_waiting_seconds",
        "How long the run has waited for the call of the callback that is at work.",
        one(waiting),
    )
    yield counter(
        "terascope_callback_seconds", "Time in calls of the callback.", one(run.callback_seconds)
    )
    memory = (run.driver_memory_bytes, run.worker_memory_bytes)
    yield gauge("terascope_driver_memory_bytes", "Memory of the driver.", one(memory[0]))
    yield gauge("terascope_worker_memory_bytes", "Memory of all workers.", one(memory[1]))
    yield gauge("terascope_store_bytes", "Bytes kept for open slices.", one(store.bytes))
    yield gauge("terascope_store_files", "Files kept for open slices.", one(store.files))
    yield gauge("terascope_store_segments", "Segments kept for open slices.", one(store.segments))
    yield gauge("terascope_store_open_slices", "Slices not closed yet.", one(store.open_slices))
    yield gauge("terascope_store_groups", "Groups kept for open slices.", one(store.groups))


SOURCE_COUNTERS: tuple[tuple[str, str, Callable[[SourceStatus], float]], ...] = (
    ("tuples", "Tuples read.", lambda s: s.tuples),
    ("bytes", "Bytes read.", lambda s: s.bytes),
    ("late", "Tuples that came after their window was closed.", lambda s: s.late),
    ("malformed", "Packets or rows that could not be read.", lambda s: s.malformed),
    ("skipped_bytes", "Bytes of damaged input that were skipped.", lambda s: s.skipped_bytes),
    ("heartbeats", "Heartbeats given.", lambda s: s.heartbeat),
)
SOURCE_GAUGES: tuple[tuple[str, str, Callable[[SourceStatus], float | None]], ...] = (
    (
        "promise_seconds",
        "Unix time before which no tuple will come any more.",
        lambda s: None if s.promise_ns is None else s.promise_ns / NANOSECONDS,
    ),
    ("rate", "Tuples a second, lately.", lambda s: s.rate),
    ("backlog_bytes", "Bytes that are there and not read yet.", lambda s: s.backlog_bytes),
    ("silent_seconds", "Time since the last tuple.", lambda s: s.silent_seconds),
    ("heartbeat_age_seconds", "Time since the last heartbeat.", lambda s: s.heartbeat_age_seconds),
    ("disorder", "Largest disorder seen, in the source's unit.", lambda s: s.disorder_observed),
    ("stalled", "1 while it gives no promise.", lambda s: float(s.stalled is not None)),
    ("away", "1 while it cannot be read.", lambda s: float(s.away)),
    (
        "replay",
        "1 while it keeps its own clock, far from that on the wall.",
        lambda s: float(s.replay),
    ),
    ("left_behind", "1 while others go on without it.", lambda s: float(s.left_behind)),
)
QUERY_GAUGES: tuple[tuple[str, str, Callable[[QueryStatus], float | None]], ...] = (
    ("lag_seconds", "How far its closed windows are behind the present.", lambda q: q.lag_seconds),
    (
        "closed_seconds",
        "Unix time up to which its windows are closed.",
        lambda q: None if q.closed_until_ns is None else q.closed_until_ns / NANOSECONDS,
    ),
    ("held_rows", "Rows kept until their window closes.", lambda q: q.held_rows),
    ("held_bytes", "Bytes kept until their window closes.", lambda q: q.held_bytes),
    ("open_slices", "Slices not closed yet.", lambda q: q.open_slices),
)


def source_families(sources: tuple[SourceStatus, ...]) -> Iterator[Metric]:
    """Every source, by the label `source`."""
    for name, help, count in SOURCE_COUNTERS:
        rows: list[Row] = [((s.name,), count(s)) for s in sources]
        yield counter(f"terascope_source_{name}", help, rows, ("source",))
    reasons: list[Row] = [
        ((s.name, why), count)
        for s in sources
        for why, count in sorted(s.malformed_reasons.items())
    ]
    yield counter(
        "terascope_source_malformed_by_reason",
        "Packets, rows or files that could not be read, by reason; the reasons are a fixed set.",
        reasons,
        ("source", "reason"),
    )
    for name, help, amount in SOURCE_GAUGES:
        rows = [((s.name,), amount(s)) for s in sources]
        yield gauge(f"terascope_source_{name}", help, rows, ("source",))


def query_families(queries: tuple[QueryStatus, ...]) -> Iterator[Metric]:
    """Every named stream, by the label `query`."""
    written: list[Row] = [((q.name,), q.rows) for q in queries]
    yield counter("terascope_query_rows", "Rows given.", written, ("query",))
    late: list[Row] = [((q.name,), q.late) for q in queries]
    help = "Tuples that came after their window of it was closed."
    yield counter("terascope_query_late", help, late, ("query",))
    for name, help, amount in QUERY_GAUGES:
        rows: list[Row] = [((q.name,), amount(q)) for q in queries]
        yield gauge(f"terascope_query_{name}", help, rows, ("query",))


def low_families(status: Status) -> Iterator[Metric]:
    """What runs next to the sources, by the label `stream`."""
    labels = ("stream",)
    low = status.low
    come: list[Row] = [((one.name,), one.tuples_in) for one in low]
    passed: list[Row] = [((one.name,), one.passed) for one in low]
    evicted: list[Row] = [((one.name,), one.evicted) for one in low]
    yield counter("terascope_low_tuples", "Tuples looked at next to the source.", come, labels)
    yield counter("terascope_low_passed", "Tuples that passed its filter.", passed, labels)
    yield counter("terascope_low_evicted", "Groups put out of a full table.", evicted, labels)


TREE_GAUGES: tuple[tuple[str, str, Callable[[TreeStatus], float | None]], ...] = (
    ("intermediate", "Intermediate aggregates.", lambda t: t.intermediate),
    ("tables", "Tables of several aggregations with the same keys.", lambda t: len(t.tables)),
    ("since_seconds", "When the tree took its place, unix time.", lambda t: t.since),
    ("gain", "Part of the cost that it was expected to save.", lambda t: t.gain),
    ("possible_gain", "What another tree would save now.", lambda t: t.possible_gain),
    ("probes_per_tuple", "Hash operations, counted.", lambda t: t.probes_per_tuple),
)


def tree_families(trees: tuple[TreeStatus, ...]) -> Iterator[Metric]:
    """Aggregations that could share tables and trees, by the source and the first of them."""
    for name, help, amount in TREE_GAUGES:
        rows: list[Row] = [((t.source, t.queries[0]), amount(t)) for t in trees]
        yield gauge(f"terascope_tree_{name}", help, rows, ("source", "first"))


WINDOW_GAUGES: tuple[tuple[str, str, Callable[[WindowStatus], float | None]], ...] = (
    ("planned_rate", "Tuples a second that slices were planned for.", lambda w: w.rate),
    ("planned_measured", "1: that rate was measured; 0: assumed.", lambda w: float(w.measured)),
    ("planned_seconds", "When slices were planned, unix time.", lambda w: w.since),
    ("rate", "Tuples a second of the slices that were closed last.", lambda w: w.rate_now),
    ("clusters", "Clusters of windows that share slices.", lambda w: len(w.clusters)),
    ("retired", "Clusters without new tuples that windows still have.", lambda w: w.retired),
    ("possible_gain", "What other slices would save now.", lambda w: w.possible_gain),
)


def window_families(windows: tuple[WindowStatus, ...]) -> Iterator[Metric]:
    """Windows that could share slices, by what they are on, their keys and the first of their
    queries.
    """
    labels = "on", "keys", "first"
    told = {(w.on, ", ".join(w.keys), w.queries[0]): w for w in windows if w.queries}
    for name, help, amount in WINDOW_GAUGES:
        rows: list[Row] = [(which, amount(w)) for which, w in told.items()]
        yield gauge(f"terascope_windows_{name}", help, rows, labels)
    costs: list[Row] = [
        ((*which, name), cost) for which, w in told.items() for name, cost in w.costs.items()
    ]
    help = "What an alternative costs at the planned rate, in microseconds a second."
    yield gauge("terascope_windows_cost", help, costs, (*labels, "alternative"))
