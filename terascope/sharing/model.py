"""Aggregate trees: queries, what is known of the stream, the tree itself (paper 4, III and IV).

In: group-by sets, and statistics of one epoch of the stream. Out: a `Tree` whose nodes are tables:
a node aggregates what leaves its parent, and a node without a parent what comes from the stream.

Only arithmetic lives in this package: nothing here knows of plans, tuples or kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import expm1, prod
from typing import Final, Literal, Protocol, TypeAlias

Attributes: TypeAlias = frozenset[str]
TableModel: TypeAlias = Literal["lru", "lfu", "uniform", "direct_mapped", "second_chance"]

WORD_BYTES: Final = 8
CHAIN_BYTES: Final = 20
"""Of an entry of a chained table: its bucket's head, and four links."""

OVERHEAD: Final[dict[TableModel, int]] = {
    "lru": CHAIN_BYTES,
    "lfu": CHAIN_BYTES,
    "uniform": CHAIN_BYTES,
    "direct_mapped": 0,
    "second_chance": 0,
}
"""Bytes that a table needs for an entry beside its row."""


class Statistics(Protocol):
    """What one epoch of the stream is like."""

    @property
    def tuples(self) -> float:
        """Tuples that come in an epoch."""

    def groups(self, attributes: Attributes) -> float:
        """Distinct values of the attributes in an epoch."""

    def exponent(self, attributes: Attributes) -> float:
        """Of their Zipf-like distribution; 0 if all groups are equally frequent."""


@dataclass(frozen=True)
class KnownStatistics:
    """Statistics from numbers that are given for some sets of attributes.

    A set that is not given has as many groups as the attributes, taken as independent and as
    uniform over the product of the largest given parts, show in an epoch: with d possible groups
    d (1 - exp(-tuples / d)), and never fewer than a given subset. Its exponent is the smallest of
    its parts': the paper sees exponents fall as attributes are added (0.85, 0.67, 0.48).
    """

    tuples: float
    known_groups: Mapping[Attributes, float]
    known_exponents: Mapping[Attributes, float] = field(default_factory=dict)

    def groups(self, attributes: Attributes) -> float:
        given = self.known_groups.get(attributes)
        if given is not None:
            return min(given, self.tuples)
        possible = prod(self.known_groups[part] for part in self._parts(attributes))
        least = max(
            (g for known, g in self.known_groups.items() if known <= attributes), default=1.0
        )
        return min(max(expected_distinct(possible, self.tuples), least), self.tuples)

    def exponent(self, attributes: Attributes) -> float:
        given = self.known_exponents.get(attributes)
        if given is not None:
            return given
        parts = (known for known in self.known_exponents if known <= attributes)
        return min((self.known_exponents[part] for part in parts), default=0.0)

    def _parts(self, attributes: Attributes) -> list[Attributes]:
        """Given sets that together are the attributes, the largest first."""
        parts: list[Attributes] = []
        rest = attributes
        inside = (known for known in self.known_groups if known <= attributes)
        for known in sorted(inside, key=lambda known: (-len(known), sorted(known))):
            if known <= rest and known:
                parts.append(known)
                rest -= known
        if rest:
            raise KeyError(f"nothing is known of {', '.join(sorted(rest))}")
        return parts


def expected_distinct(possible: float, draws: float) -> float:
    """Distinct values among draws from so many equally likely ones."""
    if possible <= 0 or draws <= 0:
        return 0.0
    return possible * -expm1(-draws / possible)


class RememberedStatistics:
    """Asks other statistics once for each set of attributes, and keeps to 1 <= groups <= tuples."""

    def __init__(self, asked: Statistics) -> None:
        self._asked = asked
        self._groups: dict[Attributes, float] = {}
        self._exponents: dict[Attributes, float] = {}
        self.tuples = max(1.0, float(asked.tuples))

    @property
    def questions(self) -> int:
        """How many sets were asked for."""
        return len(self._groups)

    def groups(self, attributes: Attributes) -> float:
        found = self._groups.get(attributes)
        if found is None:
            found = min(max(1.0, float(self._asked.groups(attributes))), self.tuples)
            self._groups[attributes] = found
        return found

    def exponent(self, attributes: Attributes) -> float:
        found = self._exponents.get(attributes)
        if found is None:
            found = max(0.0, float(self._asked.exponent(attributes)))
            self._exponents[attributes] = found
        return found


@dataclass(frozen=True)
class Query:
    """A group-by; `slots` is the number of aggregates that a group keeps."""

    attributes: Attributes
    slots: int = 1


def entry_bytes(keys: int, slots: int, overhead: int) -> int:
    """Of an entry: a word of state, the epoch, two keys a word, the slots; and the table's own."""
    return WORD_BYTES * (2 + (keys + 1) // 2 + slots) + overhead


@dataclass(frozen=True)
class Node:
    """A table of the tree."""

    attributes: Attributes
    parent: int | None
    """None: it takes the tuples of the stream."""
    is_query: bool
    buckets: float
    slots: int = 1

    def entry_bytes(self, overhead: int) -> int:
        return entry_bytes(len(self.attributes), self.slots, overhead)


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
        """Of a node; of None, those that take the stream's tuples."""
        return tuple(at for at, node in enumerate(self.nodes) if node.parent == place)

    def degrees(self) -> tuple[int, ...]:
        """Children of each node."""
        count = [0] * len(self.nodes)
        for node in self.nodes:
            if node.parent is not None:
                count[node.parent] += 1
        return tuple(count)

    def depth(self, place: int) -> int:
        """1 for a node that takes the stream's tuples."""
        parent = self.nodes[place].parent
        return 1 if parent is None else 1 + self.depth(parent)

    @property
    def height(self) -> int:
        return max((self.depth(place) for place in range(len(self.nodes))), default=0)

    def with_buckets(self, buckets: tuple[float, ...]) -> Tree:
        return Tree(
            tuple(
                Node(node.attributes, node.parent, node.is_query, given, node.slots)
                for node, given in zip(self.nodes, buckets, strict=True)
            )
        )

    def describe(self) -> str:
        """One line a node, children below their parents."""
        lines: list[str] = []

        def add(place: int) -> None:
            node = self.nodes[place]
            keys = ", ".join(sorted(node.attributes))
            kind = "query" if node.is_query else "intermediate"
            indent = "  " * (self.depth(place) - 1)
            lines.append(f"{indent}{{{keys}}} {kind}, {node.buckets:,.0f} buckets")
            for child in self.children(place):
                add(child)

        for place in self.children(None):
            add(place)
        return "\n".join(lines)


def flat_tree(queries: tuple[Query, ...]) -> Tree:
    """Every query from the stream itself; equal sets of attributes are one node."""
    slots: dict[Attributes, int] = {}
    for query in queries:
        slots[query.attributes] = max(query.slots, slots.get(query.attributes, 0))
    order = sorted(slots, key=lambda attributes: (-len(attributes), sorted(attributes)))
    return Tree(tuple(Node(keys, None, True, 0.0, slots[keys]) for keys in order))
