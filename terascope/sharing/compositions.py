"""How the windows of a running stream are composed of slices, and how the composition changes.

In: the clusters in force, and cheaper ones. Out: a `Composition`: the clusters that receive tuples
from now on, and the retired ones, which receive no more tuples but whose slices are still needed.

Invariant: every tuple is in the slices of exactly one cluster of a window, the one in force when it
was read; and every cluster of a window has all edges of the window, so that each of its slices is
inside the window or outside. So a window can be assembled from the slices of several clusters, and
a change needs no common edge: open slices stay open, and a window that spans the change has slices
of both clusters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from terascope.functions.slices import SliceVector
from terascope.sharing.slices import Periodic, shortest, stretched
from terascope.sharing.windows import (
    Cluster,
    TupleTraffic,
    WindowClusters,
    is_tumbling,
    share,
)

MOST_RETIRED: Final = 8
"""With this many retired clusters that still have slices, a family keeps its composition."""


@dataclass(frozen=True)
class Composition(WindowClusters):
    """The clusters of a family of windows: those that receive tuples, and retired ones."""

    since: float = 0.0
    """The time at which the clusters were chosen, in Unix seconds."""
    retired: tuple[Cluster, ...] = ()
    """Clusters that receive no more tuples but still have slices."""

    def earlier(self, window: Periodic) -> tuple[Cluster, ...]:
        """The retired clusters whose slices a window contains as well."""
        return tuple(cluster for cluster in self.retired if window in cluster.windows)


def marked(clusters: Iterable[Cluster]) -> tuple[Cluster, ...]:
    """Mark clusters whose only window tumbles: it has a key of its own instead of slices."""
    return tuple(replace(cluster, own=not cluster.assembles) for cluster in clusters)


def first_composition(shared: WindowClusters) -> Composition:
    """The composition of windows that were not planned before."""
    return Composition(marked(shared.clusters), shared.traffic)


def best_clusters(
    before: Composition,
    windows: Iterable[Periodic],
    traffic: TupleTraffic,
    pinned: bool = False,
) -> tuple[Cluster, ...]:
    """The cheapest clusters of some windows. With `pinned`, clusters with tumbling windows stay as
    they are: a tumbling window that is assembled from slices may be released in another way, and
    not every query can change to that while it runs.
    """
    kept = [c for c in before.clusters if pinned and any(map(is_tumbling, c.windows))]
    free = set(windows).difference(*(c.windows for c in kept))
    return (*kept, *marked(share(free, traffic).clusters)) if free else tuple(kept)


def recomposed(
    before: Composition, clusters: Iterable[Cluster], traffic: TupleTraffic, now: float
) -> Composition:
    """Put other clusters in force. A cluster that is in force, or is retired and still has slices,
    continues. The slices of a new cluster are written with a text that no other cluster has: the
    text identifies a stream of slices, and two clusters with one stream would count tuples twice.
    """
    known = [*before.clusters, *before.retired]
    taken = {str(cluster.vector) for cluster in known if not cluster.own}
    made: list[Cluster] = []
    for cluster in clusters:
        same = next((one for one in known if what_it_is(one) == what_it_is(cluster)), None)
        if same is not None:
            known.remove(same)
        elif not cluster.own:
            same = replace(cluster, vector=unlike(cluster.vector, taken))
            taken.add(str(same.vector))
        made.append(same or cluster)
    return replace(before, clusters=tuple(made), traffic=traffic, since=now, retired=tuple(known))


def what_it_is(cluster: Cluster) -> tuple[tuple[Periodic, ...], SliceVector, bool]:
    """The identity of a cluster: its windows and slices, whatever the written period."""
    return cluster.windows, shortest(cluster.vector), cluster.own


def unlike(vector: SliceVector, taken: Collection[str]) -> SliceVector:
    """The same slices with a text that is not in use: several periods are written as one."""
    times, made = 1, vector
    while str(made) in taken:
        times += 1
        made = stretched(vector, times)
    return made


def for_windows(
    before: Composition, windows: frozenset[Periodic], traffic: TupleTraffic, now: float
) -> Composition:
    """The composition of a family after its set of windows has changed. Windows that stay keep
    their slices; the clusters are chosen again.
    """
    if windows == frozenset(before.windows):
        return before
    kept = replace(
        before,
        clusters=tuple(among(before.clusters, windows)),
        retired=tuple(among(before.retired, windows)),
    )
    return recomposed(kept, best_clusters(kept, windows, traffic, pinned=True), traffic, now)


def among(clusters: Iterable[Cluster], windows: frozenset[Periodic]) -> Iterable[Cluster]:
    """Clusters without removed windows; a cluster without any window is left out."""
    for cluster in clusters:
        left = tuple(window for window in cluster.windows if window in windows)
        if left:
            yield replace(cluster, windows=left)
