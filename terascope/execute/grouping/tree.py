"""Aggregate trees: groups that leave the table of a node enter the tables of its children (paper 4,
III-C and III-D).

In: nodes, each with the name of its parent. Out: for each child, how it reads the groups of its
parent. To the child they are tuples whose keys are encoded already, and whose arguments are the
parent's slots: counts are summed, and everything else is merged as it is aggregated. So one set of
tables and kernels serves tuples and groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from terascope.execute.grouping.selections import Condition, condition_of, entry_of
from terascope.functions.slots import COUNT, SlotKind
from terascope.physical.low_plan import LowAggregate, LowPlan, Slot
from terascope.plan.expr import Col, Expr
from terascope.types import Type


class TreeMistake(ValueError):
    """A node cannot be computed from its parent."""


@dataclass(frozen=True)
class ParentEdge:
    """A child as its table sees it."""

    query: LowAggregate
    """The query with slots of the parent as its arguments."""
    slots: tuple[int, ...]
    """The places of the parent's slots that its slots merge, in their order."""
    present: int
    """Bits of the state word: a group of the parent belongs to the child if it has one of them, or
    if there are none here."""


@dataclass(frozen=True)
class AggregateTrees:
    """The nodes of a plan, by place: its aggregations, then its intermediate nodes."""

    nodes: Mapping[int, LowAggregate]
    parents: Mapping[int, int]
    edges: Mapping[int, ParentEdge]

    def children(self, place: int) -> list[int]:
        return [child for child, parent in self.parents.items() if parent == place]

    def subtree(self, place: int) -> Iterator[int]:
        """A node and all nodes below it, parents first."""
        yield place
        for child in self.children(place):
            yield from self.subtree(child)

    def above(self, place: int) -> list[int]:
        """The ancestors of a node, from the top down."""
        if place not in self.parents:
            return []
        parent = self.parents[place]
        return [*self.above(parent), parent]

    def is_tableless(self, place: int) -> bool:
        """Whether a node has the keys of its parent: then it needs no table."""
        if place not in self.parents:
            return False
        parent = self.nodes[self.parents[place]]
        return frozenset(self.nodes[place].plain_keys) == frozenset(parent.plain_keys)

    def table_of(self, place: int) -> LowAggregate:
        """The node whose table holds the groups of a node."""
        return self.table_of(self.parents[place]) if self.is_tableless(place) else self.nodes[place]

    @property
    def roots(self) -> list[int]:
        """The nodes that take tuples."""
        return [place for place in self.nodes if place not in self.parents]


def tree_of(plan: LowPlan) -> AggregateTrees:
    """The aggregate trees of a plan.

    Raises:
        TreeMistake: a node cannot be made of its parent.
    """
    every = enumerate((*plan.queries, *plan.inner))
    nodes = {place: node for place, node in every if isinstance(node, LowAggregate)}
    places: dict[str, int] = {}
    for place, node in nodes.items():
        if places.setdefault(node.name, place) != place:
            raise TreeMistake(f"two nodes are called {node.name}")
    parents: dict[int, int] = {}
    for place, node in nodes.items():
        if node.parent is not None:
            if node.parent not in places:
                raise TreeMistake(f"there is no node {node.parent} for {node.name}")
            parents[place] = places[node.parent]
    edges = {place: edge(nodes[place], nodes[parent]) for place, parent in parents.items()}
    for place in parents:  # no more steps to a root than there are nodes
        at, steps = place, 0
        while at in parents and steps <= len(nodes):
            at, steps = parents[at], steps + 1
        if at in parents:
            raise TreeMistake(f"{nodes[place].name} is its own ancestor")
    return AggregateTrees(nodes, parents, edges)


# ---- one edge ------------------------------------------------------------------------------------


def edge(child: LowAggregate, parent: LowAggregate) -> ParentEdge:
    """Describe how a child reads the groups of a parent."""
    if epoch_of(child) != epoch_of(parent) or child.interfaces != parent.interfaces:
        raise TreeMistake(f"{child.name} has other epochs than {parent.name}, or another source")
    missing = [name for name, expr in child.keys if expr not in dict(parent.keys).values()]
    if missing:
        raise TreeMistake(f"{parent.name} has no key {missing[0]} for {child.name}")
    places = tuple(place_of(child, slot, parent) for slot in child.slots)
    slots = tuple(merged(slot, place) for slot, place in zip(child.slots, places, strict=True))
    read = replace(child, signature=(), rest=(), anyof=(), slots=slots, parent=None)
    return ParentEdge(read, places, presence(child, parent))


def epoch_of(node: LowAggregate) -> Expr | None:
    return None if node.epoch is None else node.keys[node.epoch][1]


def place_of(child: LowAggregate, slot: Slot, parent: LowAggregate) -> int:
    """The parent's slot that keeps the same state."""
    wanted = condition_of(child, slot).meaning
    for j, theirs in enumerate(parent.slots):
        same = (slot.kind, slot.argument) == (theirs.kind, theirs.argument)
        if same and condition_of(parent, theirs).meaning == wanted:
            return j
    raise TreeMistake(f"{parent.name} has no slot {slot.name} for {child.name}")


def merged(slot: Slot, place: int) -> Slot:
    """A slot of a child, over the parent's slot at a position."""
    return Slot(slot.name, slot.kind.of_partials, slot_column(place, slot.kind), slot.type)


def slot_column(place: int, kind: SlotKind) -> Col:
    """A slot of the parent as a column; no source has a column of this name."""
    return Col(f"slot {place}", Type.FLOAT if kind.is_float else Type.LLONG)


def presence(child: LowAggregate, parent: LowAggregate) -> int:
    """The bits that mark groups of the parent with a tuple of the child."""
    entry = entry_of(child)
    if entry.meaning == entry_of(parent).meaning:
        return 0
    bits = 0
    for one in entry.alternatives or (entry,):
        bits |= presence_bit(one, child, parent)
    return bits


def presence_bit(condition: Condition, child: LowAggregate, parent: LowAggregate) -> int:
    for j, slot in enumerate(parent.slots):
        counted = slot.kind == COUNT and slot.where is not None
        if counted and condition_of(parent, slot).meaning == condition.meaning:
            return 1 << (1 + j)
    raise TreeMistake(f"{parent.name} does not count the tuples of {child.name}")
