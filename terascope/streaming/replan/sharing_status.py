"""The status of the tables, aggregate trees and slices that queries share. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TreeStatus:
    """The tables and aggregate trees that some aggregations of a source share."""

    source: str
    queries: tuple[str, ...]
    tree: tuple[str, ...] = ()
    """A line for each table, children below their parents; empty: all tables take tuples."""
    intermediate: int = 0
    """Internal tables, which no query reads."""
    since: float = 0.0
    """The time since which it is in force, in Unix seconds."""
    gain: float = 0.0
    """The predicted share of the cost that it saves, when it was put in force."""
    possible_gain: float = 0.0
    """The share of the cost that another sharing would save now."""
    probes_per_tuple: float | None = None
    """Hash operations since it was put in force: for each tuple that the aggregations take, or for
    each tuple that is read if they take different ones."""
    tables: tuple[tuple[str, ...], ...] = ()
    """The names of the aggregations of each shared table, which have the same keys and different
    conditions."""


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
    clusters: tuple[ClusterStatus, ...] = ()
    rate: float = 0.0
    """The tuples a second, of event time, for which it was planned."""
    measured: bool = False
    """Whether that rate was measured, in a sample or in closed slices; otherwise it is assumed."""
    since: float = 0.0
    """The time of planning, in Unix seconds."""
    costs: Mapping[str, float | None] = field(default_factory=dict)
    """The cost of each alternative at that rate, in microseconds a second; None: impossible."""
    rate_now: float | None = None
    """The tuples a second of the slices that closed last."""
    possible_gain: float = 0.0
    """The share of the cost that another composition would save at the present rate."""
    retired: int = 0
    """Clusters that receive no more tuples and still have slices that windows contain."""

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(query for cluster in self.clusters for query in cluster.queries)
