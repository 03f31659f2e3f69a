"""The cost of a tree: C(T) = sum of out_i h_i (paper 4, section IV), in two accountings.

In: a tree with its buckets, the curves of its attribute sets. Out: `HashOperations`: those during
the epoch, and those at its end, when the tables are flushed from the top down. `costs_of` gives the
total of many allocations of one tree at once, from `TreeArrays`.

The paper gives every query's table all the memory it can use and charges only intermediate
aggregates to the budget. Our accounting bounds the queries' tables, too: each row that leaves one
is exchanged, which costs some hash operations, and more rows leave than there are groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from terascope.machine_code import compiled
from terascope.sharing.curves import GRID, SIZES, Curves, Floats, in_use
from terascope.sharing.model import OVERHEAD, Node, TableModel, Tree, entry_bytes

Flags: TypeAlias = npt.NDArray[np.bool_]

EXCHANGE: Final = 8.0
"""The cost of packing, exchanging and merging a group, in hash operations: 90 ns against 12 ns."""


@dataclass(frozen=True)
class Accounting:
    """The rows that cost hash operations, and the tables that take memory of the budget."""

    model: TableModel
    exchange: float = 0.0
    """Hash operations for each row that leaves a query's table."""
    bounded_leaves: bool = False
    bucket_bytes: int | None = None
    """Bytes of every bucket; None: the size of an entry of the node. The paper's figures measure
    memory in buckets, whatever the size of their entries."""

    def is_free(self, is_query: bool) -> bool:
        """Whether a node has all the memory it can use, outside of the budget."""
        return is_query and not self.bounded_leaves

    def per_row(self, is_query: bool) -> float:
        """Hash operations to exchange a row that leaves the node."""
        return self.exchange if is_query and self.bounded_leaves else 0.0

    def bytes_of(self, node: Node) -> int:
        """Bytes of the budget that a bucket of the node takes."""
        if self.is_free(node.is_query):
            return 0
        return self.entry_bytes(len(node.attributes), node.slots)

    def entry_bytes(self, keys: int, slots: int) -> int:
        return self.bucket_bytes or entry_bytes(keys, slots, OVERHEAD[self.model])

    def memory(self, tree: Tree) -> float:
        return sum(node.buckets * self.bytes_of(node) for node in tree.nodes)


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


class TreeArrays(NamedTuple):
    """A tree as the kernels read it: a row for each node."""

    parent: npt.NDArray[np.int64]
    """-1: the node takes the tuples of the stream."""
    weight: Floats
    """Hash operations for each row that leaves the node."""
    size: Floats
    """Bytes of a bucket."""
    free: Flags
    is_query: Flags
    tuples: float
    buckets: Floats
    """By [node, size]: the sizes of the curve of the node. The next four are its form."""
    grids: Floats
    cells: npt.NDArray[np.int64]
    shares: Floats
    log_out: Floats


def tree_arrays(tree: Tree, curves: Curves, accounting: Accounting) -> TreeArrays:
    nodes = tree.nodes
    per_row = [accounting.per_row(node.is_query) for node in nodes]
    forms = [curves.form(node.attributes) for node in nodes]
    return TreeArrays(
        np.array([-1 if node.parent is None else node.parent for node in nodes], np.int64),
        np.array(tree.degrees()) + np.array(per_row),
        np.array([float(accounting.bytes_of(node)) for node in nodes]),
        np.array([accounting.is_free(node.is_query) for node in nodes], np.bool_),
        np.array([node.is_query for node in nodes], np.bool_),
        curves.statistics.tuples,
        np.array([curves.of(node.attributes).buckets for node in nodes]).reshape(-1, SIZES),
        np.array([form.grid for form in forms]).reshape(-1, GRID),
        np.array([form.cell for form in forms], np.int64).reshape(-1, GRID, SIZES),
        np.array([form.share for form in forms]).reshape(-1, GRID, SIZES),
        np.array([form.log_out for form in forms]).reshape(-1, GRID, SIZES),
    )


@compiled
def interpolated(values: Floats, grid: Floats, rows: float) -> float:
    """The value at a number of rows, linear between the points of a geometric grid."""
    if rows <= grid[0]:
        return float(values[0])
    at = np.log(rows / grid[0]) / np.log(grid[1] / grid[0])
    cell = min(int(at), len(grid) - 2)
    share = min((rows - grid[cell]) / (grid[cell + 1] - grid[cell]), 1.0)
    return float(values[cell] + share * (values[cell + 1] - values[cell]))


@compiled
def located(grid: Floats, rows: float) -> tuple[int, float]:
    """The cell of a geometric grid in which a number of rows is, and the position within it."""
    place = np.log(max(rows / grid[0], 1.0)) / np.log(grid[1] / grid[0])
    low = min(int(place), len(grid) - 2)
    return low, min(place - low, 1.0)


@compiled
def leaving(log_out: Floats, size: int, low: int, part: float) -> float:
    """The rows that leave a table of one of the sizes of its curve, for an input in its form."""
    return float(np.exp((1 - part) * log_out[low, size] + part * log_out[low + 1, size]))


@compiled
def costs_of(allocations: Floats, tree: TreeArrays) -> Floats:
    """C(T) of each allocation, without intermediate nodes that get no memory: rows need not pass
    through such a node.
    """
    grids, weight, buckets, log_out = tree.grids, tree.weight, tree.buckets, tree.log_out
    parent, tuples = tree.parent, tree.tuples
    count, sizes = buckets.shape
    found = np.zeros(len(allocations))
    out = np.zeros(count)
    for one in range(len(allocations)):
        cost = 0.0
        for at in range(count):
            rows = tuples if parent[at] < 0 else out[parent[at]]
            cost += tuples if parent[at] < 0 else 0.0
            given = allocations[one, at]
            low, part = located(grids[at], rows)
            if tree.free[at] or (weight[at] > 0 and given >= buckets[at, sizes - 1]):
                out[at] = min(rows, leaving(log_out[at], sizes - 1, low, part))
            elif weight[at] == 0 or given <= 0:
                out[at] = rows
                cost -= 0.0 if tree.is_query[at] else rows
            else:
                right = max(1, np.searchsorted(buckets[at], given, "right"))
                less, more = buckets[at, right - 1], buckets[at, right]
                near = leaving(log_out[at], right - 1, low, part)
                far = leaving(log_out[at], right, low, part)
                out[at] = min(rows, near + (given - less) / (more - less) * (far - near))
            cost += weight[at] * out[at]
        found[one] = cost
    return found
