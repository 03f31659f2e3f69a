"""How the windows of a running stream are composed, and how that changes while slices are kept.

In: the clusters in force, and those that are better now. Out: a `Composition`: the clusters that
tuples go to from now on, and the retired ones, which get no more tuples but still have slices that
windows are made of.

A window may be put together from the slices of several clusters at once. Each of these has all
edges of the window, so that every slice is inside of the window or outside; and each tuple went to
one of them, the one in force when it was read. So a change needs no common edge: slices that were
open stay open in both clusters, and a window that spans the change has slices of either kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from terascope.functions.slices import SliceVector
from terascope.sharing.slices import Periodic, shortest, stretched
from terascope.sharing.windows import Cluster, Shared, Traffic, WindowCosts, is_tumbling, share

MOST_RETIRED: Final = 8
"""So many retired clusters of a family may still have slices; then nothing is changed."""


@dataclass(frozen=True)
class Composition:
    """The clusters of a family of windows."""

    clusters: tuple[Cluster, ...]
    """Those that tuples go to; every window is in one."""
    traffic: Traffic
    """What they were chosen by."""
    since: float = 0.0
    """When they were chosen, in unix seconds."""
    sliced: frozenset[Periodic] = frozenset()
    """Tumbling windows that are made of slices, even if they share them with no other; all other
    tumbling windows that are alone have a key of their own."""
    retired: tuple[Cluster, ...] = ()
    """Those that get no more tuples."""

    @property
    def windows(self) -> frozenset[Periodic]:
        return frozenset(window for cluster in self.clusters for window in cluster.windows)

    def earlier(self, window: Periodic) -> tuple[SliceVector, ...]:
        """The slices of retired clusters that a window is made of as well."""
        return tuple(cluster.vector for cluster in self.retired if window in cluster.windows)

    def has_own_key(self, window: Periodic) -> bool:
        """Whether a window is made of no slices."""
        alone = any(cluster.windows == (window,) for cluster in self.clusters)
        return alone and is_tumbling(window) and window not in self.sliced

    @property
    def costs(self) -> WindowCosts:
        """Those of another choice for the same windows."""
        return WindowCosts(own_keys=not self.sliced)

    @property
    def shared(self) -> Shared:
        return Shared(self.clusters, self.traffic, WindowCosts())


def first_composition(shared: Shared, now: float = 0.0) -> Composition:
    """Of windows that were not planned before."""
    several = (cluster for cluster in shared.clusters if len(cluster.windows) > 1)
    tumbling = frozenset(w for cluster in several for w in cluster.windows if is_tumbling(w))
    return Composition(shared.clusters, shared.traffic, now, tumbling)


def best_clusters(before: Composition, traffic: Traffic) -> tuple[Cluster, ...]:
    """The cheapest clusters of the same windows. Whether a tumbling window has a key of its own
    does not change while a stream runs: its rows would be released in another way.
    """
    own = sorted(window for window in before.windows if before.has_own_key(window))
    free = before.windows.difference(own)
    alone = tuple(cluster for cluster in before.clusters if cluster.windows[0] in own)
    return (*alone, *share(free, traffic, before.costs).clusters) if free else alone


def recomposed(
    before: Composition, clusters: Iterable[Cluster], traffic: Traffic, now: float
) -> Composition:
    """Other clusters take the place of those in force. A cluster that is in force, or was and still
    has slices, goes on. The slices of a new one are written in a way that no other cluster has:
    streams are known by it, and one that others read as well would count tuples twice.
    """
    known = {(c.windows, shortest(c.vector)): c for c in (*before.retired, *before.clusters)}
    taken = {str(cluster.vector) for cluster in known.values()}
    made: list[Cluster] = []
    for cluster in clusters:
        same = known.pop((cluster.windows, shortest(cluster.vector)), None)
        made.append(same or replace(cluster, vector=unlike(cluster.vector, taken)))
        taken.add(str(made[-1].vector))
    retired = tuple(c for c in known.values() if not is_own_key(c, before))
    return replace(before, clusters=tuple(made), traffic=traffic, since=now, retired=retired)


def is_own_key(cluster: Cluster, composition: Composition) -> bool:
    return len(cluster.windows) == 1 and composition.has_own_key(cluster.windows[0])


def unlike(vector: SliceVector, taken: Collection[str]) -> SliceVector:
    """The same slices with a text that is not taken: several periods are written as one."""
    times, made = 1, vector
    while str(made) in taken:
        times += 1
        made = stretched(vector, times)
    return made


def for_windows(
    before: Composition, windows: frozenset[Periodic], traffic: Traffic, now: float
) -> Composition:
    """The composition of a family whose windows are others now: a set was changed. Windows that
    stay keep what they were made of; who shares is decided anew.
    """
    if windows == before.windows:
        return before
    kept = replace(
        before,
        clusters=tuple(among(before.clusters, windows)),
        retired=tuple(among(before.retired, windows)),
        sliced=before.sliced & windows,
    )
    own = frozenset(window for window in kept.windows if before.has_own_key(window))
    costs = WindowCosts(own_keys=not kept.sliced)
    free = windows - own
    shared = share(free, traffic, costs).clusters if free else ()
    alone = tuple(cluster for cluster in kept.clusters if cluster.windows[0] in own)
    made = recomposed(kept, (*alone, *shared), traffic, now)
    sliced = first_composition(Shared(shared, traffic, costs)).sliced | kept.sliced
    return replace(made, sliced=sliced)


def among(clusters: Iterable[Cluster], windows: frozenset[Periodic]) -> Iterable[Cluster]:
    """What is left of some clusters."""
    for cluster in clusters:
        left = tuple(window for window in cluster.windows if window in windows)
        if left:
            yield replace(cluster, windows=left)
