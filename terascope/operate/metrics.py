"""A status as Prometheus metrics. In: a `Status`. Out: metric families, made anew at every scrape,
so that a source or query that is gone from the set is gone from the metrics, too.

The fields of a status say which metrics they are (terascope.streaming.replan.sharing_status).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from terascope.operate.status import (
    LowStatus,
    PartitionsStatus,
    QueryStatus,
    RunStatus,
    SourceStatus,
    Status,
    StoreStatus,
)
from terascope.streaming.replan.sharing_status import StrategyStatus, TreeStatus, WindowStatus

Labelled: TypeAlias = Sequence[tuple[tuple[str, ...], Any]]
"""Statuses with the values of their labels."""

KINDS: Final = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}


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
    about = "What is running; the value is always 1."
    info = GaugeMetricFamily("terascope_run_info", about, labels=("set", "state"))
    info.add_metric((run.set_name, run.state), 1)
    yield info
    yield GaugeMetricFamily("terascope_run_started_seconds", "Start, unix time.", run.started)
    yield from families("", (), RunStatus, [((), run)])
    yield from families("store_", (), StoreStatus, [((), status.store)])
    sources = [((s.name,), s) for s in status.sources]
    yield from families("source_", ("source",), SourceStatus, sources)
    partitioned = [((one.name,), one) for one in status.partitions]
    yield from families("partitions_", ("source",), PartitionsStatus, partitioned)
    queries = [((q.name,), q) for q in status.queries]
    yield from families("query_", ("query",), QueryStatus, queries)
    low = [((stream.name,), stream) for stream in status.low]
    yield from families("low_", ("stream",), LowStatus, low)
    trees = [((tree.source, tree.queries[0]), tree) for tree in status.trees]
    yield from families("tree_", ("source", "first"), TreeStatus, trees)
    windows = [((w.on, ", ".join(w.keys), w.queries[0]), w) for w in status.windows if w.queries]
    yield from families("windows_", ("on", "keys", "first"), WindowStatus, windows)
    states = [((s.source, s.query, s.state, s.strategy), s) for s in status.strategies]
    labels = ("source", "query", "state", "strategy")
    yield from families("strategy_", labels, StrategyStatus, states)


def families(
    prefix: str, labels: tuple[str, ...], kind: type, things: Labelled
) -> Iterator[Metric]:
    """A family for each field of a status that is a metric, with a sample for each known value."""
    for field in fields(kind):
        if not (about := field.metadata):
            continue
        name = f"terascope_{prefix}{about['name'] or field.name}"
        inner = (about["label"],) if about["label"] else ()
        family = KINDS[about["kind"]](name, about["help"], labels=(*labels, *inner))
        for values, thing in things:
            value = getattr(thing, field.name)
            found = {(key,): v for key, v in value.items()} if inner else {(): value}
            for key, one in found.items():
                amount = about["value"](one)
                if amount is not None:
                    family.add_metric((*values, *key), amount)
        yield family
