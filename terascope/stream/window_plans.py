"""How the windows of a running set are composed: kept with the run, asked for by whoever plans it.

In: `windows.json` in the folder of the run, put in place by rename. Out: the composition of each
family of windows, with the traffic it was chosen by. It is written before the first batch that has
it, and only between two batches; so a run that was killed goes on with the composition that its
slices are of. A family is known by its tuples, time and keys, whatever its queries are called.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from terascope.functions.slices import parse_slices
from terascope.physical.slicing import Family, Slicing
from terascope.sharing.compositions import Composition, first_composition, for_windows
from terascope.sharing.slices import Periodic
from terascope.sharing.windows import (
    Cluster,
    Groups,
    Traffic,
    Uniform,
    fitted,
    share,
    ungrouped,
)
from terascope.stream.control import put
from terascope.stream.plan import StreamPlan
from terascope.stream.slice_streams import keys_of_family, tuples_of_family
from terascope.stream.state import State
from terascope.stream.tiers import base_stream

WINDOWS: Final = "windows.json"


def family_key(family: Family) -> str:
    """What a family is called in the folder of a run."""
    tuples = tuples_of_family(family)
    told = [
        tuples.protocol, tuples.interfaces, sorted(tuples.conditions), tuples.time,
        sorted(keys_of_family(family)),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


@dataclass
class WindowPlans:
    """The compositions of a run."""

    known: dict[str, Composition] = field(default_factory=dict)
    """By the key of a family."""
    unwritten: bool = False
    """The checkpoint is of a version that did not write its compositions down: they are those of
    the assumed traffic."""
    clock: Callable[[], float] = time.time

    @staticmethod
    def of(folder: Path, has_state: bool) -> WindowPlans:
        """Of a run, as far as it has any. `has_state`: it goes on from a checkpoint."""
        try:
            told = json.loads((folder / WINDOWS).read_bytes())
        except FileNotFoundError:
            return WindowPlans(unwritten=has_state)
        return WindowPlans({key: composition_of(one) for key, one in told.items()})

    def in_force(
        self, family: Family, windows: frozenset[Periodic], guessed: Traffic
    ) -> Composition | None:
        """How a family is composed, whose windows may be others than before."""
        before = self.known.get(family_key(family))
        if before is not None:
            return for_windows(before, windows, before.traffic, self.clock())
        return first_composition(share(windows, guessed)) if self.unwritten else None

    def learn(self, slicing: Slicing) -> None:
        """The compositions of a set that was planned: from now on they are in force."""
        now = self.clock()
        self.unwritten = False
        self.known = {
            family_key(family): planned(made, now) for family, made in slicing.compositions.items()
        }

    def change(self, changed: Mapping[str, Composition]) -> None:
        """Some families are composed in another way from the next batch on."""
        self.known |= changed

    def forget_empty(self, plan: StreamPlan, state: State) -> bool:
        """Forget retired clusters that no slices are left of; whether there were any."""
        forgotten = False
        left = {base_stream(segment.stream) for segment in state.segments}
        for family in plan.slicing.compositions:
            before = self.known[family_key(family)]
            kept = tuple(c for c in before.retired if streams_of(family, c, plan) & left)
            if kept != before.retired:
                self.known[family_key(family)] = replace(before, retired=kept)
                forgotten = True
        return forgotten

    def save(self, folder: Path) -> None:
        """Put them in force for whoever plans the run.

        Raises:
            StreamError: the file cannot be written.
        """
        put(folder / WINDOWS, {key: to_json(made) for key, made in self.known.items()})


def streams_of(family: Family, cluster: Cluster, plan: StreamPlan) -> set[str]:
    """The keys of the low-level streams that have the slices of a cluster."""
    tuples, keys = tuples_of_family(family), keys_of_family(family)
    return {
        stream.key
        for stream in plan.low
        if stream.sliced is not None
        and stream.sliced.tuples == tuples
        and stream.sliced.keys >= keys
        and str(stream.sliced.vector) == str(cluster.vector)
    }


def planned(made: Composition, now: float) -> Composition:
    """A composition with traffic that can be written down."""
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
        "sliced": [[window.range, window.slide] for window in sorted(made.sliced)],
        "rate": made.traffic.rate,
        "measured": made.traffic.known,
        "groups": groups_to_json(made.traffic.groups),
        "since": made.since,
    }


def composition_of(told: Mapping[str, Any]) -> Composition:
    traffic = Traffic(told["rate"], groups_of(told["groups"]), told["measured"])
    return Composition(
        tuple(map(cluster_of, told["clusters"])),
        traffic,
        told["since"],
        frozenset(windows_of(told["sliced"])),
        tuple(map(cluster_of, told["retired"])),
    )


def cluster_to_json(cluster: Cluster) -> dict[str, Any]:
    windows = [[window.range, window.slide] for window in cluster.windows]
    return {"windows": windows, "slices": str(cluster.vector)}


def cluster_of(told: Mapping[str, Any]) -> Cluster:
    return Cluster(tuple(windows_of(told["windows"])), parse_slices(told["slices"]))


def windows_of(told: Sequence[Sequence[int]]) -> list[Periodic]:
    return [Periodic(*one) for one in told]


def groups_to_json(groups: Groups) -> float | str | None:
    """How many groups there are; None: one, because there are no keys."""
    if not isinstance(groups, Uniform):
        return None
    return "unlimited" if math.isinf(groups.most) else groups.most


def groups_of(told: float | str | None) -> Groups:
    if told is None:
        return ungrouped
    return Uniform(math.inf if isinstance(told, str) else told)
