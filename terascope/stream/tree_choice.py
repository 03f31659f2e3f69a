"""Which aggregate trees a running set should have, and when it is time to change to them.

In: statistics of the slices of a family of aggregations, and the tree that is in force. Out: the
best tree and what it would save, by the costs that plans are made with; and whether that has been
so for long enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from terascope.physical.trees import TreeSettings, decided
from terascope.sharing.cost import evaluate
from terascope.sharing.curves import Curves
from terascope.sharing.model import RememberedStatistics, Statistics, Tree, flat_tree
from terascope.sharing.timed import time_of
from terascope.stream.tree_plans import Family, PlannedTree


@dataclass(frozen=True)
class ReplanSettings:
    """When trees are changed, and what for."""

    trees: TreeSettings = field(default_factory=TreeSettings)
    gain: float = 0.15
    """More than this part of what the present trees cost must be saved."""
    slices: int = 3
    """For so many slices, one after the other."""
    seconds: float = 60.0
    """From one change to the next, at least."""
    sample_tuples: int = 4096
    """Of a micro-batch, by all of its tasks."""
    sample_seconds: float = 2.0
    """From one sample to the next, at least."""
    least_tuples: int = 256
    """A slice of which fewer are known tells nothing."""
    share: float = 0.05
    """Of one core, for planning, at most."""

    @property
    def is_on(self) -> bool:
        return self.trees.mode != "never"


class Patience:
    """Whether it is time for another tree."""

    def __init__(self, settings: ReplanSettings, changed: float) -> None:
        """`changed`: when trees were changed last, or the run began."""
        self._settings = settings
        self._changed = changed
        self._slices: dict[str, int] = {}

    def note(self, family: str, gain: float, slices: int = 1) -> None:
        """What another tree would have saved for slices that follow each other."""
        enough = gain > self._settings.gain
        self._slices[family] = self._slices.get(family, 0) + slices if enough else 0

    def due(self, now: float) -> list[str]:
        """The families that had better be changed now."""
        if now - self._changed < self._settings.seconds:
            return []
        return [key for key, number in self._slices.items() if number >= self._settings.slices]

    def change(self, families: Iterable[str], now: float) -> None:
        self._changed = now
        for key in families:
            self._slices[key] = 0


def present_cost(
    tree: Tree | None, family: Family, statistics: Statistics, settings: TreeSettings
) -> float:
    """Of a tree, or of none, in the unit in which plans are compared. A table that was given all
    the room it wanted is taken to be as large as it was planned: one that grew beyond that uses
    memory that it was not given.
    """
    if settings.mode == "time":
        return time_of(tree or flat_tree(family.queries), family.queries, statistics)
    curves = Curves(RememberedStatistics(statistics), settings.table)
    if tree is None:
        flat = flat_tree(family.queries)
        tree = flat.with_buckets(tuple(curves.of(n.attributes).most for n in flat.nodes))
    return evaluate(tree, curves, settings.accounting).total


@dataclass(frozen=True)
class Comparison:
    """What is in force against the best there is, for some slices."""

    best: PlannedTree
    gain: float


def compared(
    read: str,
    family: Family,
    present: PlannedTree | None,
    statistics: Statistics,
    settings: TreeSettings,
    now: float,
) -> Comparison:
    cost = present_cost(present.tree if present else None, family, statistics, settings)
    found = decided(read, family.members, statistics, settings)
    nodes = found.tree.nodes
    whole = tuple(node.buckets >= statistics.groups(node.attributes) for node in nodes)
    gain = 1 - found.cost / max(1.0, cost)
    return Comparison(PlannedTree(found.tree, whole, gain, now), gain)
