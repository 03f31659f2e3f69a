"""The stage `partitions` of explain: what runs in every partition, on every host, at the centre.

In: a compiled set whose sources are partitioned. Out: a picture of the distributed plan
(terascope.partitioning.distribute): a box for each group of places that do the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from terascope.connectors.base import interface_of
from terascope.connectors.registry import Interface
from terascope.explain.model import Box, Picture, PictureNode
from terascope.partitioning.distribute import DistributedPlan, distribute
from terascope.partitioning.sets import PartitionSet
from terascope.physical.ownership import partition_sets
from terascope.pipeline import Compiled
from terascope.plan.rel import Scan, walk
from terascope.units import plural

UNPARTITIONED = (
    "no source is partitioned: write one with 'terascope split', or declare its partitioning set"
    " with --partitioned-by"
)

SENT = (
    "where the groups of sub-aggregates would be more work than the tuples, partitions send tuples"
    " instead: --stage job says so"
)


def picture_of_partitions(compiled: Compiled) -> Picture:
    """The distributed plan of a set.

    Raises:
        QueryError: a declared set does not parse, or names a column that the source does not have.
    """
    made = distributed_plan(compiled)
    if made is None:
        return Picture("partitions", compiled.source.title, (), notes=(UNPARTITIONED,))
    reasons = [f"{name} is not in the partitions: {why}" for name, why in made.reasons.items()]
    if any(copy.work == "sub-aggregate" for copy in made.copies):
        reasons.append(SENT)
    title = compiled.source.title
    return Picture("partitions", title, tuple(boxes_of(made)), notes=tuple(reasons))


def distributed_plan(compiled: Compiled) -> DistributedPlan | None:
    """The distributed plan of a set; None: no source is partitioned."""
    plan, interfaces = compiled.optimized, compiled.bindings.interfaces
    scans = [one for stream in plan for one in walk(stream.rel) if isinstance(one, Scan)]
    read = {name for scan in scans for name in scan.interfaces}
    parts = {n: one for n, one in interfaces.items() if n in read and one.partition is not None}
    if not parts:
        return None
    sets = partition_sets(parts, scans)
    placement = {source: sets.get(source, PartitionSet(())) for source in hosts_of(parts)}
    streams = {stream.name: stream.rel for stream in plan}
    outputs = [stream.name for stream in plan.visible]
    return distribute(streams, hosts_of(parts), placement, outputs)


def hosts_of(parts: Mapping[str, Interface]) -> dict[str, dict[int, str]]:
    """By source: the host of each partition."""
    found: dict[str, dict[int, str]] = {}
    for one in parts.values():
        assert one.partition is not None
        found.setdefault(interface_of(one.name), {})[one.partition.number] = one.partition.host
    return found


def boxes_of(made: DistributedPlan) -> Iterator[Box]:
    """A box for each group of places that do the same, with the work of one of them."""
    box_at = {place: title for title, places, _ in made.groups() for place in places}
    by_name = made.by_name
    for title, places, copies in made.groups():
        work = tuple(
            PictureNode(copy.work, made.shown(copy), reads=tuple(dict.fromkeys(
                box_at[by_name[name].place]
                for name in copy.inputs if by_name[name].place not in places
            )))
            for copy in copies
        )  # fmt: skip
        each = plural(len(places), "copy", "copies")
        yield Box(title, title, "stream", root=PictureNode("place", each, children=work))
