"""The slices of the windows of a query set, decided for all of them together.

In: every window that a query requests, with its keys, in a first pass over the set; and the known
traffic. Out: the slices of each window, in a second pass. Windows over the same tuples of one scan,
measured on the same time, with the same keys are one family: they can share a table. A running
stream provides the compositions of its families itself.
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
from terascope.sharing.windows import (
    Mode,
    TupleTraffic,
    assumed,
    is_tumbling,
    share,
)

ASSUMED_RATE = 100_000.0
"""The assumed tuples a second of a stream without a sample."""


@hashed_once
@dataclass(frozen=True)
class SliceFamily:
    """Windows that could share slices."""

    scan: ScanKey
    time: Expr
    keys: frozenset[Expr]
    conditions: frozenset[Expr]


def family_of(windowed: Windowed, keys: Iterable[Expr]) -> SliceFamily:
    chosen = windowed.chosen
    conditions = frozenset(chosen.conditions)
    return SliceFamily(scan_key(chosen.scan), windowed.time, frozenset(keys), conditions)


Known: TypeAlias = Callable[[SliceFamily], TupleTraffic | None]
"""The measured traffic of a family."""


InForce: TypeAlias = Callable[[SliceFamily, frozenset[Periodic]], Composition | None]
"""The composition of a family's windows in a running stream; None: the stream has no such family
yet."""


def slices_alone(window: Periodic) -> SliceVector | None:
    """The slices of a window that shares none; None when it tumbles and has a key of its own."""
    return None if window.range == window.slide else paired(window)


@dataclass
class Slicing:
    """The windows of a set, and their slices."""

    traffic: Known | None = None
    mode: Mode = "cost"
    tumbling_apart: bool = False
    """Whether tumbling windows share no slices, because no sample shows whether it pays."""
    asked: dict[SliceFamily, dict[Periodic, list[str]]] = field(default_factory=dict)
    """By family and window: the queries that request it."""
    scans: dict[SliceFamily, Scan] = field(default_factory=dict)
    in_force: InForce | None = None
    compositions: dict[SliceFamily, Composition] = field(default_factory=dict)
    """The decision, for each family; empty until all windows were requested."""

    def ask(self, query: str, windowed: Windowed, family: SliceFamily) -> SliceVector | None:
        """The slices of a window; None for a tumbling window that should have a key of its own."""
        if self.tumbling_apart and is_tumbling(windowed.periodic):
            return None
        window = windowed.periodic
        if not self.compositions:
            self.asked.setdefault(family, {}).setdefault(window, []).append(query)
            self.scans[family] = windowed.chosen.scan
            return slices_alone(window)
        composition = self.compositions.get(family)
        cluster = None if composition is None else composition.of.get(window)
        if cluster is None:  # only of queries that were refused
            return slices_alone(window)
        return None if cluster.own else cluster.vector

    def earlier(self, windowed: Windowed, family: SliceFamily) -> tuple[SliceVector | None, ...]:
        """The retired slices that a window contains as well, which receive no more tuples; None:
        groups by a key of its own.
        """
        composition = self.compositions.get(family)
        found = () if composition is None else composition.earlier(windowed.periodic)
        return tuple(None if cluster.own else cluster.vector for cluster in found)

    def refuse(self, query: str, windowed: Windowed, family: SliceFamily) -> None:
        """Exclude a window whose aggregates cannot be computed from slices: its query reads tuples,
        and it does not make the slices of other windows finer.
        """
        asked = self.asked.get(family, {})
        queries = asked.get(windowed.periodic, [])
        if self.compositions or query not in queries:
            return
        queries.remove(query)
        if not queries:
            del asked[windowed.periodic]
        if not asked:
            del self.asked[family]

    @property
    def has_choices(self) -> bool:
        """Whether some windows could share slices or not."""
        return any(self.is_open(family) for family in self.asked)

    def is_open(self, family: SliceFamily) -> bool:
        """Whether a family has several possible compositions and none is in force."""
        return len(self.asked[family]) > 1 and self.running(family) is None

    def running(self, family: SliceFamily) -> Composition | None:
        """The composition that is in force."""
        if self.in_force is None:
            return None
        return self.in_force(family, frozenset(self.asked[family]))

    def decide(self) -> None:
        """Decide after all windows were requested."""
        self.compositions = {
            family: self.running(family)
            or first_composition(share(windows, self.traffic_of(family), mode=self.mode))
            for family, windows in self.asked.items()
        }

    @property
    def shares_nothing(self) -> bool:
        """Whether every window has the slices that it has alone."""
        made = self.compositions.values()
        return not any(one.retired for one in made) and all(
            (None if cluster.own else cluster.vector) == slices_alone(window)
            for one in made
            for cluster in one.clusters
            for window in cluster.windows
        )

    def knowing(self, traffic: Known) -> Slicing:
        """The same windows, decided again with the present knowledge."""
        made = replace(self, traffic=traffic, compositions={})
        made.decide()
        return made

    def decides_as(self, other: Slicing) -> bool:
        """Whether all windows have the same slices."""
        theirs = other.compositions
        return all(made.of == theirs[family].of for family, made in self.compositions.items())

    def traffic_of(self, family: SliceFamily) -> TupleTraffic:
        known = None if self.traffic is None else self.traffic(family)
        rate = ASSUMED_RATE / ticks(self.scans[family], family.time)
        return known or TupleTraffic(rate, assumed(len(family.keys)), False)


def ticks(scan: Scan, time: Expr) -> int:
    """The units of a time column in a second."""
    if isinstance(time, Col):
        for column in scan.columns:
            if column.name == time.name and column.clock is not None:
                return FINENESS[column.clock]
    return 1
