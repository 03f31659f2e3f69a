"""Aggregate trees that save time, with a price in nanoseconds for each look-up.

In: queries and statistics of an epoch. Out: a tree in which every table has the memory it can use,
and the time of this tree and of the flat plan.

Problem: paper 4 counts hash operations, but these differ. A table of few groups is an array whose
place is computed from the codes of the keys, which takes a quarter of a look-up among many groups;
a table of many keys takes longer than one of two; and on every tree edge the rows of the parent are
decoded again for its children. So the fewest hash operations are not the least time: an
intermediate aggregate pays when it is much smaller than its input and replaces several slow
look-ups.

Idea: siblings are merged below their union while that saves at least 1% of the flat plan's time.
Cost: unions are tried in the order of an upper bound of their saving, so that few are counted.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from time import perf_counter
from typing import Final

from terascope.sharing.model import (
    Attributes,
    Node,
    Query,
    RememberedStatistics,
    Statistics,
    Tree,
    slots_by_keys,
)

LEAST_GAIN: Final = 0.01
"""The share of the time of the flat plan that an intermediate node must save."""

# Nanoseconds; measured by `terascope bench trees`.
DENSE_PLACES: Final = 1 << 16
"""The number of groups up to which the place of a group is computed from its codes."""
DENSE_NS: Final = 2.5
SPARSE_NS: Final = 9.0
WORD_NS: Final = 3.0
"""The extra cost of each two keys beyond two."""
GROUP_NS: Final = 5.0
"""The extra cost of a group of another table, compared with a tuple."""
VECTOR_NS: Final = 2.0
"""The cost of each key and slot of a group on a tree edge."""


@dataclass(frozen=True)
class Timed:
    """A tree and its time in an epoch."""

    tree: Tree
    nanoseconds: float
    flat_nanoseconds: float
    seconds: float
    """The time that planning took."""


@dataclass
class Growing:
    """A tree while nodes are added to it."""

    statistics: Statistics
    slots: Mapping[Attributes, int]
    parents: dict[Attributes, Attributes | None] = field(default_factory=dict, init=False)
    """The parent of each node; None: the stream."""
    _children: dict[Attributes | None, dict[Attributes, None]] = field(
        default_factory=dict, init=False
    )
    """The children of each node, in the order of `parents`."""
    _tables: dict[Attributes, float] = field(default_factory=dict, init=False)

    def hang(self, node: Attributes, parent: Attributes | None) -> None:
        """Make a node, new or not, a child of a parent."""
        if node in self.parents:
            del self._children[self.parents[node]][node]
        self.parents[node] = parent
        self._children.setdefault(parent, {})[node] = None

    def children(self, node: Attributes | None) -> list[Attributes]:
        return list(self._children.get(node, ()))

    def rows(self, node: Attributes | None) -> float:
        """The rows that leave a node in an epoch."""
        return self.statistics.tuples if node is None else self.statistics.groups(node)

    def lookup(self, node: Attributes, parent: Attributes | None) -> float:
        """The time of one row of a parent in the table of a node."""
        found = self._tables.get(node)
        if found is None:
            found = self._tables[node] = self.table(node)
        return found if parent is None else found + GROUP_NS

    def table(self, node: Attributes) -> float:
        """The time of one tuple in the table of a node."""
        sizes = (self.statistics.groups(frozenset({one})) + 1 for one in node)
        if prod(sizes) <= DENSE_PLACES:
            return DENSE_NS
        return SPARSE_NS + WORD_NS * ((len(node) - 1) // 2)

    def edge_ns(self, node: Attributes, children: Sequence[Attributes]) -> float:
        """The time of one row on the tree edges from a node to its children."""
        if not children:
            return 0.0
        keys = len(frozenset().union(*children))
        slots = max(self.slots.get(child, 1) for child in children)
        return VECTOR_NS * (keys + slots)

    def nanoseconds(self) -> float:
        looked = sum(map(self.lookups, self.parents))
        down = (self.rows(n) * self.edge_ns(n, self.children(n)) for n in self.parents)
        return looked + sum(down)

    def lookups(self, node: Attributes) -> float:
        """The time of all rows that enter a node."""
        parent = self.parents[node]
        return self.rows(parent) * self.lookup(node, parent)

    # ---- merging siblings

    def below(self, node: Attributes, parent: Attributes | None) -> list[Attributes]:
        """The children of a parent that would become children of a new node."""
        return [child for child in self._children.get(parent, ()) if child < node]

    def gain(
        self,
        node: Attributes,
        parent: Attributes | None,
        taken: Sequence[Attributes],
        groups: float,
    ) -> float:
        """The time that a new node with this many groups saves when it takes over some children."""
        before = self.rows(parent) * sum(self.lookup(child, parent) for child in taken)
        own = self.rows(parent) * self.lookup(node, parent)
        each = sum(self.lookup(child, node) for child in taken) + self.edge_ns(node, taken)
        return before - own - groups * each

    def candidates(
        self, parent: Attributes | None, among: Sequence[Attributes]
    ) -> Iterator[tuple[float, Attributes]]:
        """Unions of siblings, each with an upper bound of its saving."""
        for union in {a | b for a, b in combinations(among, 2)}:
            if union in self.parents:
                continue
            taken = self.below(union, parent)
            least = max(self.statistics.groups(child) for child in taken)
            best = self.gain(union, parent, taken, least)
            if best > 0:
                yield best, union

    def add(self, node: Attributes, parent: Attributes | None) -> None:
        for child in self.below(node, parent):
            self.hang(child, node)
        self.hang(node, parent)


def plan_for_time(queries: Sequence[Query], statistics: Statistics) -> Timed:
    """The tree that takes the least time, as far as merging siblings finds it."""
    began = perf_counter()
    slots = slots_by_keys(queries)
    growing = Growing(RememberedStatistics(statistics), slots)
    for node in slots:
        growing.hang(node, None)
    flat = growing.nanoseconds()
    hang_below_queries(growing)
    pending: list[Attributes | None] = [None, *growing.parents]
    while pending:
        parent = pending.pop()
        while (found := best_node(growing, parent, LEAST_GAIN * flat)) is not None:
            growing.add(found, parent)
            pending.append(found)
    return Timed(made_tree(growing), growing.nanoseconds(), flat, perf_counter() - began)


def hang_below_queries(growing: Growing) -> None:
    """Make a query the child of another query that has its keys, where that saves time."""
    for child in list(growing.parents):
        rivals = [node for node in growing.slots if child < node]
        now = growing.rows(None) * growing.lookup(child, None)
        for node in sorted(rivals, key=lambda n: (growing.rows(n), sorted(n))):
            taken = [*growing.children(node), child]
            more = growing.edge_ns(node, taken) - growing.edge_ns(node, taken[:-1])
            if growing.rows(node) * (growing.lookup(child, node) + more) < now:
                growing.hang(child, node)
                break


def best_node(growing: Growing, parent: Attributes | None, least: float) -> Attributes | None:
    """The new node below a parent that saves most, and at least the given time. Only candidates
    that could be the best are counted.
    """
    among = growing.children(parent)
    queue = [(-best, sorted(union), union) for best, union in growing.candidates(parent, among)]
    heapq.heapify(queue)
    found, gain = None, least
    while queue and -queue[0][0] > gain:
        _, _, union = heapq.heappop(queue)
        taken = growing.below(union, parent)
        saved = growing.gain(union, parent, taken, growing.statistics.groups(union))
        if saved > gain:
            found, gain = union, saved
    return found


def made_tree(growing: Growing) -> Tree:
    """A tree with nodes after their parents, each with the memory it can use."""
    order: list[Attributes] = []
    pending = growing.children(None)
    while pending:
        node = pending.pop(0)
        order.append(node)
        pending += growing.children(node)
    places = {node: place for place, node in enumerate(order)}
    nodes = [
        Node(
            node,
            None if (parent := growing.parents[node]) is None else places[parent],
            node in growing.slots,
            growing.rows(node),
            growing.slots.get(node, 1),
        )
        for node in order
    ]
    return Tree(tuple(nodes))


def time_of(tree: Tree, queries: Sequence[Query], statistics: Statistics) -> float:
    """The nanoseconds that a tree takes in an epoch with these statistics, which need not be those
    it was planned for. Every table has the memory it can use, and queries with the same attributes
    have one table each.
    """
    slots = slots_by_keys(queries)
    growing = Growing(RememberedStatistics(statistics), slots)
    for node in tree.nodes:
        above = None if node.parent is None else tree.nodes[node.parent].attributes
        growing.hang(node.attributes, above)
    more = Counter(query.attributes for query in queries)
    more.subtract(slots.keys())
    return growing.nanoseconds() + sum(n * growing.lookups(node) for node, n in more.items())
