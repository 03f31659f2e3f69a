"""Aggregate trees: groups that leave the table of a node enter the tables of its children (paper 4,
III-C and III-D).

In: nodes, each with the name of its parent. Out: for each child, how it reads the groups of its
parent. To the child they are tuples whose keys are encoded already, and whose arguments are the
parent's slots: counts are summed, and everything else is merged as it is aggregated. So one set of
tables and kernels serves tuples and groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """For each of its slots, the slot of the parent that it merges."""
    present: int
    """Bits of the state word: a group of the parent belongs to the child if it has one of them, or
    if there are none here."""


@dataclass(frozen=True)
class AggregateTrees:
    """The nodes of a plan: its queries by their places, then its intermediate nodes."""

    nodes: tuple[LowAggregate | None, ...]
    """The nodes; None: a selection, which is no node."""
    parents: tuple[int | None, ...]
    edges: tuple[ParentEdge | None, ...]

    def children(self, place: int) -> list[int]:
        return [child for child, parent in enumerate(self.parents) if parent == place]

    def subtree(self, place: int) -> Iterator[int]:
        """A node and all nodes below it, parents first."""
        yield place
        for child in self.children(place):
            yield from self.subtree(child)

    def above(self, place: int) -> list[int]:
        """The ancestors of a node, from the top down."""
        parent = self.parents[place]
        return [] if parent is None else [*self.above(parent), parent]

    def is_tableless(self, place: int) -> bool:
        """Whether a node has the keys of its parent: then it needs no table."""
        node, parent = self.nodes[place], self.parents[place]
        above = None if parent is None else self.nodes[parent]
        if node is None or above is None:
            return False
        return frozenset(node.plain_keys) == frozenset(above.plain_keys)

    def table_of(self, place: int) -> LowAggregate:
        """The node whose table holds the groups of a node."""
        parent = self.parents[place]
        if parent is not None and self.is_tableless(place):
            return self.table_of(parent)
        node = self.nodes[place]
        assert node is not None
        return node

    @property
    def roots(self) -> list[int]:
        pairs = enumerate(zip(self.nodes, self.parents, strict=True))
        return [place for place, (node, parent) in pairs if node is not None and parent is None]


def tree_of(plan: LowPlan) -> AggregateTrees:
    """The aggregate trees of a plan.

    Raises:
        TreeMistake: a node cannot be made of its parent.
    """
    queries = (q if isinstance(q, LowAggregate) else None for q in plan.queries)
    nodes = (*queries, *plan.inner)
    places: dict[str, int] = {}
    for place, node in enumerate(nodes):
        if node is not None and places.setdefault(node.name, place) != place:
            raise TreeMistake(f"two nodes are called {node.name}")
    parents: list[int | None] = []
    edges: list[ParentEdge | None] = []
    for node in nodes:
        if node is None or node.parent is None:
            parents.append(None)
            edges.append(None)
            continue
        if node.parent not in places:
            raise TreeMistake(f"there is no node {node.parent} for {node.name}")
        parents.append(places[node.parent])
        parent = nodes[places[node.parent]]
        assert parent is not None
        edges.append(edge(node, parent))
    check_that_it_ends(nodes, parents)
    return AggregateTrees(nodes, tuple(parents), tuple(edges))


def check_that_it_ends(nodes: Sequence[LowAggregate | None], parents: Sequence[int | None]) -> None:
    for place, node in enumerate(nodes):
        at, steps = parents[place], 0
        while at is not None and steps <= len(nodes):
            at, steps = parents[at], steps + 1
        if at is not None:
            raise TreeMistake(f"{node.name if node else place} is its own ancestor")


# ---- one edge ------------------------------------------------------------------------------------


def edge(child: LowAggregate, parent: LowAggregate) -> ParentEdge:
    """How a child reads the groups of a parent."""
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
