"""The composition of the windows of a running set: saved with the run, read when it is planned.

In: `windows.json` in the folder of the run, put in place by rename. Out: the composition of each
family of windows, with the traffic for which it was chosen. The file is written before the first
batch that uses it, and only between two batches; so a killed run resumes with the composition of
its slices. A family is identified by its tuples, time and keys, not by the names of its queries.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from terascope.functions.slices import parse_slices
from terascope.physical.split.slicing import SliceFamily, Slicing
from terascope.physical.stream.plan import StreamPlan
from terascope.physical.stream.slice_streams import keys_of_family, tuples_of_family
from terascope.physical.stream.windows import released_by_start
from terascope.plan.plan import reads
from terascope.sharing.compositions import Composition, for_windows
from terascope.sharing.slices import Periodic
from terascope.sharing.windows import (
    Cluster,
    TupleTraffic,
    Uniform,
    fitted,
    ungrouped,
)
from terascope.streaming.replan.tree_plans import digest
from terascope.streaming.state.runs import put
from terascope.streaming.state.state import StreamState
from terascope.streaming.stored_rows import base_stream

WINDOWS: Final = "windows.json"


def family_key(family: SliceFamily) -> str:
    """The name of a family in the folder of a run."""
    tuples = tuples_of_family(family)
    told = [
        tuples.protocol, tuples.interfaces, sorted(tuples.conditions), tuples.time,
        sorted(keys_of_family(family)),
    ]  # fmt: skip
    return digest(told)


@dataclass
class WindowPlans:
    known: dict[str, Composition] = field(default_factory=dict)
    """The compositions, by the key of a family."""
    latest: dict[str, TupleTraffic] = field(default_factory=dict)
    """The last measured traffic of each family."""

    @staticmethod
    def of(folder: Path) -> WindowPlans:
        """The saved compositions of a run."""
        try:
            told = json.loads((folder / WINDOWS).read_bytes())
        except FileNotFoundError:
            return WindowPlans()
        known = {key: composition_of(one) for key, one in told.items()}
        latest = {key: one["latest"] for key, one in told.items() if one["latest"] is not None}
        return WindowPlans(known, {key: traffic_of(one) for key, one in latest.items()})

    def in_force(self, family: SliceFamily, windows: frozenset[Periodic]) -> Composition | None:
        """The composition of a family, whose windows may have changed."""
        before = self.known.get(family_key(family))
        if before is None:
            return None
        latest = self.latest.get(family_key(family), before.traffic)
        return for_windows(before, windows, latest, time.time())

    def learn(self, slicing: Slicing) -> None:
        """Put the compositions of a planned set in force."""
        now = time.time()
        self.known = {
            family_key(family): planned(made, now) for family, made in slicing.compositions.items()
        }

    def with_changes(self, changed: Mapping[str, Composition]) -> WindowPlans:
        """A copy with other compositions of some families."""
        return WindowPlans({**self.known, **changed}, dict(self.latest))

    def drop_empty(self, plan: StreamPlan, state: StreamState) -> bool:
        """Drop retired clusters without slices; return whether there were any."""
        forgotten = False
        for family in plan.slicing.compositions:
            before = self.known[family_key(family)]
            needs = RetiredClusters(family, before, plan, state)
            kept = tuple(made for c in before.retired if (made := needs.left_of(c)) is not None)
            if kept != before.retired:
                self.known[family_key(family)] = replace(before, retired=kept)
                forgotten = True
        return forgotten

    def save(self, folder: Path) -> None:
        """Save the compositions for the next plan of the run.

        Raises:
            StreamError: the file cannot be written.
        """
        told = {}
        for key, made in self.known.items():
            latest = self.latest.get(key)
            told[key] = {**to_json(made), "latest": latest and traffic_to_json(latest)}
        put(folder / WINDOWS, told)


@dataclass(frozen=True)
class RetiredClusters:
    """Finds the retired clusters of a family that still have slices that windows contain."""

    family: SliceFamily
    composition: Composition
    plan: StreamPlan
    state: StreamState

    def streams_of(self, cluster: Cluster, retired: bool) -> set[str]:
        """The keys of the low-level streams with the slices of a cluster."""
        return {
            stream.key
            for stream, sliced in self.plan.slices_of(self.family, retired)
            if str(sliced.vector) == str(cluster.vector) and (sliced.scale > 1) == cluster.own
        }

    def left_of(self, cluster: Cluster) -> Cluster | None:
        """The windows of a cluster that still need its slices; None: there are none."""
        keys = self.streams_of(cluster, retired=True)
        scale = cluster.vector.period if cluster.own else 1
        last = max(
            (
                math.inf if segment.high is None else segment.high * scale
                for segment in self.state.segments
                if base_stream(segment.stream) in keys
            ),
            default=-math.inf,
        )
        windows = tuple(
            window
            for window in cluster.windows
            if self.first_begin(window) <= last != -math.inf or not self.is_settled(window)
        )
        return replace(cluster, windows=windows) if windows else None

    def first_begin(self, window: Periodic) -> float:
        """The start of the first window that was not released by all of its queries."""
        names = self.plan.slicing.asked.get(self.family, {}).get(window, ())
        releases = {output.name: output.release for output in self.plan.outputs}
        found: list[float] = []
        for name in names:
            release = releases.get(name)
            by_start = None if release is None else released_by_start(release)
            bounds = self.state.queries[name].bounds if name in self.state.queries else []
            if by_start is None or len(bounds) != 1 or bounds[0] is None or self.is_read(name):
                return -math.inf
            found.append(bounds[0] - (0 if by_start else window.range))
        return min(found, default=-math.inf)

    def is_read(self, name: str) -> bool:
        """Whether other queries, which may be behind it, read a query."""
        trees = self.plan.trees.streams
        return any(read.stream == name for rel in trees.values() for read in reads(rel))

    def is_settled(self, window: Periodic) -> bool:
        """Whether a window can do without earlier slices: the checkpoint has the present ones. For
        a key of its own, all windows that closed by that key must have been released.
        """
        (now,) = (c for c in self.composition.clusters if window in c.windows)
        keys = self.streams_of(now, retired=False)
        streams = [self.state.streams.get(key) for key in keys]
        known = [one for one in streams if one is not None]
        if not known or len(known) < len(streams):
            return False
        until = [int(one.until) * window.slide for one in known if one.until is not None]
        return not now.own or self.first_begin(window) >= max(until, default=-math.inf)


def planned(made: Composition, now: float) -> Composition:
    """A composition with traffic that can be saved."""
    traffic, groups = made.traffic, made.traffic.groups
    if groups is not ungrouped and not isinstance(groups, Uniform):
        length = max(
            cluster.vector.period / len(cluster.vector.lengths) for cluster in made.clusters
        )
        tuples = max(1.0, length * traffic.rate)
        traffic = replace(traffic, groups=fitted(tuples, groups(tuples)))
    return replace(made, traffic=traffic, since=made.since or now)


# ---- files ---------------------------------------------------------------------------------------


def to_json(made: Composition) -> dict[str, Any]:
    return {
        "clusters": [cluster_to_json(cluster) for cluster in made.clusters],
        "retired": [cluster_to_json(cluster) for cluster in made.retired],
        "traffic": traffic_to_json(made.traffic),
        "since": made.since,
    }


def composition_of(told: Mapping[str, Any]) -> Composition:
    return Composition(
        tuple(map(cluster_of, told["clusters"])),
        traffic_of(told["traffic"]),
        told["since"],
        tuple(map(cluster_of, told["retired"])),
    )


def traffic_to_json(traffic: TupleTraffic) -> dict[str, Any]:
    """The groups of traffic without keys are None: there is one."""
    groups = traffic.groups.most if isinstance(traffic.groups, Uniform) else None
    return {"rate": traffic.rate, "measured": traffic.known, "groups": groups}


def traffic_of(told: Mapping[str, Any]) -> TupleTraffic:
    groups = ungrouped if told["groups"] is None else Uniform(told["groups"])
    return TupleTraffic(told["rate"], groups, told["measured"])


def cluster_to_json(cluster: Cluster) -> dict[str, Any]:
    windows = [[window.range, window.slide] for window in cluster.windows]
    return {"windows": windows, "slices": str(cluster.vector), "own": cluster.own}


def cluster_of(told: Mapping[str, Any]) -> Cluster:
    windows = tuple(Periodic(*one) for one in told["windows"])
    return Cluster(windows, parse_slices(told["slices"]), told["own"])
