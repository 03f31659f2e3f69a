"""Aggregate trees of a job: intermediate aggregates that several queries are made of (paper 4).

In: a read with its low-level plan, and statistics of its tuples. Out: the plan with inner nodes:
the aggregations of the same tuples and epochs as a tree, with the memory of each node. The slice is
a key of every node, so that statistics are those of a slice. A query whose keys another one has,
too, may be made of that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from terascope.low.groups import GroupFields
from terascope.low.plan import LowAggregate, LowPlan, Slot
from terascope.low.slots import MOST_SLOTS, Shape
from terascope.low.table_policies import Policy
from terascope.physical.drafts import Names
from terascope.physical.job import LowOutput, SourceRead
from terascope.physical.measured import Measured
from terascope.plan.expr import Expr
from terascope.plan.rel import Field
from terascope.plan.show import show_expr
from terascope.sharing.model import Node, Query, Statistics
from terascope.sharing.plan import Planned, plan_tree

LEAST_QUERIES: Final = 3
"""Fewer are not worth looking at a sample for."""
LEAST_GAIN: Final = 0.15
"""A tree must save this part of the hash operations."""


@dataclass(frozen=True)
class TreeSettings:
    """How trees are planned."""

    memory_bytes: int
    """M: what the tables of inner nodes may use."""
    eps: float = 0.05
    table: Policy = "lru"
    """Of nodes that do not get all the memory they want."""


@dataclass(frozen=True)
class TreeDecision:
    """What was decided about some aggregations, for explain."""

    read: str
    queries: tuple[str, ...]
    planned: Planned
    used: bool


def with_trees(
    read: SourceRead, measured: Measured, settings: TreeSettings
) -> tuple[SourceRead, list[TreeDecision]]:
    """A read whose aggregations are made of each other where that saves hash operations."""
    low = read.low
    if low is None:
        return read, []
    decisions: list[TreeDecision] = []
    for members in families(low):
        statistics = measured.statistics(read, *members)
        if statistics is None:
            continue
        planned = planned_tree(members, statistics, settings)
        gain = 1 - planned.cost.total / max(1.0, planned.flat_cost.total)
        made = None
        if gain >= LEAST_GAIN:
            made = Grafting(low, members, planned, settings, statistics.groups).plan()
        names = tuple(q.name for q in members)
        decisions.append(TreeDecision(read.name, names, planned, made is not None))
        low = made or low
    return replace(read, low=low), decisions


def families(low: LowPlan) -> list[list[LowAggregate]]:
    """Aggregations that could be one tree: of the same tuples, in the same epochs."""
    found: dict[object, list[LowAggregate]] = {}
    for query in low.queries:
        if isinstance(query, LowAggregate) and query.epoch is not None and query.plain_keys:
            same = (
                query.interfaces,
                frozenset(query.signature),
                frozenset(query.rest),
                frozenset(query.anyof),
                query.keys[query.epoch][1],
                query.epoch_in_key,
            )
            found.setdefault(same, []).append(query)
    return [members for members in found.values() if len(members) >= LEAST_QUERIES]


def planned_tree(
    members: Sequence[LowAggregate], statistics: Statistics, settings: TreeSettings
) -> Planned:
    queries = tuple(Query(attributes_of(q), len(q.slots)) for q in members)
    return plan_tree(
        queries, statistics, settings.memory_bytes, table=settings.table, eps=settings.eps
    )


def attributes_of(query: LowAggregate) -> frozenset[str]:
    return frozenset(show_expr(expr) for expr in query.plain_keys)


@dataclass(frozen=True)
class Grafting:
    """Puts a tree into a low-level plan."""

    low: LowPlan
    members: Sequence[LowAggregate]
    planned: Planned
    settings: TreeSettings
    groups: Callable[[frozenset[str]], float]

    def plan(self) -> LowPlan | None:
        """None when a node would need more slots than a table has."""
        names = Names({q.name for q in (*self.low.queries, *self.low.inner)})
        nodes = self.planned.tree.nodes
        homes = self.homes(nodes)
        called = [
            homes[i][0].name if homes[i] else names.take(f"tree_{i}") for i in range(len(nodes))
        ]
        slots = self.slots(nodes, homes)
        if max(map(len, slots)) > MOST_SLOTS:
            return None
        inner: list[LowAggregate] = []
        changed: dict[str, LowAggregate] = {}
        for place, node in enumerate(nodes):
            parent = None if node.parent is None else called[node.parent]
            if not homes[place]:
                inner.append(self.inner_node(called[place], node, slots[place], parent))
            for query in homes[place]:
                first = query is homes[place][0]
                own = slots[place] if first else query.slots
                changed[query.name] = replace(query, slots=own, parent=parent)
        queries = tuple(changed.get(q.name, q) for q in self.low.queries)
        return replace(self.low, queries=queries, inner=(*self.low.inner, *inner))

    def homes(self, nodes: Sequence[Node]) -> list[list[LowAggregate]]:
        """The queries that each node is; none for an inner node."""
        by_keys: dict[frozenset[str], list[LowAggregate]] = {}
        for query in self.members:
            by_keys.setdefault(attributes_of(query), []).append(query)
        return [by_keys[node.attributes] if node.is_query else [] for node in nodes]

    def slots(
        self, nodes: Sequence[Node], homes: Sequence[Sequence[LowAggregate]]
    ) -> list[tuple[Slot, ...]]:
        """For each node all that it and those below it need, its own slots first."""
        found: list[dict[object, Slot]] = [{} for _ in nodes]
        for place in range(len(nodes)):
            for query in homes[place]:
                at: int | None = place
                while at is not None:
                    for slot in query.slots:
                        kept = (slot.kind, slot.argument, slot.where)
                        found[at].setdefault(kept, slot)
                    at = nodes[at].parent
        made: list[tuple[Slot, ...]] = []
        for place, wanted in enumerate(found):
            own = homes[place][0].slots if homes[place] else ()
            known = {(s.kind, s.argument, s.where) for s in own}
            names = Names({s.name for s in own})
            rest = [slot for kept, slot in wanted.items() if kept not in known]
            more = (replace(slot, name=names.take(slot.name)) for slot in rest)
            made.append((*own, *more))
        return made

    def inner_node(
        self, name: str, node: Node, slots: tuple[Slot, ...], parent: str | None
    ) -> LowAggregate:
        """A table that nobody reads but its children."""
        first = self.members[0]
        assert first.epoch is not None
        exprs: dict[str, Expr] = {show_expr(e): e for q in self.members for e in q.plain_keys}
        keys = [(f"k{i}", exprs[a]) for i, a in enumerate(sorted(node.attributes))]
        epoch = ("epoch", first.keys[first.epoch][1])
        whole = node.buckets >= self.groups(node.attributes)
        table = (
            first.table
            if whole
            else replace(first.table, kind=self.settings.table, groups=max(1, int(node.buckets)))
        )
        return replace(
            first, name=name, keys=(epoch, *keys), epoch=0, slots=slots, table=table, parent=parent
        )


def widened(outputs: Iterable[LowOutput], reads: Sequence[SourceRead]) -> tuple[LowOutput, ...]:
    """Streams as their tables are now: one that others are made of has their slots, too."""
    slots: Mapping[str, tuple[Slot, ...]] = {
        q.name: q.slots
        for read in reads
        if read.low is not None
        for q in read.low.queries
        if isinstance(q, LowAggregate)
    }
    made = []
    for output in outputs:
        groups, own = output.groups, slots.get(output.name)
        if groups is not None and own is not None and len(own) > len(groups.slots):
            wide = GroupFields(
                groups.keys,
                tuple(Field(s.name, s.type) for s in own),
                Shape(groups.shape.keys, tuple(s.kept for s in own)),
                groups.epoch,
            )
            output = replace(output, fields=wide.fields, groups=wide)
        made.append(output)
    return tuple(made)
