"""Aggregate trees: the queries, the statistics of a stream, and the tree (paper 4, III and IV).

Several group-bys over one stream can be computed from a common, finer group-by: an intermediate
aggregate, the paper's phantom. Each tuple then updates one table, and the rows that leave it update
the tables below. A `Tree` holds the tables as nodes, each after its parent: a node groups the rows
that leave its parent, and a node without a parent groups the tuples of the stream. The keys of a
node are always a subset of its parent's.

This package is arithmetic, without plans, tuples or kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal, Protocol, TypeAlias

Attributes: TypeAlias = frozenset[str]
TableModel: TypeAlias = Literal["lru", "uniform", "direct_mapped", "second_chance"]

WORD_BYTES: Final = 8
CHAIN_BYTES: Final = 20
"""Bytes of an entry of a chained table for chaining: the head of its bucket, and four links."""

OVERHEAD: Final[dict[TableModel, int]] = {
    "lru": CHAIN_BYTES,
    "uniform": CHAIN_BYTES,
    "direct_mapped": 0,
    "second_chance": 0,
}
"""Bytes that a table needs for an entry beside its row."""


class Statistics(Protocol):
    """The number of tuples of an epoch, and of the groups of any set of attributes."""

    @property
    def tuples(self) -> float:
        """The tuples that arrive in an epoch."""

    def groups(self, attributes: Attributes) -> float:
        """Distinct values of the attributes in an epoch."""

    def exponent(self, attributes: Attributes) -> float:
        """The Zipf exponent of the groups; 0: all groups are equally frequent."""


class RememberedStatistics:
    """Cached statistics, by set of attributes; 1 <= groups <= tuples holds."""

    def __init__(self, source: Statistics) -> None:
        self.tuples = tuples = max(1.0, float(source.tuples))
        self.groups: Callable[[Attributes], float] = cache(
            lambda attributes: min(max(1.0, float(source.groups(attributes))), tuples)
        )
        self.exponent: Callable[[Attributes], float] = cache(
            lambda attributes: max(0.0, float(source.exponent(attributes)))
        )


@dataclass(frozen=True)
class Query:
    """A group-by; `slots` is the number of aggregates that a group keeps."""

    attributes: Attributes
    slots: int = 1


def entry_bytes(keys: int, slots: int, overhead: int) -> int:
    """The bytes of an entry: state, epoch, two keys a word, slots, overhead of the table."""
    return WORD_BYTES * (2 + (keys + 1) // 2 + slots) + overhead


@dataclass(frozen=True)
class Node:
    """A table of the tree."""

    attributes: Attributes
    parent: int | None
    """The parent; None: the node groups the tuples of the stream."""
    is_query: bool
    buckets: float
    slots: int = 1


@dataclass(frozen=True)
class Tree:
    """Tables, each after its parent."""

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        for place, node in enumerate(self.nodes):
            if node.parent is None:
                continue
            if not 0 <= node.parent < place:
                raise ValueError(f"node {place} does not stand after its parent {node.parent}")
            if not node.attributes <= self.nodes[node.parent].attributes:
                raise ValueError(f"node {place} has keys that its parent {node.parent} has not")

    def children(self, place: int | None) -> tuple[int, ...]:
        """The children of a node; of None, the nodes that group the stream's tuples."""
        return tuple(at for at, node in enumerate(self.nodes) if node.parent == place)

    def degrees(self) -> tuple[int, ...]:
        """The number of children of each node."""
        count = Counter(node.parent for node in self.nodes)
        return tuple(count[place] for place in range(len(self.nodes)))

    def with_buckets(self, buckets: tuple[float, ...]) -> Tree:
        return Tree(
            tuple(
                replace(node, buckets=given)
                for node, given in zip(self.nodes, buckets, strict=True)
            )
        )

    def nested(self, place: int | None = None, depth: int = 0) -> Iterator[tuple[int, int]]:
        """All nodes below a node with their depth, children behind their parents."""
        for child in self.children(place):
            yield child, depth
            yield from self.nested(child, depth + 1)

    def describe(self) -> str:
        """One line for each node, children below their parents."""
        lines = []
        for place, depth in self.nested():
            node = self.nodes[place]
            keys = ", ".join(sorted(node.attributes))
            kind = "query" if node.is_query else "intermediate"
            lines.append(f"{'  ' * depth}{{{keys}}} {kind}, {node.buckets:,.0f} buckets")
        return "\n".join(lines)


class AttributeSets:
    """The attribute sets of a tree as bits of integers: unions and subsets are then machine
    operations.
    """

    def __init__(self, tree: Tree, statistics: Statistics) -> None:
        self._names = sorted({name for node in tree.nodes for name in node.attributes})
        self._statistics = statistics
        self.attributes: Callable[[int], Attributes] = cache(self._attributes)
        self.known_groups: dict[int, float] = {}
        """The groups of the sets that were counted so far."""

    def bits(self, attributes: Attributes) -> int:
        return sum(1 << at for at, name in enumerate(self._names) if name in attributes)

    def _attributes(self, bits: int) -> Attributes:
        return frozenset(name for at, name in enumerate(self._names) if bits >> at & 1)

    def groups(self, bits: int) -> float:
        found = self.known_groups.get(bits)
        if found is None:
            found = self._statistics.groups(self.attributes(bits))
            self.known_groups[bits] = found
        return found


def flat_tree(queries: tuple[Query, ...]) -> Tree:
    """Every query groups the stream itself; equal sets of attributes are one node."""
    slots = slots_by_keys(queries)
    return Tree(tuple(Node(keys, None, True, 0.0, slots[keys]) for keys in slots))


def slots_by_keys(queries: Iterable[Query]) -> dict[Attributes, int]:
    """The most slots of the queries with the same attributes; the finest attributes come first."""
    slots: dict[Attributes, int] = {}
    for query in queries:
        slots[query.attributes] = max(query.slots, slots.get(query.attributes, 0))
    order = sorted(slots, key=lambda attributes: (-len(attributes), sorted(attributes)))
    return {keys: slots[keys] for keys in order}
