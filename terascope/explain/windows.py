"""What was decided about the windows of a set, in words (paper 0, section 4).

In: the slicing of a set. Out: for each family of windows the composed slices, their rate, what
every alternative costs, and the choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from terascope.functions.slices import SliceVector
from terascope.physical.split.slicing import SliceFamily, Slicing, ticks
from terascope.plan.show import show_expr
from terascope.sharing.slices import MOST_SLICES, Periodic, composed, most_edges
from terascope.sharing.windows import Cluster, WindowClusters, edges_per_time, pays_from

MOST_SHOWN = 24
"""Slices of a period that are written out."""


def slicing_notes(slicing: Slicing) -> Iterator[str]:
    """One text for each family."""
    for family, shared in (slicing.decided or {}).items():
        if any(cluster.assembles for cluster in shared.clusters):
            yield "\n".join(family_lines(family, shared, slicing))


def family_lines(family: SliceFamily, shared: WindowClusters, slicing: Slicing) -> Iterator[str]:
    scan = slicing.scans[family]
    second = ticks(scan, family.time)
    keys = ", ".join(sorted(show_expr(k) for k in family.keys)) or "no keys"
    traffic = shared.traffic
    told = "measured" if traffic.known else "assumed"
    rate = f"{traffic.rate * second:,.0f} tuples a second ({told})"
    yield f"windows on {show_expr(family.time)} of {scan.protocol} with {keys}: {rate}"
    for cluster in shared.clusters:
        yield from cluster_lines(family, cluster, shared, slicing, second)
    if len(shared.windows) == 1:
        return
    costs = dict(shared.alternatives)
    chosen = shared.cost() * second
    shown = [f"{name} {microseconds(cost, second)}" for name, cost in costs.items()]
    yield f"  costs a second: {', '.join(shown)}; chosen {microseconds(chosen / second, second)}"
    if len(shared.clusters) > 1:
        yield f"  in {len(shared.clusters)} groups: {why_apart(shared)}"


def cluster_lines(
    family: SliceFamily, cluster: Cluster, shared: WindowClusters, slicing: Slicing, second: int
) -> Iterator[str]:
    asked = ", ".join(
        f"{query} {window.range}/{window.slide}"
        for window in cluster.windows
        for query in slicing.queries[family, window]
    )
    beta = edges_per_time(cluster) * second
    yield f"  {asked}: {slices_in_words(cluster.vector)}, {beta:.4g} slices a second"
    pays = pays_from(cluster, shared.traffic, shared.costs)
    if pays is not None:
        yield f"    sharing pays from {pays * second:,.0f} tuples a second"


def slices_in_words(vector: SliceVector) -> str:
    lengths = str(vector).split()
    shown = " ".join(lengths[:MOST_SHOWN])
    more = f" ... ({len(vector.lengths)} in all)" if len(lengths) > MOST_SHOWN else ""
    gaps = ", those in brackets dropped" if vector.gaps else ""
    return f"slices {shown}{more} of a period of {vector.period}{gaps}"


def why_apart(shared: WindowClusters) -> str:
    windows: tuple[Periodic, ...] = shared.windows
    if composed(windows) is None:
        period, edges = most_edges(windows)
        most = f"more than the {MOST_SLICES:,} that are worth having"
        return f"together they would have up to {edges:,} slices in a period of {period:,}, {most}"
    return "together they would cost more"


def microseconds(cost: float | None, second: int) -> str:
    """Of nanoseconds for each unit of time."""
    return "impossible" if cost is None else f"{cost * second / 1000:,.1f} us"
