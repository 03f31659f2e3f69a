"""Planned trees, executed by the low level, and the hash operations they took.

In: a stream, a tree with its buckets. Out: what the tables of a `LowTask` counted. A hash operation
is a look-up: of a tuple in a table that takes the stream, of a row in a child's table. Tables of
queries have all the memory they want, as the paper has it; those of intermediate nodes have the
planned number of places, and a few more where every group was to have one: other epochs have a few
groups more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bench.trees.streams import Stream
from terascope.connectors.base import Column
from terascope.connectors.registry import parse_interface
from terascope.execute.task import Groups, LowTask, Ready
from terascope.functions.slots import COUNT
from terascope.physical.low_plan import LowAggregate, LowPlan, Slot, TableChoice, TableKind
from terascope.physical.splits import EVERYTHING
from terascope.plan.expr import Col
from terascope.sharing.distinct import attribute_hashes
from terascope.sharing.model import Node, Statistics, Tree
from terascope.sharing.statistics import SampledStatistics
from terascope.types import Type

MEMORY: Final = 4 << 30
"""Of the task: never a reason to empty a table."""
SPARE: Final = 1.05


@dataclass(frozen=True)
class HashOperations:
    """Of an epoch, in the mean."""

    total: float
    during: float
    """Of these, before the epoch is over and tables are flushed."""
    lost: int
    """Tuples that are in the groups of a query too few or too often, over all queries."""

    @property
    def end(self) -> float:
        return self.total - self.during


class WatchedTask(LowTask):
    """A task whose batches are epochs, and that notes what was looked up before they are over."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.early = 0
        self._at_end: dict[int, int] = {}
        """The look-ups of each node when its last epoch was over."""

    def _is_batch(self, place: int) -> bool:
        return True

    def _over(self, place: int, epoch: int) -> Iterator[Ready]:
        if place not in self._tree.parents:
            below = self._tree.subtree(place)
            self.early += sum(
                self._aggregators[at].probes - self._at_end.get(at, 0) for at in below
            )
        yield from super()._over(place, epoch)
        self._at_end[place] = self._aggregators[place].probes


def statistics_of(stream: Stream, share: float = 1.0) -> SampledStatistics:
    """What is known of a stream after its first epoch, of which this share was looked at."""
    columns = stream.epoch(0)
    tuples = len(next(iter(columns.values())))
    rows = np.flatnonzero(np.random.default_rng(tuples).random(tuples) < share)
    vectors = {name: attribute_hashes(codes[rows], name) for name, codes in columns.items()}
    return SampledStatistics(vectors, len(rows), float(tuples))


def executed(stream: Stream, tree: Tree, kind: TableKind, statistics: Statistics) -> HashOperations:
    """The tree over all epochs of a stream; `kind`: of the tables of intermediate nodes."""
    plan = low_plan(stream.attributes, tree, kind, statistics)
    splits = parse_interface(f"flows=parquet:{stream.path}").splits(1)
    task = WatchedTask(plan, dict.fromkeys(range(len(plan.queries)), EVERYTHING))
    counted = np.zeros(len(plan.queries), np.int64)
    for ready in task.run(splits):
        if isinstance(ready, Groups):
            counted[ready.query] += tuples_in(plan, ready)
    return HashOperations(
        float(task.counters.probes.sum()) / stream.epochs,
        task.early / stream.epochs,
        int(np.abs(counted - stream.records).sum()),
    )


def tuples_in(plan: LowPlan, groups: Groups) -> int:
    query = plan.queries[groups.query]
    assert isinstance(query, LowAggregate)
    return int(groups.block.rows[:, query.groups.shape.slot(0)].sum())


def low_plan(
    attributes: Sequence[str], tree: Tree, kind: TableKind, statistics: Statistics
) -> LowPlan:
    columns = tuple(Column(name, Type.LLONG) for name in ("tb", *attributes))
    made = [low_node(tree, at, kind, statistics) for at in range(len(tree.nodes))]
    queries = [m for m, node in zip(made, tree.nodes, strict=True) if node.is_query]
    inner = [m for m, node in zip(made, tree.nodes, strict=True) if not node.is_query]
    return LowPlan(columns, (), tuple(queries), MEMORY, inner=tuple(inner))


def low_node(tree: Tree, at: int, kind: TableKind, statistics: Statistics) -> LowAggregate:
    """Counts the tuples of its groups; names are places in the tree."""
    node = tree.nodes[at]
    keys = tuple((name, Col(name, Type.LLONG)) for name in ("tb", *sorted(node.attributes)))
    slots = (Slot("n", COUNT, None, Type.LLONG),)
    parent = None if node.parent is None else f"n{node.parent}"
    table = table_of(node, kind, statistics.groups(node.attributes))
    return LowAggregate(f"n{at}", ("flows",), (), (), keys, 0, slots, table, parent=parent)


def table_of(node: Node, kind: TableKind, groups: float) -> TableChoice:
    if node.is_query:
        return TableChoice("open", max_bytes=MEMORY)
    room = node.buckets * (SPARE if kind == "lru" and node.buckets >= groups else 1.0)
    return TableChoice(kind, groups=max(1, round(room)))
