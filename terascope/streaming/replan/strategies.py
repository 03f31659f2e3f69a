"""The strategies of states in a running set follow its traffic (paper 1, section 8).

In: after every micro-batch the tuples that each aggregation took, from the heartbeats, and samples
of their keys. Out: for each aggregation whose states leave a choice the traffic of its slices, and
the strategy that suits it. A choice is put in force as shared tables and trees are
(terascope.streaming.replan.replanning): at the edge of a slice, when it was another one than that
in force for three slices in a row, and a minute after the last change.

The traffic is in force, not the strategy: tasks and driver derive the same strategy from it. It
travels with the tasks of a batch, and a batch that is run again may have another. That is always
safe: packed states of all strategies of a kind are merged by each other, and a task packs what it
stores with the column that merges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from terascope.config import Config
from terascope.physical.job import SourceRead
from terascope.physical.low_plan import LowAggregate, LowPlan
from terascope.physical.rules.choose_strategies import (
    levels_of,
    with_strategies,
)
from terascope.plan.show import show_expr
from terascope.sharing.distinct import attribute_hashes
from terascope.sharing.statistics import SampledStatistics
from terascope.sketches.base import Levels, StateKind, Traffic
from terascope.streaming.heartbeat import Heartbeat
from terascope.streaming.replan.samples import SliceSamples, TupleSample, thinned_alike
from terascope.streaming.replan.sharing_status import StrategyStatus
from terascope.streaming.replan.tree_choice import Patience
from terascope.streaming.replan.tree_plans import (
    AggregateFamily,
    PlannedTraffic,
    choices_of,
)

OPEN: Final = "each task chooses by its first tuples until slices have been sampled"


def traffic_in_force(
    read: str, low: LowPlan, planned: Mapping[str, PlannedTraffic], levels: Levels
) -> dict[str, Traffic]:
    """The traffic in force of each aggregation of a read, by name."""
    return {
        family.members[0].name: planned[family.key].on(levels)
        for family in choices_of(read, low)
        if family.key in planned
    }


def with_chosen(
    read: str, low: LowPlan, planned: Mapping[str, PlannedTraffic], levels: Levels
) -> LowPlan:
    """The plan of a read with the strategies in force."""
    return with_strategies(low, traffic_in_force(read, low, planned, levels))


@dataclass
class WatchedStates:
    """One aggregation whose states leave a choice."""

    read: str
    family: AggregateFamily
    samples: SliceSamples = field(default_factory=SliceSamples)
    passed: int = 0
    """Tuples that it took since the end of the last slice."""
    waiting: list[tuple[list[TupleSample], int]] = field(default_factory=list)
    """Slices that are over and not judged yet, each with its tuples."""
    latest: PlannedTraffic | None = None
    """The traffic of the slices judged last."""

    @property
    def query(self) -> LowAggregate:
        return self.family.members[0]

    def take_over(self) -> None:
        """Add the slices that are over; each has its share of the tuples."""
        over = self.samples.take_over()
        if over:
            each = self.passed // len(over)
            self.waiting += [(pieces, each) for pieces in over]
            self.passed = 0

    @property
    def states(self) -> list[str]:
        """The names of the slots whose states leave a choice."""
        kinds = ((slot.name, slot.kind.state) for slot in self.query.slots)
        return [name for name, kind in kinds if kind is not None and kind.choose is not None]

    def kinds(self, traffic: Traffic) -> list[tuple[str, StateKind]]:
        """The open states by the names of their slots, as they are chosen for some traffic."""
        pairs = ((slot.name, slot.kind.state) for slot in self.query.slots)
        return [(n, k.choose(traffic)) for n, k in pairs if k is not None and k.choose is not None]


class StrategyReplanner:
    """Watches the traffic of all aggregations with a choice of a running set."""

    def __init__(self, reads: Sequence[SourceRead], config: Config, since: float) -> None:
        """`since`: the time of the last change."""
        self._config = config
        self._levels = levels_of(config)
        self._patience = Patience(config, since)
        self._watched = {
            family.key: WatchedStates(read.name, family)
            for read in reads
            if read.low is not None
            for family in choices_of(read.name, read.low)
        }

    @property
    def wants_samples(self) -> bool:
        return bool(self._watched)

    def known(self, planned: Mapping[str, PlannedTraffic]) -> dict[str, PlannedTraffic]:
        """The traffic in an earlier run of the aggregations that are still there."""
        return {key: one for key, one in planned.items() if key in self._watched}

    def ingest(self, beats: Iterable[Heartbeat], samples: Iterable[TupleSample]) -> bool:
        """Add the reports of a batch; return whether a slice is over."""
        for beat in beats:
            for one in self._watched.values():
                if one.read == beat.read:
                    one.passed += beat.passed.get(one.query.name, 0)
        for sample in samples:
            if sample.family in self._watched:
                self._watched[sample.family].samples.add([sample])
        for one in self._watched.values():
            one.take_over()
        return any(one.waiting for one in self._watched.values())

    def judge(self, planned: Mapping[str, PlannedTraffic]) -> None:
        """Compare the strategies in force with those for the slices that are over."""
        for key, one in self._watched.items():
            slices, one.waiting = one.waiting[-self._config.replan_slices :], []
            for pieces, passed in slices:
                one.latest = found = slice_traffic(one.query, pieces, passed)
                present = planned.get(key)
                differs = present is None or self._chosen(one, present) != self._chosen(one, found)
                self._patience.note(key, 1.0 if differs else 0.0)

    def _chosen(self, one: WatchedStates, planned: PlannedTraffic) -> list[tuple[str, str]]:
        kinds = one.kinds(planned.on(self._levels))
        return [(name, kind.strategy) for name, kind in kinds]

    def due(self, now: float) -> dict[str, PlannedTraffic]:
        """The traffic to be put in force, of the aggregations that are due."""
        found = {key: self._watched[key].latest for key in self._patience.due(now)}
        return {key: replace(one, since=now) for key, one in found.items() if one is not None}

    def change(self, keys: Iterable[str], now: float) -> None:
        self._patience.change(keys, now)

    def status(self, planned: Mapping[str, PlannedTraffic]) -> list[StrategyStatus]:
        found = []
        for key, one in self._watched.items():
            present = planned.get(key)
            if present is None:
                told = [(name, "", OPEN) for name in one.states]
            else:
                chosen = one.kinds(present.on(self._levels))
                told = [(name, kind.strategy, kind.why) for name, kind in chosen]
            since = 0.0 if present is None else present.since
            latest = one.latest or present or PlannedTraffic(0.0, 0.0, 0.0)
            found += [
                StrategyStatus(
                    one.read, one.query.name, name, strategy, why, since,
                    latest.tuples, latest.groups, latest.exponent,
                )
                for name, strategy, why in told
            ]  # fmt: skip
        return found


def slice_traffic(
    query: LowAggregate, pieces: Sequence[TupleSample], passed: int
) -> PlannedTraffic:
    """The traffic of a slice, from samples of its pieces. `passed`: the tuples that heartbeats
    counted; batches that were not sampled are among them.
    """
    kept, chance = thinned_alike(pieces)
    sampled = sum(map(len, kept))
    tuples = max(float(passed), sampled / chance)
    names = frozenset(show_expr(expr) for expr in query.plain_keys)
    if not names or not sampled:
        return PlannedTraffic(tuples, 1.0, 0.0)
    hashes = {}
    for name in names:
        values = [piece.keys[name][rows] for piece, rows in zip(pieces, kept, strict=True)]
        hashes[name] = attribute_hashes(np.concatenate(values).astype(np.int64), name)
    found = SampledStatistics(hashes, sampled, tuples)
    return PlannedTraffic(tuples, found.groups(names), found.exponent(names))
