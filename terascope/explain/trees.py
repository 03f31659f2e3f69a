"""What was decided about intermediate aggregates, in words (paper 4).

In: the decisions of a job. Out: for each the tree, what it costs and what the flat plan would, in
hash operations and in time or memory, and the choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from terascope.physical.job import TreeDecision
from terascope.sharing.cost import EXCHANGE
from terascope.sharing.model import Tree

MOST_SHOWN = 4
"""Queries that are named."""


def tree_notes(decisions: Sequence[TreeDecision]) -> Iterator[str]:
    """One text for each decision."""
    for one in decisions:
        yield "\n".join(tree_lines(one))


def tree_lines(one: TreeDecision) -> Iterator[str]:
    more = f" and {len(one.queries) - MOST_SHOWN} more" if len(one.queries) > MOST_SHOWN else ""
    yield f"tree of {', '.join(one.queries[:MOST_SHOWN])}{more}, read from {one.read}"
    yield f"  hash operations an epoch: flat {one.flat_operations:,.0f}, tree {one.operations:,.0f}"
    if one.unit == "ns":
        flat, cost = one.flat_cost / 1e6, one.cost / 1e6
        yield f"  time an epoch, of one core: flat {flat:,.1f} ms, tree {cost:,.1f} ms"
    exchanged = f"{one.partials:,.0f} groups that leave for the exchange at {EXCHANGE:.0f} each"
    flat, tree = one.flat_exchanged, one.exchanged
    yield f"  with {exchanged}: flat {flat:,.0f}, tree {tree:,.0f}"
    inner, queries = (f"{n / 1e6:,.1f} MB" for n in (one.memory_bytes, one.query_bytes))
    yield f"  memory: {inner} of inner tables, {queries} of queries; planned in {one.seconds:.2f} s"
    if not one.used:
        yield f"  chosen: flat, the tree would save {one.gain:.0%}"
        return
    yield f"  chosen: the tree, which saves {one.gain:.0%}"
    yield from (f"  {line}" for line in shown(one.tree))


def shown(tree: Tree) -> Iterator[str]:
    """Inner nodes and what is made of them; the queries that take tuples are only counted."""

    def lines(place: int, depth: int) -> Iterator[str]:
        node = tree.nodes[place]
        keys = ", ".join(sorted(node.attributes))
        kind = "query" if node.is_query else f"inner, {node.buckets:,.0f} groups"
        yield f"{'  ' * depth}{keys} ({kind})"
        for child in tree.children(place):
            yield from lines(child, depth + 1)

    alone = 0
    for place in tree.children(None):
        if tree.children(place):
            yield from lines(place, 0)
        else:
            alone += 1
    if alone:
        yield f"{alone} of tuples themselves"
