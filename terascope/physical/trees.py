"""Aggregate trees of a job: intermediate aggregates that several queries are made of (paper 4).

In: a read with its low-level plan, and statistics of its tuples. Out: the plan with inner nodes:
the aggregations of the same tuples and epochs as a tree, with the memory of each node. The slice is
a key of every node, so that statistics are those of a slice. A query whose keys another one has,
too, may be made of that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from terascope.low.groups import GroupFields
from terascope.low.plan import LowAggregate, LowPlan, Slot
from terascope.low.slots import MOST_SLOTS, Shape
from terascope.low.table_policies import Policy
from terascope.physical.caches import cache_bytes
from terascope.physical.drafts import Names
from terascope.physical.job import LowOutput, SourceRead, TreeDecision
from terascope.physical.measured import Measured
from terascope.plan.expr import Expr
from terascope.plan.rel import Field
from terascope.plan.show import show_expr
from terascope.sharing.model import Node, Query, Statistics, Tree
from terascope.sharing.plan import plan_tree
from terascope.sharing.timed import plan_for_time

Mode: TypeAlias = Literal["time", "operations", "never"]

LEAST_QUERIES: Final = 3
"""Fewer are not worth looking at a sample for."""
LEAST_GAIN: Final = 0.05
"""A tree must save this part of what the flat plan costs."""


@dataclass(frozen=True)
class TreeSettings:
    """How trees are planned."""

    mode: Mode = "time"
    """What they shall save: time, in tables that grow; or hash operations, in tables that share a
    fixed memory, as paper 4 has it."""
    memory_bytes: int | None = None
    """M: what the tables of inner nodes may use; None: the caches of a core."""
    eps: float = 0.05
    table: Policy = "lru"
    """Of nodes that do not get all the memory they want."""

    @property
    def budget(self) -> int:
        return self.memory_bytes or cache_bytes()


def with_trees(
    read: SourceRead, sampled: SourceRead, measured: Measured, settings: TreeSettings
) -> tuple[SourceRead, list[TreeDecision]]:
    """A read whose aggregations are made of each other where that saves something. `sampled`: the
    read before aggregations were given common tables, of which there is a sample.
    """
    low, decisions = read.low, list[TreeDecision]()
    if low is None or sampled.low is None or settings.mode == "never":
        return read, []
    known = {q.name: q for q in sampled.low.queries if isinstance(q, LowAggregate)}
    for members in families(low):
        statistics = measured.statistics(sampled, *(known[q.name] for q in members))
        if statistics is None or not statistics.tuples:
            continue
        found = decided(read.name, members, statistics, settings)
        made = None
        if found.gain >= LEAST_GAIN:
            made = Grafting(low, members, found.tree, settings, statistics.groups).plan()
        decisions.append(replace(found, used=made is not None))
        low = made or low
    return replace(read, low=low), decisions


def decided(
    read: str, members: Sequence[LowAggregate], statistics: Statistics, settings: TreeSettings
) -> TreeDecision:
    """The best tree of some aggregations."""
    queries = tuple(Query(attributes_of(q), len(q.slots)) for q in members)
    names = tuple(q.name for q in members)
    if settings.mode == "time":
        timed = plan_for_time(queries, statistics)
        inner = [node for node in timed.tree.nodes if not node.is_query]
        memory = sum(node.buckets * node.entry_bytes(0) for node in inner)
        return TreeDecision(
            read, names, timed.tree, "ns", timed.nanoseconds, timed.flat_nanoseconds,
            timed.operations, timed.flat_operations, memory, timed.seconds,
        )  # fmt: skip
    planned = plan_tree(
        queries, statistics, settings.budget, table=settings.table, eps=settings.eps
    )
    cost, flat = planned.cost.total, planned.flat_cost.total
    return TreeDecision(
        read, names, planned.tree, "hash operations", cost, flat, cost, flat,
        planned.memory_bytes, planned.seconds,
    )  # fmt: skip


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


def attributes_of(query: LowAggregate) -> frozenset[str]:
    return frozenset(show_expr(expr) for expr in query.plain_keys)


@dataclass(frozen=True)
class Grafting:
    """Puts a tree into a low-level plan."""

    low: LowPlan
    members: Sequence[LowAggregate]
    tree: Tree
    settings: TreeSettings
    groups: Callable[[frozenset[str]], float]

    def plan(self) -> LowPlan | None:
        """None when a node would need more slots than a table has."""
        names = Names({q.name for q in (*self.low.queries, *self.low.inner)})
        nodes = self.tree.nodes
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
