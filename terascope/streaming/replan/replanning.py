"""Re-planning: the tables and trees that aggregations share follow the traffic while a set runs.

In: after every micro-batch the samples and the counters of its tasks. Out: at times other tables
and trees for the batches that follow (tree_plans.py), and other strategies of states
(strategies.py). The sharing in force and the best one are
compared for each slice that is over (tree_choice.py). When the best would save more than 15% for
three slices in a row, and the last change was a minute ago, its kernels are compiled and it is put
in force.

A task keeps only partial groups from one batch to the next, which are the same for every tree. So
trees change between two batches, no tuple is lost or counted twice, and a batch that is run again
may use other trees than the first time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

from terascope.config import Config
from terascope.execute.grouping.tree import tree_of
from terascope.execute.prepare import prepare
from terascope.physical.job import SourceRead
from terascope.streaming.heartbeat import Heartbeat
from terascope.streaming.replan.samples import (
    MOST_TUPLES,
    SliceSamples,
    TrafficStatistics,
    TupleSample,
    sampled_traffic,
)
from terascope.streaming.replan.sharing_status import StrategyStatus, TreeStatus
from terascope.streaming.replan.strategies import StrategyReplanner
from terascope.streaming.replan.tree_choice import (
    Choosing,
    Comparison,
    Patience,
    allowed,
    gain_of,
    watches,
)
from terascope.streaming.replan.tree_plans import (
    AggregateFamily,
    Grafted,
    PlannedSharing,
    TreesInForce,
    families_of,
    grafted,
    in_force,
    put_in_force,
)

THREAD: Final = "terascope trees"
Spawn: TypeAlias = Callable[[Callable[[], None]], None]


@dataclass
class Watched:
    """One family of a running set."""

    read: SourceRead
    family: AggregateFamily
    samples: SliceSamples = field(default_factory=SliceSamples)
    waiting: list[list[TupleSample]] = field(default_factory=list)
    """Slices that are over and not judged yet."""
    found: Comparison | None = None
    """The comparison for the last judged slices, since the last change."""
    tuples: int = 0
    probes: int = 0
    """Probes since the present sharing was put in force."""

    def wait(self, slices: Iterable[list[TupleSample]], most: int) -> None:
        """Add slices that are over. Without time to judge them the oldest are dropped."""
        self.waiting += slices
        while tuples_of(self.waiting) > (most + 1) * MOST_TUPLES:
            del self.waiting[0]

    def worth(self, key: str, due: Container[str]) -> tuple[list[str], PlannedSharing | None]:
        """The members that are due for re-planning and the new sharing. A member is due when every
        member that shares a table with it is.
        """
        if self.found is None:
            return [], None
        parts = [part for part in self.found.parts if all(noted(key, one) in due for one in part)]
        names = [noted(key, one) for part in parts for one in part]
        return names, self.found.changed(parts, 0.0) if parts else None


def noted(family: str, member: str) -> str:
    return f"{family} {member}"


class Replanner:
    """Ingests the samples of every batch, and changes the trees of later batches."""

    def __init__(
        self,
        reads: Sequence[SourceRead],
        folder: Path,
        config: Config,
        clock: Callable[[], float] = time.time,
        spawn: Spawn | None = None,
    ) -> None:
        """`reads`: the reads, with plans without trees; `folder`: of the run; `spawn`: runs
        planning in the background.
        """
        self._reads = tuple(read for read in reads if read.low is not None)
        self._folder = folder
        self._config = config
        self._clock = clock
        self._spawn = spawn or in_background
        self._lock = threading.Lock()
        self._planning = False
        self._closed = False
        self._rest_until = 0.0
        self._began = clock()
        self._watched: dict[str, Watched] = {}
        for read in self._reads:
            assert read.low is not None
            for family in families_of(read.name, read.low):
                if watches(config, family):
                    self._watched[family.key] = Watched(read, family)
        self.trees = self._known()
        self._strategies = StrategyReplanner(self._reads, config, self.trees.since)
        self.trees = replace(self.trees, traffic=self._strategies.known(self.trees.traffic))
        self._patience = Patience(config, self.trees.since)
        self._grafted = self._graft(self.trees)

    def _known(self) -> TreesInForce:
        """The sharing of the earlier run, as far as settings and members still allow it."""
        before = in_force(self._folder)
        if before is None:
            return TreesInForce(since=self._began)
        still = {key: allowed(self._config, one) for key, one in before.shared.items()}
        if still != before.shared:
            before = replace(before, shared=still)
            put_in_force(self._folder, before)
        known = {
            key: one
            for key, watched in self._watched.items()
            if key in still and not (one := still[key].of(watched.family)).is_nothing
        }
        return replace(before, shared=known)

    def _graft(self, trees: TreesInForce) -> dict[str, Grafted]:
        found = {}
        for read in self._reads:
            assert read.low is not None
            found[read.name] = grafted(read.name, read.low, trees.shared, self._config.tree_leaves)
        return found

    @property
    def wants_samples(self) -> bool:
        return bool(self._watched) or self._strategies.wants_samples

    def prepare(self, tell: Callable[[int, int], None]) -> None:
        """Compile the kernels of the trees in force."""
        for made in self._grafted.values():
            prepare(made.low, tell)

    def close(self) -> None:
        with self._lock:
            self._closed = True

    # ---- batches

    def ingest(self, beats: Iterable[Heartbeat], samples: Iterable[TupleSample]) -> None:
        with self._lock:
            counted = list(beats)
            for beat in counted:
                self._count(beat)
            given = list(samples)
            by_family: dict[str, list[TupleSample]] = {}
            for sample in given:
                by_family.setdefault(sample.family, []).append(sample)
            for key, some in by_family.items():
                if key in self._watched:
                    self._watched[key].samples.add(some)
            ready = self._strategies.ingest(counted, given)
            for one in self._watched.values():
                one.wait(one.samples.take_over(), self._config.replan_slices)
                ready = ready or bool(one.waiting)
            busy = self._planning or self._closed or self._clock() < self._rest_until
            if not ready or busy:
                return
            self._planning = True
        self._spawn(self._plan)

    def _count(self, beat: Heartbeat) -> None:
        if beat.trees != self.trees.number:
            return
        names = [*beat.queries, *beat.inner]
        probes = dict(zip(names, beat.counters["probes"], strict=True))
        for key, one in self._watched.items():
            if one.read.name == beat.read:
                mixed = one.family.is_mixed
                first = beat.passed[one.family.members[0].name]
                one.tuples += beat.counters["tuples"] if mixed else first
                one.probes += sum(probes[name] for name in self._grafted[beat.read].nodes[key])

    # ---- planning

    def _plan(self) -> None:
        began = time.thread_time()
        try:
            for key, one in self._watched.items():
                self._judge(key, one)
            with self._lock:
                self._strategies.judge(self.trees.traffic)
            spent = time.thread_time() - began
            self._rest_until = self._clock() + spent / self._config.replan_core
            self._change()
        except Exception:  # the run does not need it
            logging.getLogger("terascope").warning("trees cannot be planned", exc_info=True)
        finally:
            with self._lock:
                self._planning = False

    def _judge(self, key: str, one: Watched) -> None:
        with self._lock:
            slices, one.waiting = one.waiting, []
        enough, rest = together(slices, self._config.replan_least_tuples)
        with self._lock:
            one.waiting = [*rest, *one.waiting]
        # What was before the last few can neither make a change due nor keep it from being so.
        for some in enough[-self._config.replan_slices :]:
            pieces = [piece for pieces in some for piece in pieces]
            self._note(key, one, sampled_traffic(pieces), len(some))

    def _note(self, key: str, one: Watched, traffic: TrafficStatistics, slices: int) -> None:
        choosing = Choosing(one.read.name, one.family, traffic, self._config)
        one.found = found = choosing.compared(self.trees.shared.get(key))
        for part, cost in found.parts.items():
            for member in part:
                self._patience.note(noted(key, member), gain_of([cost]), slices)

    def _change(self) -> None:
        """Put the sharing of all members that are due in force, and the strategies of states."""
        due = set(self._patience.due(self._clock()))
        worth = {key: one.worth(key, due) for key, one in self._watched.items()}
        chosen = {key: made for key, (_, made) in worth.items() if made is not None}
        traffic = self._strategies.due(self._clock())
        if not chosen and not traffic:
            return
        drafted = self._graft(self.trees.changed(chosen, 0.0))
        for made in drafted.values():
            tree_of(made.low)  # no task is given what it could not run
            prepare(made.low, lambda done, total: None)
        with self._lock:
            if self._closed:
                return
            now = self._clock()
            chosen = {key: replace(best, since=now) for key, best in chosen.items()}
            trees = self.trees.changed(chosen, now, traffic)
            put_in_force(self._folder, trees)
            self.trees, self._grafted = trees, drafted
            if chosen:
                self._patience.change([name for names, _ in worth.values() for name in names], now)
            if traffic:
                self._strategies.change(traffic, now)
            for key in chosen:
                one = self._watched[key]
                one.found, one.tuples, one.probes = None, 0, 0

    # ---- status

    def status(self) -> tuple[TreeStatus, ...]:
        with self._lock:
            return tuple(self._status(key, one) for key, one in self._watched.items())

    def strategies(self) -> tuple[StrategyStatus, ...]:
        """The strategies of states that leave a choice."""
        with self._lock:
            return tuple(self._strategies.status(self.trees.traffic))

    def _status(self, key: str, one: Watched) -> TreeStatus:
        shared = self.trees.shared.get(key, PlannedSharing(since=self._began)).of(one.family)
        units = one.family.units(shared.tables)
        nodes = [node for planned in shared.trees for node in planned.tree.nodes]
        lines = [line for planned in shared.trees for line in planned.tree.describe().splitlines()]
        return TreeStatus(
            one.read.name,
            tuple(query.name for query in one.family.members),
            tuple(lines),
            len([node for node in nodes if not node.is_query]),
            shared.since,
            shared.gain,
            0.0 if one.found is None else one.found.gain,
            one.probes / one.tuples if one.tuples else None,
            tuple(tuple(query.name for query in u.members) for u in units if u.is_shared),
        )


def tuples_of(slices: Iterable[Sequence[TupleSample]]) -> int:
    return sum(len(piece) for pieces in slices for piece in pieces)


def together(
    slices: Sequence[list[TupleSample]], least: int
) -> tuple[list[list[list[TupleSample]]], list[list[TupleSample]]]:
    """Neighbouring slices combined until they have enough tuples; and the last ones, which have too
    few.
    """
    enough: list[list[list[TupleSample]]] = []
    rest: list[list[TupleSample]] = []
    for pieces in slices:
        rest = [*rest, pieces]
        if tuples_of(rest) >= least:
            enough.append(rest)
            rest = []
    return enough, rest


def in_background(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name=THREAD, daemon=True).start()
