"""The decisions about sharing, in words: slices (paper 0, section 4) and trees (paper 4).

In: the slicing of a set, the decisions about its aggregate trees, and what a sample could gain.
Out: for each family of windows and each tree what it costs, what the alternatives cost, and the
choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from terascope.functions.slices import SliceVector
from terascope.physical.job import TreeDecision
from terascope.physical.split.slicing import SliceFamily, Slicing, ticks
from terascope.physical.statistics.prospects import Prospect
from terascope.plan.show import show_expr
from terascope.sharing.cost import EXCHANGE
from terascope.sharing.model import Tree
from terascope.sharing.slices import MOST_SLICES, composed, most_edges, rate
from terascope.sharing.windows import Cluster, WindowClusters, pays_from

MOST_LENGTHS = 24
"""Slices of a period that are written out."""


def slicing_notes(slicing: Slicing) -> Iterator[str]:
    """One text for each family."""
    for family, made in slicing.compositions.items():
        if any(cluster.assembles for cluster in made.clusters):
            yield "\n".join(family_lines(family, made, slicing))


def family_lines(family: SliceFamily, shared: WindowClusters, slicing: Slicing) -> Iterator[str]:
    scan = slicing.scans[family]
    second = ticks(scan, family.time)
    keys = ", ".join(sorted(show_expr(k) for k in family.keys)) or "no keys"
    traffic = shared.traffic
    told = "measured" if traffic.known else "assumed"
    speed = f"{traffic.rate * second:,.0f} tuples a second ({told})"
    yield f"windows on {show_expr(family.time)} of {scan.protocol} with {keys}: {speed}"
    for cluster in shared.clusters:
        yield from cluster_lines(family, cluster, shared, slicing, second)
    if len(shared.windows) == 1:
        return
    costs = [f"{name} {microseconds(c, second)}" for name, c in shared.alternatives.items()]
    yield f"  costs a second: {', '.join(costs)}; chosen {microseconds(shared.cost(), second)}"
    if len(shared.clusters) > 1:
        yield f"  in {len(shared.clusters)} groups: {why_apart(shared)}"


def cluster_lines(
    family: SliceFamily, cluster: Cluster, shared: WindowClusters, slicing: Slicing, second: int
) -> Iterator[str]:
    asked = ", ".join(
        f"{query} {window.range}/{window.slide}"
        for window in cluster.windows
        for query in slicing.asked[family][window]
    )
    beta = float(rate(cluster.vector)) * second
    yield f"  {asked}: {slices_in_words(cluster.vector)}, {beta:.4g} slices a second"
    pays = pays_from(cluster, shared.traffic)
    if pays is not None:
        yield f"    sharing pays from {pays * second:,.0f} tuples a second"


def slices_in_words(vector: SliceVector) -> str:
    lengths = str(vector).split()
    shown = " ".join(lengths[:MOST_LENGTHS])
    more = f" ... ({len(vector.lengths)} in all)" if len(lengths) > MOST_LENGTHS else ""
    gaps = ", those in brackets dropped" if vector.gaps else ""
    return f"slices {shown}{more} of a period of {vector.period}{gaps}"


def why_apart(shared: WindowClusters) -> str:
    if composed(shared.windows) is None:
        period, edges = most_edges(shared.windows)
        most = f"more than the {MOST_SLICES:,} that are worth having"
        return f"together they would have up to {edges:,} slices in a period of {period:,}, {most}"
    return "together they would cost more"


def microseconds(cost: float | None, second: int) -> str:
    """A cost in nanoseconds for each unit of time, as microseconds a second."""
    return "impossible" if cost is None else f"{cost * second / 1000:,.1f} us"


MOST_SHOWN = 4
"""Queries that are named."""


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
    alone = [place for place in tree.children(None) if not tree.children(place)]
    for place, depth in tree.nested():
        if place not in alone:
            node = tree.nodes[place]
            kind = "query" if node.is_query else f"inner, {node.buckets:,.0f} groups"
            yield f"{'  ' * depth}{', '.join(sorted(node.attributes))} ({kind})"
    if alone:
        yield f"{len(alone)} of tuples themselves"


def prospect_notes(prospect: Prospect | None) -> Iterator[str]:
    """Why no source was sampled, where a sample could have decided something."""
    if prospect is not None and prospect.aggregations > 1 and not prospect.pays:
        most = max(1, math.ceil(10 * prospect.saves_seconds)) / 10
        yield f"not sampled: sharing would hardly save more than {most:.1f} s"
