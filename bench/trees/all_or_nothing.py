"""All or nothing: the best allocation when all groups are equally frequent (paper 4, section VII).

In: a tree, curves, an accounting, the memory. Out: buckets of each node.

Theorem 3: some best allocation gives every node all it can use or nothing, except one node. So the
rows that enter a node are the stream's or the groups of one of its ancestors, and the sets of nodes
that get all are found exactly, as pairs of cost and memory that no other beats. What memory is then
left goes to the one node where it saves most.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from terascope.sharing.cost import Accounting, costs_of
from terascope.sharing.curves import Curves
from terascope.sharing.fptas import Allocator
from terascope.sharing.model import Tree

Choice: TypeAlias = tuple[float, float, frozenset[int]]
"""Cost, memory, and the nodes that get all."""

MOST_CHOICES: Final = 400
"""Kept for a subtree: beyond, pairs whose costs are next to each other are thinned out."""


@dataclass
class AllOrNothing:
    """The pairs of each subtree, for each number of rows that may enter it."""

    allocator: Allocator
    memory_bytes: float
    known: dict[tuple[int, float], list[Choice]] = field(default_factory=dict)

    def below(self, at: int | None, rows: float) -> list[Choice]:
        """Of all children of a node together."""
        total: list[Choice] = [(0.0, 0.0, frozenset())]
        for child in self.allocator.below.get(at, ()):
            some = self.subtree(child, rows)
            total = self._unbeaten(
                [
                    (cost + more, memory + size, chosen | others)
                    for cost, memory, chosen in total
                    for more, size, others in some
                ]
            )
        return total

    def subtree(self, at: int, rows: float) -> list[Choice]:
        known = self.known.get((at, rows))
        if known is not None:
            return known
        made, weight = self.allocator.made[at], self.allocator.weight[at]
        found: list[Choice] = []
        full = min(rows, made.groups)
        size = made.most * self.allocator.size[at]
        if size <= self.memory_bytes:
            for cost, memory, chosen in self.below(at, full):
                found.append((cost + weight * full, memory + size, chosen | {at}))
        if not self.allocator.free[at]:
            refund = 0.0 if self.allocator.tree.nodes[at].is_query else rows
            for cost, memory, chosen in self.below(at, rows):
                found.append((cost + weight * rows - refund, memory, chosen))
        self.known[(at, rows)] = self._unbeaten(found)
        return self.known[(at, rows)]

    def _unbeaten(self, choices: list[Choice]) -> list[Choice]:
        kept: list[Choice] = []
        for choice in sorted(choices, key=lambda choice: choice[:2]):
            if choice[1] <= self.memory_bytes and (not kept or choice[1] < kept[-1][1]):
                kept.append(choice)
        if len(kept) <= MOST_CHOICES:
            return kept
        step = (len(kept) - 1) / (MOST_CHOICES - 1)
        return [kept[round(at * step)] for at in range(MOST_CHOICES)]


def all_or_nothing(
    tree: Tree, curves: Curves, accounting: Accounting, memory_bytes: float
) -> tuple[tuple[float, ...], float]:
    """Buckets of each node, and the cost with nodes left out that get nothing."""
    allocator = Allocator(tree, curves, accounting, 0.05)
    found = AllOrNothing(allocator, memory_bytes).below(None, curves.statistics.tuples)
    count = len(tree.nodes)
    rows: list[list[float]] = []
    for _, memory, chosen in found:
        sizes = [
            allocator.made[at].most if at in chosen or allocator.free[at] else 0.0
            for at in range(count)
        ]
        rows.append(sizes)
        for at in range(count):
            if sizes[at] == 0 and allocator.size[at] > 0:
                part = (memory_bytes - memory) / allocator.size[at]
                rows.append([*sizes[:at], min(part, allocator.made[at].most), *sizes[at + 1 :]])
    allocations = np.array(rows)
    cost = costs_of(allocations, allocator.arrays)
    best = int(cost.argmin())
    return tuple(float(size) for size in allocations[best]), float(cost[best])
