"""Which intermediate aggregates to keep: Algorithm 1 (paper 4, section V), at a price of memory.

Problem: of the exponentially many trees that answer a set of queries, find one with few hash
operations. In: the queries as a flat tree, curves, an accounting, a falling ladder of prices. Out:
a tree for each price, each grown from the one before.

Idea: change the tree step by step, and take the best step each time: siblings go below a new node
that is their union, or below one of them that contains the others; an intermediate node is deleted;
a node moves below any other that contains it. So a query whose keys are a subset of another's may
become its child.

Cost: Algorithm 1 allocates the memory anew for each of quadratically many changes, because with a
budget the gain of a change depends on all tables. So memory gets a price, so many hash operations a
byte: a subtree, and a change within it, can then be judged by itself, and the trees that are tried
do not depend on the budget. An upper bound of the gain rules most changes out before the groups of
their union are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from terascope.machine_code import compiled
from terascope.sharing.cost import Accounting, interpolated
from terascope.sharing.curves import Curve, Curves, Floats
from terascope.sharing.model import Attributes, AttributeSets, Node, Tree

LEAST_GAIN: Final = 1e-6
"""The least gain of a step, as a share of the cost."""
STREAM: Final = -1
GRID: Final = 48


@compiled
def best_size(
    log_inputs: Floats,
    log_out: Floats,
    buckets: Floats,
    bucket_price: float,
    below: Floats,
    grid: Floats,
    rows_in: float,
) -> tuple[float, float, float]:
    """The cheapest size of a table: its cost, the buckets, the rows that leave it. `below` is the
    cost of the leaving rows, on the grid.
    """
    best, best_buckets, best_out = interpolated(below, grid, rows_in), 0.0, rows_in
    at = (np.log(rows_in) - log_inputs[0]) / (log_inputs[1] - log_inputs[0])
    if at <= 0:  # every row is a group of its own
        return best, best_buckets, best_out
    low = min(int(at), len(log_inputs) - 2)
    part = min(at - low, 1.0)
    log_step = np.log(grid[1])
    for k in range(1, len(buckets)):
        log_rows = (1 - part) * log_out[low, k] + part * log_out[low + 1, k]
        out = np.exp(log_rows)
        cell = min(max(int(log_rows / log_step), 0), len(grid) - 2)
        share = (out - grid[cell]) / (grid[cell + 1] - grid[cell])
        value = below[cell] + share * (below[cell + 1] - below[cell]) + bucket_price * buckets[k]
        if value < best:
            best, best_buckets, best_out = value, buckets[k], out
    return best, best_buckets, best_out


@compiled
def priced_values(
    log_inputs: Floats,
    log_out: Floats,
    buckets: Floats,
    bucket_price: float,
    below: Floats,
    grid: Floats,
) -> Floats:
    """W(n): the least of (cost below the table + price of its buckets) when n rows enter it, on
    the grid of n.
    """
    values = np.empty(len(grid))
    for at in range(len(grid)):
        values[at] = best_size(log_inputs, log_out, buckets, bucket_price, below, grid, grid[at])[0]
    return values


@dataclass
class DraftNode:
    """A node of a draft, with its attributes as bits."""

    bits: int
    parent: int
    slots: int
    is_query: bool


@dataclass(frozen=True)
class Step:
    """The nodes `gathered` move below the node of these bits, a child of `parent`.

    If there is no node with these bits, one is added. With `deleted`, that node is removed instead.
    """

    gain: float = field(compare=False)
    parent: int
    bits: int = 0
    gathered: tuple[int, ...] = ()
    deleted: int | None = None
    under: int | None = None


class TreeDraft:
    """A tree while it is changed, with the cost of its parts at the present price of memory."""

    def __init__(self, first: Tree, curves: Curves, accounting: Accounting) -> None:
        self.curves = curves
        self.accounting = accounting
        self.sets = AttributeSets(first, curves.statistics)
        self.tuples = curves.statistics.tuples
        self.grid = np.geomspace(1.0, max(self.tuples, 2.0), GRID)
        self.price = np.inf
        self.members: dict[int, DraftNode] = {
            at: DraftNode(
                self.sets.bits(node.attributes),
                STREAM if node.parent is None else node.parent,
                node.slots,
                node.is_query,
            )
            for at, node in enumerate(first.nodes)
        }
        self._next = len(first.nodes)
        self.floors: dict[int, float] = {}
        self.judged: dict[tuple[int, int], tuple[tuple[float, int, float], float]] = {}
        self._asked = np.zeros(0, np.int64)
        self._counted = np.zeros(0)
        self.values: dict[int, Floats] = {}
        self.out: dict[int, float] = {}
        self.buckets: dict[int, float] = {}
        self.total = np.inf

    def curve(self, bits: int) -> Curve:
        return self.curves.of(self.sets.attributes(bits))

    def groups(self, bits: int) -> float:
        found = self.floors[bits] = self.sets.groups(bits)
        return found

    def floor(self, bits: int) -> float:
        """A lower bound of the groups of a set of attributes, from the subsets counted so far."""
        known = self.sets.known_groups
        if len(known) > len(self._asked) * 1.05:
            self._asked = np.array(list(known), np.int64)
            self._counted = np.array(list(known.values()))
        inside = self._counted[self._asked & ~np.int64(bits) == 0]
        found = float(inside.max(initial=self.floors.get(bits, 0.0)))
        self.floors[bits] = found
        return found

    def children(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {STREAM: []}
        for at, member in self.members.items():
            found.setdefault(member.parent, []).append(at)
        return found

    def offer(self, bits: int, slots: int) -> tuple[Floats, Floats, Floats, float]:
        """The curve of a table, and the price of its buckets."""
        made = self.curve(bits)
        price = float(self.price) * self.accounting.entry_bytes(bits.bit_count(), slots)
        return made.log_inputs, made.log_out, made.buckets, price

    # ------------------------------------------------------------------ judging

    def judge(self) -> None:
        """Compute values bottom-up, then sizes and outputs top-down."""
        below_of = self.children()
        order = list(self._top_down(below_of))
        below: dict[int, Floats] = {}
        for at in reversed(order):
            children = below_of.get(at, [])
            per_row = len(children) + self.accounting.per_row(self.members[at].is_query)
            below[at] = sum((self.values[child] for child in children), per_row * self.grid)
            self.values[at] = self._value(self.members[at], below[at])
        self.buckets, self.out = {}, {STREAM: self.tuples}
        for at in order:
            rows_in = self.out[self.members[at].parent]
            self.buckets[at], self.out[at] = self._size(self.members[at], below[at], rows_in)
        self.total = sum(self.fed(at, self.tuples) for at in below_of[STREAM])

    def _top_down(self, below_of: dict[int, list[int]]) -> Iterator[int]:
        pending = list(below_of[STREAM])
        while pending:
            at = pending.pop()
            yield at
            pending.extend(below_of.get(at, ()))

    def _value(self, member: DraftNode, below: Floats) -> Floats:
        """W(n) of a node, on the grid. `below` is the cost of the rows that leave it."""
        made = self.curve(member.bits)
        if self.accounting.is_free(member.is_query):
            return np.interp(np.minimum(self.grid, made.groups), self.grid, below)
        return priced_values(*self.offer(member.bits, member.slots), below, self.grid)

    def _size(self, member: DraftNode, below: Floats, rows_in: float) -> tuple[float, float]:
        """The buckets of a node and the rows that leave it."""
        if self.accounting.is_free(member.is_query):
            made = self.curve(member.bits)
            return made.most, min(rows_in, made.groups)
        offer = self.offer(member.bits, member.slots)
        _, buckets, out = best_size(*offer, below, self.grid, rows_in)
        return buckets, out

    def fed(self, at: int, rows: float) -> float:
        """The cost of feeding this many rows to a node."""
        return rows + interpolated(self.values[at], self.grid, rows)

    # ------------------------------------------------------------------ changing

    def apply(self, step: Step) -> None:
        if step.deleted is not None:
            for member in self.members.values():
                if member.parent == step.deleted:
                    member.parent = step.parent
            del self.members[step.deleted]
            return
        home = step.under
        if home is None:
            home = self._next
            self._next += 1
            self.members[home] = DraftNode(step.bits, step.parent, 1, False)
        for at in step.gathered:
            self.members[at].parent = home
        self._fit_slots()

    def _fit_slots(self) -> None:
        """Give an intermediate node the slots that any node below it needs."""
        below_of = self.children()
        for at in reversed(list(self._top_down(below_of))):
            below = [self.members[child].slots for child in below_of.get(at, ())]
            if not self.members[at].is_query and below:
                self.members[at].slots = max(below)

    def tree(self) -> Tree:
        """The tree as it is, with the table sizes of the present price."""
        places: dict[int, int | None] = {STREAM: None}
        nodes: list[Node] = []
        for at in self._top_down(self.children()):
            member = self.members[at]
            places[at] = len(nodes)
            keys = self.sets.attributes(member.bits)
            size = self.buckets.get(at, 0.0)
            nodes.append(Node(keys, places[member.parent], member.is_query, size, member.slots))
        return Tree(tuple(nodes))


@compiled
def gatherings(
    siblings: npt.NDArray[np.int64],
    unions: npt.NDArray[np.int64],
    fed: Floats,
    groups: Floats,
) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """For each union: the siblings within it, their feeding cost, the most groups of one."""
    count = np.zeros(len(unions), np.int64)
    total = np.zeros(len(unions))
    most = np.zeros(len(unions))
    for u in range(len(unions)):
        outside = ~unions[u]
        for s in range(len(siblings)):
            if siblings[s] & outside == 0:
                count[u] += 1
                total[u] += fed[s]
                most[u] = max(most[u], groups[s])
    return count, total, most


def unions_of(siblings: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """All unions of two sets, each once."""
    first, second = np.triu_indices(len(siblings), 1)
    return np.unique(siblings[first] | siblings[second])


def merges(draft: TreeDraft, least: float) -> Step | None:
    """The merge of siblings that gains most, if it gains more than `least`.

    Unions are tried in the order of an upper bound of their gain: `rows` feed one node instead of
    many, and each of these many is fed at least as many rows as the union has groups.
    """
    best: Step | None = None
    for parent, siblings in draft.children().items():
        if len(siblings) < 2:
            continue
        family = Siblings(draft, parent, siblings)
        bound = family.bound()
        for u in np.argsort(-bound, kind="stable"):
            limit = least if best is None else best.gain
            if bound[u] <= limit:
                break
            step = family.merged(int(u), limit)
            best = best if step is None else step
    return best


class Siblings:
    """The children of a node, and their unions."""

    def __init__(self, draft: TreeDraft, parent: int, siblings: list[int]) -> None:
        self.draft, self.parent, self.siblings = draft, parent, siblings
        self.rows = draft.out[parent]
        self.bits = np.array([draft.members[at].bits for at in siblings], np.int64)
        self.values = np.array([draft.values[at] for at in siblings])
        fed = np.array([draft.fed(at, self.rows) for at in siblings])
        groups = np.array([draft.groups(int(bits)) for bits in self.bits])
        unions = unions_of(self.bits)
        if parent != STREAM:
            unions = unions[unions != draft.members[parent].bits]
        self.unions = unions
        self.count, self.fed, self.most = gatherings(self.bits, unions, fed, groups)

    def bound(self) -> Floats:
        """An upper bound of the gain of each union; a union that is a child is fed already."""
        known = self.draft.floors
        floors = np.array([known.get(int(union), 0.0) for union in self.unions])
        least = np.minimum(np.maximum(floors, self.most), self.rows)
        own = np.isin(self.unions, self.bits)
        return np.asarray(self.fed - self.rows - (self.count - own) * least)

    def merged(self, u: int, least: float) -> Step | None:
        """Before: parent (a b c ...)      After: parent (union (a b) c ...)"""
        union = int(self.unions[u])
        seen = (self.rows, int(self.count[u]), float(self.fed[u]))
        before = self.draft.judged.get((self.parent, union))
        if before is not None and before[0] == seen and before[1] <= least:
            return None
        gain, step = self._judged(u, union, least)
        self.draft.judged[(self.parent, union)] = (seen, gain)
        return step

    def _judged(self, u: int, union: int, least: float) -> tuple[float, Step | None]:
        """An upper bound of a merge's gain, and the merge if that is above `least`."""
        draft = self.draft
        inside = np.flatnonzero(self.bits & ~np.int64(union) == 0)
        moved = tuple(self.siblings[s] for s in inside if self.bits[s] != union)
        there = [self.siblings[s] for s in inside if self.bits[s] == union]
        if there:
            out = draft.out[there[0]]
            gain = sum(draft.fed(at, self.rows) - draft.fed(at, out) for at in moved)
            found = Step(gain, self.parent, union, moved, under=there[0])
            return gain, found if gain > least else None
        most = float(self.fed[u]) - self.rows
        gain = most - len(moved) * min(draft.floor(union), self.rows)
        if gain <= least:
            return gain, None
        groups = min(draft.groups(union), self.rows)
        below = len(moved) * draft.grid + self.values[inside].sum(axis=0)
        gain = most - interpolated(below, draft.grid, groups)
        if gain <= least:
            return gain, None
        offer = draft.offer(union, max(draft.members[at].slots for at in moved))
        gain = most - best_size(*offer, below, draft.grid, self.rows)[0]
        return gain, Step(gain, self.parent, union, moved) if gain > least else None


def deletions(draft: TreeDraft, least: float) -> Step | None:
    """Before: parent (node (a b))      After: parent (a b)"""
    best: Step | None = None
    below_of = draft.children()
    for at, member in draft.members.items():
        if member.is_query:
            continue
        rows = draft.out[member.parent]
        after = sum(draft.fed(child, rows) for child in below_of.get(at, ()))
        gain = draft.fed(at, rows) - after
        if gain > (least if best is None else best.gain):
            best = Step(gain, member.parent, deleted=at)
    return best


def moves(draft: TreeDraft, least: float) -> list[Step]:
    """Before: p (a) q ()      After: p () q (a), where q contains a; the best for each a."""
    homes = [
        (draft.out[at], at, member.bits)
        for at, member in draft.members.items()
        if draft.out[at] < draft.tuples
    ]
    homes.sort()
    outs = np.array([out for out, _, _ in homes])
    sets = np.array([bits for _, _, bits in homes], np.int64)
    steps: list[Step] = []
    for at, member in draft.members.items():
        rows = draft.out[member.parent]
        fit = (np.int64(member.bits) & ~sets == 0) & (sets != member.bits) & (outs < rows)
        if not fit.any():
            continue
        out, home, bits = homes[int(fit.argmax())]
        gain = draft.fed(at, rows) - draft.fed(at, out)
        if gain > least and home != member.parent:
            steps.append(Step(gain, member.parent, bits, (at,), under=home))
    return sorted(steps, key=lambda step: -step.gain)


def improve(draft: TreeDraft, price: float) -> None:
    """Apply steps until none helps. A step that does not help is undone for good."""
    draft.price = price
    draft.judged.clear()
    draft.judge()
    refused: set[Step] = set()
    while True:
        least = LEAST_GAIN * draft.total
        moved = [step for step in moves(draft, least) if step not in refused]
        if moved and (_taken(draft, moved, refused) or _taken(draft, moved[:1], refused)):
            continue
        found = (merges(draft, least), deletions(draft, least))
        steps = [step for step in found if step is not None and step not in refused]
        steps.sort(key=lambda step: -step.gain)
        if not any(_taken(draft, [step], refused) for step in steps):
            return


def _taken(draft: TreeDraft, steps: list[Step], refused: set[Step]) -> bool:
    before = draft.total
    members = {at: replace(member) for at, member in draft.members.items()}
    for step in steps:
        draft.apply(step)
    draft.judge()
    if draft.total < before * (1 - LEAST_GAIN / 2):
        return True
    refused.update(steps[:1])
    draft.members = members
    draft.judge()
    return False


PRICE_FACTOR: Final = 4.0
FIRST_BYTES: Final = 2.0**14
PRICES: Final = 11
"""The number of prices: from all hash operations for 16 KiB down to all for 16 GiB."""


def prices(flat: Tree, tuples: float) -> list[float]:
    """A falling ladder of prices, from almost no memory down to free memory."""
    whole = len(flat.nodes) * tuples
    return [*(whole / (FIRST_BYTES * PRICE_FACTOR**step) for step in range(PRICES)), 0.0]


def grown_trees(
    flat: Tree, curves: Curves, accounting: Accounting, ladder: list[float]
) -> list[Tree]:
    """The tree of each price, each grown from the tree before."""
    draft = TreeDraft(flat, curves, accounting)
    trees: list[Tree] = []
    for price in ladder:
        improve(draft, price)
        trees.append(draft.tree())
    return trees


def form_of(tree: Tree) -> frozenset[tuple[Attributes, Attributes]]:
    """The parent of each node."""
    above = [
        frozenset() if node.parent is None else tree.nodes[node.parent].attributes
        for node in tree.nodes
    ]
    return frozenset((node.attributes, top) for node, top in zip(tree.nodes, above, strict=True))
