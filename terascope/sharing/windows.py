"""To share or not to share: which windows of a stream are assembled from the same slices.

In: the windows over one stream with the same keys, the rate of tuples, and the number of groups
among any number of them. Out: `WindowClusters`: clusters of windows, each with its slices and its
cost, and the costs of the alternatives.

This is paper 0's inequality (3) with the costs of our executor. A tuple is looked up once for each
cluster; the partial groups of a slice are exchanged and merged once; and every window passes once
over the partials of its cluster, whatever r/s is, because assembling takes one or two merges for
each partial and not r/s of them. A window has one or two slices a slide. Slices that do not reduce
the data have as many partials as tuples: sharing them saves little and costs much.

Search: each window joins the cluster where it costs least; then clusters are merged while that
saves something; the result is compared with sharing everything and nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Literal, TypeAlias

from terascope.functions.slices import SliceVector
from terascope.sharing.slices import MOST_EDGES, Periodic, composed, composed_panes, paired

Mode: TypeAlias = Literal["cost", "unshared", "paired", "paned"]

Groups: TypeAlias = Callable[[float], float]
"""The number of groups among this many tuples."""

TUPLE_NS: Final = 12.0
"""Finding the group of a tuple. These costs are tuned by `terascope bench windows-peers`."""
PARTIAL_NS: Final = 90.0
"""Packing, exchanging, unpacking and merging the group of a slice."""
PASS_NS: Final = 12.0
"""Adding the group of a slice to the windows of one query and removing it again."""
MOVED_NS: Final = 400.0
"""The extra cost of a group of a tumbling window that is assembled from slices. Otherwise the
reading task finishes the group; now it is delivered after the merge, and operators above it, such
as a join, run in Spark."""


@dataclass(frozen=True)
class TupleTraffic:
    """The rate and the groups of the tuples of a stream."""

    rate: float
    """Tuples for each unit of time."""
    groups: Groups
    known: bool = True
    """Whether the traffic was measured; otherwise it is assumed, for a stream without a sample."""


def ungrouped(tuples: float) -> float:
    return min(1.0, tuples)


@dataclass(frozen=True)
class Uniform:
    """This many groups, evenly used; infinite: every tuple is a group of its own."""

    most: float

    def __call__(self, tuples: float) -> float:
        if math.isinf(self.most):
            return tuples
        return -self.most * math.expm1(-tuples / self.most)


def assumed(keys: int) -> Groups:
    """The groups of keys that were not sampled: ten thousand values a key, evenly used."""
    return ungrouped if keys == 0 else Uniform(10_000.0 ** min(keys, 2))


def fitted(tuples: float, groups: float) -> Uniform:
    """The number of evenly used groups that gives this many groups among so many tuples."""
    if groups >= 0.999 * tuples:
        return Uniform(math.inf)
    low, high = groups, 1e18
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if Uniform(middle)(tuples) < groups else (low, middle)
    return Uniform(high)


@dataclass(frozen=True)
class Cluster:
    """Windows that are assembled from the same slices."""

    windows: tuple[Periodic, ...]
    vector: SliceVector
    own: bool = False
    """Its only window tumbles and has a key such as time/60 instead of slices."""

    @property
    def assembles(self) -> bool:
        """Whether its windows are assembled from several slices."""
        return len(self.windows) > 1 or not is_tumbling(self.windows[0])

    def partials(self, traffic: TupleTraffic) -> float:
        """Groups of slices for each unit of time."""
        kept = self.vector.kept.items()
        made = sum(times * traffic.groups(n * traffic.rate) for n, times in kept)
        return made / self.vector.period

    @cached_property
    def slides(self) -> int:
        """The common period of its windows."""
        return math.lcm(*(window.slide for window in self.windows))

    @cached_property
    def edges(self) -> float:
        """An upper bound of the edges of all windows, for each unit of time."""
        return sum(len(window.edges) / window.slide for window in self.windows)

    def cost(self, traffic: TupleTraffic) -> float:
        """Nanoseconds for each unit of time, without the cost of results."""
        return traffic.rate * TUPLE_NS + self.assembly_cost(traffic)

    def assembly_cost(self, traffic: TupleTraffic) -> float:
        """Nanoseconds for each unit of time, beyond looking tuples up."""
        if not self.assembles:
            return 0.0
        passes = len(self.windows) * PASS_NS
        tumbling = (w for w in self.windows if is_tumbling(w))
        moved = sum(traffic.groups(w.range * traffic.rate) / w.slide for w in tumbling)
        return self.partials(traffic) * (PARTIAL_NS + passes) + moved * MOVED_NS


def is_tumbling(window: Periodic) -> bool:
    return window.range == window.slide


@dataclass(frozen=True)
class WindowClusters:
    """The windows of a stream in clusters."""

    clusters: tuple[Cluster, ...]
    traffic: TupleTraffic

    def cost(self) -> float:
        return total_cost(self.clusters, self.traffic)

    @cached_property
    def of(self) -> dict[Periodic, Cluster]:
        return {window: cluster for cluster in self.clusters for window in cluster.windows}

    @property
    def windows(self) -> tuple[Periodic, ...]:
        return tuple(sorted(self.of))

    @cached_property
    def alternatives(self) -> dict[str, float | None]:
        """The costs of the alternatives, in nanoseconds for each unit of time; None: impossible."""
        return {
            name: None if made is None else total_cost(made, self.traffic)
            for name, made in plain_clusters(self.windows).items()
        }


def total_cost(clusters: Iterable[Cluster], traffic: TupleTraffic) -> float:
    return sum(cluster.cost(traffic) for cluster in clusters)


def plain_clusters(windows: tuple[Periodic, ...]) -> dict[str, list[Cluster] | None]:
    """The clusters that need no search: every window alone, and all windows together by either
    rewriting; None: the composition is too long.
    """
    vectors = {"shared paired": composed(windows), "shared paned": composed_panes(windows)}
    together = {n: None if v is None else [Cluster(windows, v)] for n, v in vectors.items()}
    return {"unshared": [Cluster((w,), paired(w)) for w in windows], **together}


def share(
    windows: Iterable[Periodic], traffic: TupleTraffic, mode: Mode = "cost"
) -> WindowClusters:
    """The windows in clusters: the cheapest clusters, or the clusters of the given mode."""
    return decided(tuple(sorted(set(windows))), traffic, mode)


@lru_cache(maxsize=64)
def decided(known: tuple[Periodic, ...], traffic: TupleTraffic, mode: Mode) -> WindowClusters:
    """The clusters of a family of windows. The result is cached, because a set is planned twice:
    before and after its sources are sampled.
    """
    plain = plain_clusters(known)
    clusters = plain.get(mode if mode == "unshared" else f"shared {mode}")
    if clusters is None:
        searched = merged(placed(known, traffic), traffic)
        tried = [searched, *(made for made in plain.values() if made is not None)]
        clusters = min(tried, key=lambda some: total_cost(some, traffic))
    return WindowClusters(tuple(clusters), traffic)


def placed(windows: Iterable[Periodic], traffic: TupleTraffic) -> list[Cluster]:
    """Put window after window into the cluster where it costs least. A composition that is too long
    is not used.
    """
    clusters: list[tuple[Cluster, float]] = []
    for window in windows:
        alone = Cluster((window,), paired(window))
        own = alone.cost(traffic)
        best, gain = None, 0.0
        for place, (cluster, cost) in enumerate(clusters):
            joined = together(cluster, alone)
            if joined is None:
                continue
            price = joined.cost(traffic)
            if cost + own - price > gain:
                best, gain = (place, joined, price), cost + own - price
        if best is None:
            clusters.append((alone, own))
        else:
            clusters[best[0]] = best[1:]
    return [cluster for cluster, _ in clusters]


def merged(clusters: list[Cluster], traffic: TupleTraffic) -> list[Cluster]:
    """Merge clusters as long as that saves something."""
    while len(clusters) > 1:
        pairs = [(a, b) for i, a in enumerate(clusters) for b in clusters[:i]]
        tried = [(a, b, together(a, b)) for a, b in pairs]
        found = [
            (total_cost((a, b), traffic) - joined.cost(traffic), a, b, joined)
            for a, b, joined in tried
            if joined is not None
        ]
        gain, a, b, joined = max(found, key=lambda one: one[0], default=(0.0, None, None, None))
        if joined is None or gain <= 0:
            break
        clusters = [c for c in clusters if c is not a and c is not b] + [joined]
    return clusters


def together(left: Cluster, right: Cluster) -> Cluster | None:
    if math.lcm(left.slides, right.slides) * (left.edges + right.edges) > MOST_EDGES + 0.5:
        return None
    windows = tuple(sorted({*left.windows, *right.windows}))
    vector = composed(windows)
    return None if vector is None else Cluster(windows, vector)


def pays_from(cluster: Cluster, traffic: TupleTraffic) -> float | None:
    """Inequality (3): the rate of tuples from which sharing pays with the present groups; None
    where there is nothing to share.
    """
    if len(cluster.windows) < 2:
        return None
    apart = [Cluster((w,), paired(w)) for w in cluster.windows]
    more = cluster.assembly_cost(traffic) - sum(one.assembly_cost(traffic) for one in apart)
    return max(0.0, more / ((len(apart) - 1) * TUPLE_NS))
