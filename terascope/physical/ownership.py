"""Ownership by key: the groups that are complete in the task that reads one partition.

In: the interfaces of a plan, some of them partitions of a source, and the scans of the plan. Out: a
`KeyOwnership`: the partitioning set of each partitioned source, and the streams that every
partition computes by itself. It stands beside the ownership by epoch (terascope.physical.splits):
a task that reads partition i owns every group whose key determines partition i, in all epochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from terascope.connectors.base import Column, interface_of
from terascope.connectors.registry import Interface
from terascope.partitioning.compatible import kept_streams
from terascope.partitioning.sets import PartitionSet, parse_set
from terascope.plan.expr import Col, walk
from terascope.plan.rel import Rel, Scan


@dataclass(frozen=True)
class KeyOwnership:
    """The partitioned sources of a job, and the streams that their partitions compute."""

    sets: Mapping[str, PartitionSet]
    """The partitioning set, by the name of the source."""
    counts: Mapping[str, int]
    """The number of partitions, by the name of the source."""
    kept: frozenset[str]
    """The streams, low-level ones included, whose rows are complete in each partition."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why every other stream is central."""
    hosts: tuple[tuple[str, ...], ...] = ()
    """The hosts that hold each partition."""

    @property
    def count(self) -> int:
        """The number of tasks that read partitions."""
        return max(self.counts.values())

    @property
    def host_count(self) -> int:
        """The number of hosts that hold partitions, as far as they are known."""
        return len({host for some in self.hosts for host in some})

    @property
    def several_on_a_host(self) -> bool:
        """Whether there are several hosts, and one of them holds several partitions."""
        return 1 < self.host_count < sum(map(bool, self.hosts))

    def has(self, interfaces: Iterable[Interface]) -> bool:
        """Whether all interfaces of a read are partitions."""
        return all(one.partition is not None for one in interfaces)


def partition_sets(
    interfaces: Mapping[str, Interface], scans: Sequence[Scan]
) -> dict[str, PartitionSet]:
    """The partitioning set of each source with several partitions, by the name of the source. A
    source whose tuples were dealt out in turn has none: its partitions determine no group.

    Raises:
        QueryError: a set does not parse, or names a column that the source does not have.
    """
    found: dict[str, PartitionSet] = {}
    for one in interfaces.values():
        source, part = interface_of(one.name), one.partition
        if part is not None and part.count > 1 and part.by and source not in found:
            found[source] = parse_set(part.by, columns_of_source(one, scans))
    return found


def columns_of_source(interface: Interface, scans: Iterable[Scan]) -> list[Column]:
    """The columns of a source, with the types that protocols declare."""
    columns = {column.name: column for column in interface.columns}
    for scan in scans:
        if interface.name in scan.interfaces:
            for f in (*scan.columns, *scan.checked):
                if not f.name.startswith("#"):
                    columns[f.read_from] = Column(f.read_from, f.type, f.clock)
    return list(columns.values())


def columns_read(partitions: PartitionSet) -> list[Column]:
    """The columns of the source that a partitioning set reads."""
    found = (part for expr in partitions.expressions for part in walk(expr))
    typed = {part.name: part.type for part in found if isinstance(part, Col)}
    return [Column(name, type) for name, type in typed.items()]


def key_ownership(
    interfaces: Mapping[str, Interface], sets: Mapping[str, PartitionSet], trees: Mapping[str, Rel]
) -> KeyOwnership | None:
    """The ownership by key of a plan; None: no source has several partitions."""
    if not sets:
        return None
    parts = [one for one in interfaces.values() if interface_of(one.name) in sets]
    families: dict[tuple[int, tuple[int, ...]], dict[str, PartitionSet]] = {}
    hosts: dict[int, dict[str, None]] = {}
    counts: dict[str, int] = {}
    for one in parts:
        assert one.partition is not None
        source = interface_of(one.name)
        counts[source] = one.partition.count
        family = families.setdefault((one.partition.count, one.partition.bounds), {})
        family[source] = sets[source]
        if one.partition.host:
            hosts.setdefault(one.partition.number, {})[one.partition.host] = None
    kept: set[str] = set()
    reasons: dict[str, str] = {}
    for family in families.values():  # only sources that are split alike can be joined in a task
        found = kept_streams(trees, family)
        kept |= found.streams
        reasons |= found.reasons
    central = {name: why for name, why in reasons.items() if name not in kept}
    most = max(counts.values())
    return KeyOwnership(
        {name: sets[name] for name in counts}, counts, frozenset(kept), central,
        tuple(tuple(hosts.get(number, ())) for number in range(most)),
    )  # fmt: skip
