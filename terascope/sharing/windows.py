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
from terascope.sharing.slices import MOST_EDGES, Periodic, composed, composed_panes, paired, rate

Mode: TypeAlias = Literal["cost", "unshared", "paired", "paned"]
VECTORS: Final = {"paired": composed, "paned": composed_panes}

Groups: TypeAlias = Callable[[float], float]
"""The number of groups among this many tuples."""


@dataclass(frozen=True)
class WindowCosts:
    """Costs in nanoseconds, tuned by `terascope bench windows-peers`."""

    tuple_ns: float = 12.0
    """Finding the group of a tuple."""
    partial_ns: float = 90.0
    """Packing, exchanging, unpacking and merging the group of a slice."""
    pass_ns: float = 12.0
    """Adding the group of a slice to the windows of one query and removing it again."""
    moved_ns: float = 400.0
    """The extra cost of a group of a tumbling window that is assembled from slices. Otherwise the
    reading task finishes the group; now it is delivered after the merge, and operators above it,
    such as a join, run in Spark."""


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

    def cost(self, traffic: TupleTraffic, costs: WindowCosts) -> float:
        """Nanoseconds for each unit of time, without the cost of results."""
        looked_up = traffic.rate * costs.tuple_ns
        if not self.assembles:
            return looked_up
        passes = len(self.windows) * costs.pass_ns
        tumbling = (w for w in self.windows if is_tumbling(w))
        moved = sum(traffic.groups(w.range * traffic.rate) / w.slide for w in tumbling)
        shared = self.partials(traffic) * (costs.partial_ns + passes)
        return looked_up + shared + moved * costs.moved_ns


def is_tumbling(window: Periodic) -> bool:
    return window.range == window.slide


@dataclass(frozen=True)
class WindowClusters:
    """The windows of a stream in clusters."""

    clusters: tuple[Cluster, ...]
    traffic: TupleTraffic
    costs: WindowCosts

    def cost(self) -> float:
        return sum(c.cost(self.traffic, self.costs) for c in self.clusters)

    @cached_property
    def of(self) -> dict[Periodic, Cluster]:
        return {window: cluster for cluster in self.clusters for window in cluster.windows}

    @property
    def windows(self) -> tuple[Periodic, ...]:
        return tuple(sorted(self.of))

    @cached_property
    def alternatives(self) -> dict[str, float | None]:
        """The costs of the alternatives, in nanoseconds for each unit of time; None: impossible."""
        apart = [Cluster((w,), paired(w)) for w in self.windows]
        together = composed(self.windows)
        panes = composed_panes(self.windows)
        found: dict[str, float | None] = {
            "unshared": sum(c.cost(self.traffic, self.costs) for c in apart),
            "shared paired": None,
            "shared paned": None,
        }
        if together is not None:
            one = Cluster(self.windows, together)
            found["shared paired"] = one.cost(self.traffic, self.costs)
        if panes is not None:
            one = Cluster(self.windows, panes)
            found["shared paned"] = one.cost(self.traffic, self.costs)
        return found


def share(
    windows: Iterable[Periodic],
    traffic: TupleTraffic,
    costs: WindowCosts | None = None,
    mode: Mode = "cost",
) -> WindowClusters:
    """The windows in clusters: the cheapest clusters, or the clusters of the given mode."""
    return decided(tuple(sorted(set(windows))), traffic, costs or WindowCosts(), mode)


@lru_cache(maxsize=64)
def decided(
    known: tuple[Periodic, ...], traffic: TupleTraffic, prices: WindowCosts, mode: Mode
) -> WindowClusters:
    """The clusters of a family of windows. The result is cached, because a set is planned twice:
    before and after its sources are sampled.
    """
    if mode == "unshared":
        clusters = [Cluster((w,), paired(w)) for w in known]
    elif mode != "cost" and (vector := VECTORS[mode](known)) is not None:
        clusters = [Cluster(known, vector)]
    else:
        clusters = cheapest(known, traffic, prices)
    return WindowClusters(tuple(clusters), traffic, prices)


def cheapest(
    windows: tuple[Periodic, ...], traffic: TupleTraffic, prices: WindowCosts
) -> list[Cluster]:
    """The cheapest of the clusters found by search and of the alternatives that explain shows."""
    tried = [merged(placed(windows, traffic, prices), traffic, prices)]
    tried.append([Cluster((w,), paired(w)) for w in windows])
    vectors = (composed(windows), composed_panes(windows)) if len(windows) > 1 else ()
    tried += [[Cluster(windows, vector)] for vector in vectors if vector is not None]
    return min(tried, key=lambda some: sum(c.cost(traffic, prices) for c in some))


def placed(
    windows: Iterable[Periodic], traffic: TupleTraffic, prices: WindowCosts
) -> list[Cluster]:
    """Put window after window into the cluster where it costs least. A composition that is too long
    is not used.
    """
    clusters: list[tuple[Cluster, float]] = []
    for window in windows:
        alone = Cluster((window,), paired(window))
        own = alone.cost(traffic, prices)
        best, gain = None, 0.0
        for place, (cluster, cost) in enumerate(clusters):
            joined = together(cluster, alone)
            if joined is None:
                continue
            price = joined.cost(traffic, prices)
            if cost + own - price > gain:
                best, gain = (place, joined, price), cost + own - price
        if best is None:
            clusters.append((alone, own))
        else:
            clusters[best[0]] = best[1:]
    return [cluster for cluster, _ in clusters]


def merged(clusters: list[Cluster], traffic: TupleTraffic, costs: WindowCosts) -> list[Cluster]:
    """Merge clusters as long as that saves something."""
    while len(clusters) > 1:
        pairs = [(a, b) for i, a in enumerate(clusters) for b in clusters[:i]]
        tried = [(a, b, together(a, b)) for a, b in pairs]
        found = [(saving(a, b, c, traffic, costs), a, b, c) for a, b, c in tried if c is not None]
        if not found:
            break
        gain, a, b, joined = max(found, key=lambda one: one[0])
        if gain <= 0:
            break
        clusters = [c for c in clusters if c is not a and c is not b] + [joined]
    return clusters


def together(left: Cluster, right: Cluster) -> Cluster | None:
    if math.lcm(left.slides, right.slides) * (left.edges + right.edges) > MOST_EDGES + 0.5:
        return None
    windows = tuple(sorted({*left.windows, *right.windows}))
    vector = composed(windows)
    return None if vector is None else Cluster(windows, vector)


def saving(
    left: Cluster, right: Cluster, joined: Cluster | None, traffic: TupleTraffic, costs: WindowCosts
) -> float:
    if joined is None:
        return 0.0
    apart = left.cost(traffic, costs) + right.cost(traffic, costs)
    return apart - joined.cost(traffic, costs)


def pays_from(cluster: Cluster, traffic: TupleTraffic, costs: WindowCosts) -> float | None:
    """Inequality (3): the rate of tuples from which sharing pays with the present groups; None
    where there is nothing to share.
    """
    if len(cluster.windows) < 2:
        return None
    apart = [Cluster((w,), paired(w)) for w in cluster.windows]
    more = (cluster.cost(traffic, costs) - traffic.rate * costs.tuple_ns) - sum(
        c.cost(traffic, costs) - traffic.rate * costs.tuple_ns for c in apart
    )
    return max(0.0, more / ((len(apart) - 1) * costs.tuple_ns))


def edges_per_time(cluster: Cluster) -> float:
    return float(rate(cluster.vector))
