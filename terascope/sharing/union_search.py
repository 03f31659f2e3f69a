"""Trees whose tables have all the memory they can use, at a price of it.

In: the queries as a flat tree, statistics, an accounting, a price in hash operations a byte. Out: a
tree.

Idea: a table with enough memory gives its children one row for each of its groups, whatever its own
input is. So the set of nodes alone decides the cost of a tree: each node stands below the smallest
one that contains it. Where Algorithm 1 (greedy.py) merges siblings, this search adds the union of
any two nodes, and every node that gains moves below it; or it deletes a node. Both searches give
candidates: this one is better where there is memory for all (by 3 to 4% of the cost for the 78
pairs of attributes of flow records), the other one where tables get less.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from terascope.machine_code import compiled
from terascope.sharing.cost import Accounting
from terascope.sharing.curves import Floats
from terascope.sharing.greedy import gatherings, unions_of
from terascope.sharing.model import AttributeSets, Node, Statistics, Tree

Sets: TypeAlias = npt.NDArray[np.int64]

LEAST_GAIN: Final = 1e-5
"""The least gain of a node, as a share of the cost."""
MOST_UNIONS: Final = 1 << 17
"""The most unions that are tried, in the order of their bits."""


@compiled
def feeding(members: Sets, rows: Floats, tuples: float) -> Floats:
    """The input of each node: the rows of the smallest node that contains it, or the tuples."""
    fed = np.full(len(members), tuples)
    for at in range(len(members)):
        for up in range(len(members)):
            if members[at] & ~members[up] == 0 and members[at] != members[up]:
                fed[at] = min(fed[at], rows[up])
    return fed


@compiled
def gains_of(
    unions: Sets, groups: Floats, members: Sets, rows: Floats, fed: Floats, tuples: float
) -> Floats:
    """The saving of each union as a node, if it has this many groups and memory is free."""
    gains = np.zeros(len(unions))
    for u in range(len(unions)):
        own, saved = tuples, 0.0
        for at in range(len(members)):
            if members[at] & ~unions[u] == 0:
                saved += max(0.0, fed[at] - groups[u])
            elif unions[u] & ~members[at] == 0:
                own = min(own, rows[at])
        gains[u] = saved - own
    return gains


@dataclass
class UnionSearch:
    """A set of nodes while it is changed."""

    flat: Tree
    statistics: Statistics
    accounting: Accounting
    members: list[int] = field(init=False)
    price: float = 0.0

    def __post_init__(self) -> None:
        self.sets = AttributeSets(self.flat, self.statistics)
        self.slots = max((node.slots for node in self.flat.nodes), default=1)
        self.queries = {self.sets.bits(node.attributes): node for node in self.flat.nodes}
        self.members = list(self.queries)

    def memory_cost(self, bits: int, groups: float) -> float:
        if bits in self.queries:
            return 0.0
        return self.price * groups * self.accounting.entry_bytes(bits.bit_count(), self.slots)

    def improve(self, price: float) -> None:
        """Add and delete nodes until neither saves anything."""
        self.price = price
        while True:
            members = np.array(self.members, np.int64)
            rows = np.array([self.sets.groups(bits) for bits in self.members])
            fed = feeding(members, rows, self.statistics.tuples)
            least = LEAST_GAIN * float(fed.sum())
            added = self.best_union(members, rows, fed, least)
            dropped = self.worst_node(members, rows, fed, max(least, added[0]))
            if dropped is not None:
                self.members.remove(dropped)
            elif added[1] is not None:
                self.members.append(added[1])
            else:
                return

    def best_union(
        self, members: Sets, rows: Floats, fed: Floats, least: float
    ) -> tuple[float, int | None]:
        """The best saving, and its union. The groups of unions are counted in the order of an upper
        bound of the saving.
        """
        if len(members) < 2:
            return 0.0, None
        unions = unions_of(members)
        unions = unions[~np.isin(unions, members)][:MOST_UNIONS]
        known = np.array([self.sets.known_groups.get(int(bits), 0.0) for bits in unions])
        # A set has at least as many groups as any node that it contains.
        _, _, largest = gatherings(members, unions, fed, rows)
        floors = np.where(known > 0, known, largest)
        tuples = self.statistics.tuples
        bounds = gains_of(unions, floors, members, rows, fed, tuples)
        best: tuple[float, int | None] = least, None
        for u in np.argsort(-bounds, kind="stable"):
            if bounds[u] <= best[0]:
                break
            bits = int(unions[u])
            groups = self.sets.groups(bits)
            own = np.array([groups])
            gain = float(gains_of(unions[u : u + 1], own, members, rows, fed, tuples)[0])
            gain -= self.memory_cost(bits, groups)
            if gain > best[0]:
                best = gain, bits
        return best

    def worst_node(self, members: Sets, rows: Floats, fed: Floats, least: float) -> int | None:
        """A node whose removal lowers the cost."""
        found = None
        for at, bits in enumerate(self.members):
            if bits in self.queries:
                continue
            others = np.arange(len(members)) != at
            after = feeding(members[others], rows[others], self.statistics.tuples)
            gain = float(fed.sum() - after.sum()) + self.memory_cost(bits, float(rows[at]))
            if gain > least:
                found, least = bits, gain
        return found

    def tree(self) -> Tree:
        """The tree in which every node is below the smallest node that contains it. An intermediate
        node has the slots that any node below it needs.
        """
        order = sorted(self.members, key=lambda bits: (-bits.bit_count(), bits))
        nodes: list[Node] = []
        for bits in order:
            wider = [at for at in range(len(nodes)) if bits & ~order[at] == 0]
            above = [(self.sets.groups(order[at]), at) for at in wider]
            fed, parent = min(above, default=(self.statistics.tuples, -1))
            query = self.queries.get(bits)
            home = parent if fed < self.statistics.tuples else None
            slots = 1 if query is None else query.slots
            nodes.append(Node(self.sets.attributes(bits), home, query is not None, 0.0, slots))
        for node in reversed(nodes):
            if node.parent is not None and not nodes[node.parent].is_query:
                up = nodes[node.parent]
                nodes[node.parent] = replace(up, slots=max(up.slots, node.slots))
        return Tree(tuple(nodes))


def union_trees(
    flat: Tree, statistics: Statistics, accounting: Accounting, ladder: list[float]
) -> list[Tree]:
    """The tree of each price, each found from the tree before."""
    search = UnionSearch(flat, statistics, accounting)
    trees: list[Tree] = []
    for price in ladder:
        search.improve(price)
        trees.append(search.tree())
    return trees
