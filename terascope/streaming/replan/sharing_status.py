"""The status of the tables, aggregate trees and slices that queries share. Pure data.

A field made by `counter` or `gauge` is a Prometheus metric, too (terascope.operate.metrics).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any


def metric(
    kind: str,
    help: str,
    default: Any = None,
    name: str = "",
    value: Callable[[Any], float | None] = lambda amount: amount,
    label: str = "",
) -> Any:
    """A field of a status. `name`: that of the metric, where it is not the field's. `value`: the
    metric's value, from the field's; None: no sample. `label`: the label of a mapping's keys.
    """
    about = {"kind": kind, "help": help, "name": name, "value": value, "label": label}
    if label:
        return field(default_factory=dict, metadata=about)
    return field(default=default, metadata=about)


counter, gauge = partial(metric, "counter"), partial(metric, "gauge")


@dataclass(frozen=True)
class TreeStatus:
    """The tables and aggregate trees that some aggregations of a source share."""

    source: str
    queries: tuple[str, ...]
    tree: tuple[str, ...] = ()
    """A line for each table, children below their parents; empty: all tables take tuples."""
    intermediate: int = gauge("Intermediate aggregates.", 0)
    since: float = gauge("When the tree took its place, unix time.", 0.0, "since_seconds")
    gain: float = gauge("Part of the cost that it was expected to save.", 0.0)
    possible_gain: float = gauge("What another tree would save now.", 0.0)
    probes_per_tuple: float | None = gauge("Hash operations, counted.", None)
    """Hash operations since it was put in force: for each tuple that the aggregations take, or for
    each tuple that is read if they take different ones."""
    tables: tuple[tuple[str, ...], ...] = gauge(
        "Tables of several aggregations with the same keys.", (), value=len
    )
    """The names of the aggregations of each shared table, which have the same keys and different
    conditions."""


@dataclass(frozen=True)
class StrategyStatus:
    """The strategy of the states of an aggregation that leaves a choice (paper 1, section 8)."""

    source: str
    query: str
    """The aggregation next to the source."""
    state: str
    """The column of the aggregation that has the states."""
    strategy: str = ""
    """Empty: each task chooses by itself."""
    why: str = ""
    since: float = gauge("When the strategy was put in force, unix time.", 0.0, "since_seconds")
    tuples: float = gauge("Tuples of the last slice that was judged.", 0.0)
    groups: float = gauge("Groups of that slice, estimated.", 0.0)
    exponent: float = gauge("Zipf exponent of the sizes of these groups.", 0.0)


@dataclass(frozen=True)
class ClusterStatus:
    """Windows that are assembled from the same slices."""

    queries: tuple[str, ...]
    windows: tuple[str, ...]
    """RANGE/SLIDE of each window."""
    slices: str
    """The lengths of the slices, over a period."""


@dataclass(frozen=True)
class WindowStatus:
    """The composition of a family of windows: windows over the same tuples, with the same keys."""

    on: str
    """The stream of tuples, and the time on which its windows are measured."""
    keys: tuple[str, ...] = ()
    clusters: tuple[ClusterStatus, ...] = gauge(
        "Clusters of windows that share slices.", (), value=len
    )
    rate: float = gauge("Tuples a second that slices were planned for.", 0.0, "planned_rate")
    """Of event time."""
    measured: bool = gauge("1: that rate was measured; 0: assumed.", False, "planned_measured")
    since: float = gauge("When slices were planned, unix time.", 0.0, "planned_seconds")
    costs: Mapping[str, float | None] = gauge(
        "What an alternative costs at the planned rate, in microseconds a second.",
        name="cost",
        label="alternative",
    )
    """None: impossible."""
    rate_now: float | None = gauge(
        "Tuples a second of the slices that were closed last.", None, "rate"
    )
    possible_gain: float = gauge("What other slices would save now.", 0.0)
    retired: int = gauge("Clusters without new tuples that windows still have.", 0)

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(query for cluster in self.clusters for query in cluster.queries)
