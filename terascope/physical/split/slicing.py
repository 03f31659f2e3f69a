"""Which slices the windows of a query set are made of, decided for all of them together.

In: every window that a query asks for, with its keys, while the set is gone through a first time;
and what is known of the traffic. Out: the slices of each, when the set is gone through again.
Windows over the same tuples of one scan, measured on the same time, with the same keys are one
family: they can have one table. A running stream says itself how its families are composed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from terascope.analysis.order import FINENESS
from terascope.functions.slices import SliceVector
from terascope.physical.split.drafts import ScanKey, scan_key
from terascope.physical.split.split_windows import Windowed
from terascope.plan.expr import Col, Expr
from terascope.plan.hashing import hashed_once
from terascope.plan.rel import Scan
from terascope.sharing.compositions import Composition, first_composition
from terascope.sharing.slices import Periodic, paired
from terascope.sharing.windows import Mode, TupleTraffic, WindowClusters, assumed, share

ASSUMED_RATE = 100_000.0
"""Tuples a second, of a stream that nobody has seen."""


@hashed_once
@dataclass(frozen=True)
class SliceFamily:
    """Windows that could share their slices."""

    scan: ScanKey
    time: Expr
    keys: frozenset[Expr]
    conditions: frozenset[Expr]


def family_of(windowed: Windowed, keys: Iterable[Expr]) -> SliceFamily:
    chosen = windowed.chosen
    conditions = frozenset(chosen.conditions)
    return SliceFamily(scan_key(chosen.scan), windowed.time, frozenset(keys), conditions)


Known: TypeAlias = Callable[[SliceFamily], TupleTraffic | None]
"""What was measured of the tuples of a family."""


InForce: TypeAlias = Callable[[SliceFamily, frozenset[Periodic], TupleTraffic], Composition | None]
"""How the windows of a family of a running stream are composed. None: it has no such family yet.
The traffic is what would be assumed of it."""


def nothing_known(_: SliceFamily) -> TupleTraffic | None:
    return None


def nothing_in_force(
    _: SliceFamily, __: frozenset[Periodic], ___: TupleTraffic
) -> Composition | None:
    return None


def slices_alone(window: Periodic) -> SliceVector | None:
    """The slices of a window that shares none; None when it tumbles and has a key of its own."""
    return None if window.range == window.slide else paired(window)


@dataclass
class Slicing:
    """The windows of a set, and their slices."""

    traffic: Known = nothing_known
    mode: Mode = "cost"
    tumbling_apart: bool = False
    """Tumbling windows share no slices: whether that pays depends on what nobody looked at."""
    asked: dict[SliceFamily, set[Periodic]] = field(default_factory=dict)
    scans: dict[SliceFamily, Scan] = field(default_factory=dict)
    decided: dict[SliceFamily, WindowClusters] | None = None
    queries: dict[tuple[SliceFamily, Periodic], list[str]] = field(default_factory=dict)
    in_force: InForce = nothing_in_force
    compositions: dict[SliceFamily, Composition] = field(default_factory=dict)
    """The same as `decided`, with what windows were made of before."""

    def ask(self, query: str, windowed: Windowed, family: SliceFamily) -> SliceVector | None:
        """The slices for a window; None when it is better off with a key of its own, as it may be
        when it is tumbling.
        """
        if self.tumbling_apart and windowed.has_own_key:
            return None
        window = windowed.periodic
        if self.decided is None:
            self.asked.setdefault(family, set()).add(window)
            self.scans[family] = windowed.chosen.scan
            self.queries.setdefault((family, window), []).append(query)
            return slices_alone(window)
        shared = self.decided.get(family)
        cluster = None if shared is None else shared.of.get(window)
        if cluster is None:  # only of queries that were refused
            return slices_alone(window)
        return None if cluster.own else cluster.vector

    def earlier(self, windowed: Windowed, family: SliceFamily) -> tuple[SliceVector | None, ...]:
        """Other slices that a window is made of as well, which get no more tuples; None: groups by
        a key of its own.
        """
        composition = self.compositions.get(family)
        found = () if composition is None else composition.earlier(windowed.periodic)
        return tuple(None if cluster.own else cluster.vector for cluster in found)

    def refuse(self, query: str, windowed: Windowed, family: SliceFamily) -> None:
        """A query whose aggregates cannot be made of slices reads tuples: its window neither shares
        any nor makes those of others finer.
        """
        window = windowed.periodic
        asking = self.queries.get((family, window), [])
        if self.decided is not None or query not in asking:
            return
        asking.remove(query)
        if not asking:
            del self.queries[family, window]
            self.asked[family].discard(window)
        if not self.asked[family]:
            del self.asked[family]

    @property
    def has_choices(self) -> bool:
        """Whether windows could share slices, or not."""
        return any(self.is_open(family) for family in self.asked)

    def is_open(self, family: SliceFamily) -> bool:
        """Whether a family could be composed in several ways, and none of them is in force."""
        windows = frozenset(self.asked[family])
        running = self.in_force(family, windows, self.traffic_of(family))
        return len(windows) > 1 and running is None

    def decide(self) -> None:
        """All windows were asked for."""
        self.compositions = {
            family: self.composition(family, frozenset(windows))
            for family, windows in self.asked.items()
        }
        self.decided = {family: made.shared for family, made in self.compositions.items()}

    @property
    def shares_nothing(self) -> bool:
        """Whether every window was decided to have the slices that it has alone."""
        made = self.compositions.values()
        return not any(one.retired for one in made) and all(
            (None if cluster.own else cluster.vector) == slices_alone(window)
            for one in made
            for cluster in one.clusters
            for window in cluster.windows
        )

    def composition(self, family: SliceFamily, windows: frozenset[Periodic]) -> Composition:
        traffic = self.traffic_of(family)
        running = self.in_force(family, windows, traffic)
        return running or first_composition(share(windows, traffic, mode=self.mode))

    def knowing(self, traffic: Known) -> Slicing:
        """The same windows, decided anew with what is known now."""
        made = replace(self, traffic=traffic, decided=None, compositions={})
        made.decide()
        return made

    def decides_as(self, other: Slicing) -> bool:
        """Whether all windows have the same slices."""
        mine, theirs = self.decided or {}, other.decided or {}
        return all(mine[family].of == theirs[family].of for family in mine)

    def traffic_of(self, family: SliceFamily) -> TupleTraffic:
        scan = self.scans[family]
        known = self.traffic(family)
        if known is not None:
            return known
        return TupleTraffic(
            ASSUMED_RATE / ticks(scan, family.time), assumed(len(family.keys)), False
        )


def ticks(scan: Scan, time: Expr) -> int:
    """Units of a time that make up a second."""
    if isinstance(time, Col):
        for column in scan.columns:
            if column.name == time.name and column.clock is not None:
                return FINENESS[column.clock]
    return 1
