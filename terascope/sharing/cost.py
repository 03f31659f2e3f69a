"""The cost of a tree: C(T) = sum of out_i h_i (paper 4, section IV), in two accountings.

In: a tree with its buckets, the curves of its attribute sets. Out: `HashOperations`:
those during the epoch, and those at its end, when the tables are flushed from the top down.

The paper gives every query's table all the memory it can use and charges only intermediate
aggregates to the budget. Our accounting bounds the queries' tables, too: each row that leaves one
is exchanged, which costs some hash operations, and more rows leave than there are groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from terascope.sharing.curves import Curves
from terascope.sharing.evictions import in_use
from terascope.sharing.model import OVERHEAD, Node, TableModel, Tree, entry_bytes

EXCHANGE: Final = 8.0
"""The cost of packing, exchanging and merging a group, in hash operations: 90 ns against 12 ns."""


@dataclass(frozen=True)
class Accounting:
    """Which rows cost hash operations, and which tables take memory of the budget."""

    overhead: int
    exchange: float = 0.0
    """Hash operations for each row that leaves a query's table."""
    bounded_leaves: bool = False
    bucket_bytes: int | None = None
    """Bytes of every bucket; None: the size of an entry of the node. The paper's figures measure
    memory in buckets, whatever the size of their entries."""

    def is_free(self, is_query: bool) -> bool:
        """Whether a node has all the memory it can use, outside of the budget."""
        return is_query and not self.bounded_leaves

    def weight(self, node: Node, degree: int) -> float:
        """Hash operations for each row that leaves the node."""
        return degree + self.per_row(node.is_query)

    def per_row(self, is_query: bool) -> float:
        """Hash operations to exchange a row that leaves the node."""
        return self.exchange if is_query and self.bounded_leaves else 0.0

    def bytes_of(self, node: Node) -> int:
        """Bytes of the budget that a bucket of the node takes."""
        if self.is_free(node.is_query):
            return 0
        return self.entry_bytes(len(node.attributes), node.slots)

    def entry_bytes(self, keys: int, slots: int) -> int:
        return self.bucket_bytes or entry_bytes(keys, slots, self.overhead)

    def memory(self, tree: Tree) -> float:
        return sum(node.buckets * self.bytes_of(node) for node in tree.nodes)


def accounting_for(
    model: TableModel,
    exchange: float = 0.0,
    bounded_leaves: bool = False,
    bucket_bytes: int | None = None,
) -> Accounting:
    return Accounting(OVERHEAD[model], exchange, bounded_leaves, bucket_bytes)


@dataclass(frozen=True)
class HashOperations:
    """Hash operations of an epoch."""

    during: float
    end: float
    exchanged: float
    """Hash operations to exchange the rows that leave the queries' tables."""
    out: tuple[float, ...]
    """Rows that leave each node."""

    @property
    def total(self) -> float:
        return self.during + self.end + self.exchanged


def evaluate(tree: Tree, curves: Curves, accounting: Accounting) -> HashOperations:
    """C(T). Rows flushed at the end of the epoch enter the children and may evict groups there."""
    tuples = curves.statistics.tuples
    degrees = tree.degrees()
    early: list[float] = []
    out: list[float] = []
    during = len(tree.children(None)) * tuples
    end = exchanged = 0.0
    for node, degree in zip(tree.nodes, degrees, strict=True):
        rows_in, rows_early = (
            (tuples, tuples) if node.parent is None else (out[node.parent], early[node.parent])
        )
        made = curves.of(node.attributes)
        buckets = made.most if accounting.is_free(node.is_query) else node.buckets
        leaves = made.out(buckets, rows_in)
        held = in_use(buckets, made.groups, curves.model)
        before = min(leaves, max(0.0, made.out(buckets, rows_early) - held))
        out.append(leaves)
        early.append(before)
        during += before * degree
        end += (leaves - before) * degree
        exchanged += leaves * accounting.per_row(node.is_query)
    return HashOperations(during, end, exchanged, tuple(out))


def least_cost(tree: Tree, curves: Curves, accounting: Accounting) -> float:
    """The cost with all the memory that the tables can use: no allocation costs less."""
    most = tuple(curves.of(node.attributes).most for node in tree.nodes)
    return evaluate(tree.with_buckets(most), curves, accounting).total
