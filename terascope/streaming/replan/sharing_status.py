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
    """A line for each table, children below their parents; none: all are made of tuples."""
    intermediate: int = 0
    """Internal tables, which no query reads."""
    since: float = 0.0
    """Unix seconds."""
    gain: float = 0.0
    """The part of the cost that it was expected to save when it took its place."""
    possible_gain: float = 0.0
    """The part of the cost that another sharing would save now."""
    probes_per_tuple: float | None = None
    """Hash operations, counted since it took its place: for each tuple that they take, or for each
    that is read if they take different ones."""
    tables: tuple[tuple[str, ...], ...] = ()
    """By name, the aggregations with the same keys and different conditions that share a table."""


@dataclass(frozen=True)
class ClusterStatus:
    """Windows that are made of the same slices."""

    queries: tuple[str, ...]
    windows: tuple[str, ...]
    """RANGE/SLIDE of each."""
    slices: str
    """Their lengths, over a period."""


@dataclass(frozen=True)
class WindowStatus:
    """How a family of windows is composed: windows over the same tuples, with the same keys."""

    on: str
    """The stream of tuples, and the time that its windows are measured on."""
    keys: tuple[str, ...] = ()
    clusters: tuple[ClusterStatus, ...] = ()
    rate: float = 0.0
    """The tuples a second, of event time, that it was planned for."""
    measured: bool = False
    """Whether that was measured, in a sample or in the slices that closed; else it is assumed."""
    since: float = 0.0
    """When it was planned, in unix seconds."""
    costs: Mapping[str, float | None] = field(default_factory=dict)
    """Of each alternative at that rate, in microseconds a second; None: it is impossible."""
    rate_now: float | None = None
    """The tuples a second of the slices that were closed last."""
    possible_gain: float = 0.0
    """The part of the cost that another composition would save at that rate."""
    retired: int = 0
    """Clusters that get no more tuples, and still have slices that windows are made of."""

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(query for cluster in self.clusters for query in cluster.queries)
