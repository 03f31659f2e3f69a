"""Ownership by key: the groups that are complete in the task that reads one partition.

In: the interfaces of a plan, some of them partitions of a source, and the scans of the plan. Out: a
`KeyOwnership`: the partitioning set of each partitioned source, and the streams that every
partition computes by itself. It stands beside the ownership by epoch (terascope.physical.splits):
a task that reads partition i owns every group whose key determines partition i, in all epochs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from terascope.connectors.base import Column, interface_of
from terascope.connectors.registry import Interface, Partition
from terascope.diagnostic import SourceError
from terascope.partitioning.compatible import kept_streams
from terascope.partitioning.placing import hashed_types
from terascope.partitioning.sets import PartitionSet, parse_set
from terascope.plan.expr import Col, Expr, walk
from terascope.plan.rel import (
    Filter,
    Lookup,
    Merge,
    Project,
    Read,
    Rel,
    Scan,
    Window,
    inputs,
)
from terascope.plan.rel import walk as operators_of

EACH_BY_ITSELF: Final = (Scan, Read, Filter, Project, Window, Merge, Lookup)
"""Operators that put no two tuples together."""


@dataclass(frozen=True)
class KeyOwnership:
    """The partitioned sources of a job, and the streams that their partitions compute."""

    sets: Mapping[str, PartitionSet]
    """The partitioning set, by the name of the source; a source whose partitions are by no values
    has none.
    """
    counts: Mapping[str, int]
    """The number of partitions, by the name of the source."""
    kept: frozenset[str]
    """The streams, low-level ones included, whose rows are complete in each partition."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why every other stream is central."""
    hosts: tuple[tuple[str, ...], ...] = ()
    """The hosts that hold each partition."""
    combined: bool = False
    """Whether partial groups of the partitions of a host are merged before they leave it (paper 2,
    5.2.2)."""
    values: Mapping[str, tuple[Expr, ...]] = field(default_factory=dict)
    """The values of the partitioning set over the columns of a stream that is kept, where its
    columns determine them. Hashed alike in all streams that a task puts together."""
    sending: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By read: the aggregations for which partitions send tuples, not partial groups. One task gets
    all tuples of an epoch."""
    linked: tuple[frozenset[str], ...] = ()
    """Sources of which partitions put tuples together: equal values are in partitions of the same
    number in all of them."""

    @property
    def count(self) -> int:
        """The number of tasks that read partitions, each in a task of its own."""
        return max(self.counts.values())

    def homes(self, most: int, by_host: bool = True) -> dict[str, tuple[int, ...]]:
        """The task that reads each partition, by source. Where there are more than so many
        partitions, a task reads several, and owns the groups of all of them: of one host, as far as
        that goes. Partitions of the same number of sources with equally many are in one task.
        """
        hosts = self.hosts if by_host else ()
        return {source: homes_of(count, most, hosts) for source, count in self.counts.items()}

    def task_hosts(self, homes: Mapping[str, Sequence[int]]) -> list[tuple[str, ...]]:
        """The hosts that hold the partitions of each task."""
        found: dict[int, dict[str, None]] = {}
        for some in homes.values():
            for number, home in enumerate(some):
                found.setdefault(home, {}).update(dict.fromkeys(self.hosts[number]))
        return [tuple(found.get(home, ())) for home in range(1 + max(found))]

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
        return all(one.is_part for one in interfaces)


def homes_of(count: int, most: int, hosts: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """The task of each of so many partitions."""
    if count <= most:
        return tuple(range(count))
    ranked = sorted(range(count), key=lambda number: (hosts[number] if hosts else (), number))
    home = {number: place * most // count for place, number in enumerate(ranked)}
    return tuple(home[number] for number in range(count))


def partition_sets(
    interfaces: Mapping[str, Interface], scans: Sequence[Scan]
) -> dict[str, PartitionSet]:
    """The partitioning set of each source that has one, by the name of the source. A source whose
    tuples were dealt out in turn has none: its partitions determine no group. The set of a
    DataFrame is one of Spark's own partitions, which no task of Terascope reads.

    Raises:
        QueryError: a set does not parse, or names a column that the source does not have.
    """
    found: dict[str, PartitionSet] = {}
    for one in interfaces.values():
        source = interface_of(one.name)
        if one.partitioned_by and source not in found:
            every = [i for i in interfaces.values() if interface_of(i.name) == source]
            found[source] = parse_set(one.partitioned_by, columns_of_source(every, scans))
    return found


def columns_of_source(parts: Sequence[Interface], scans: Iterable[Scan]) -> list[Column]:
    """The columns of the partitions of a source, with the types that protocols declare. A partition
    may be empty, or its files may come later.
    """
    columns: dict[str, Column] = {}
    for one in parts:
        with suppress(SourceError):
            columns = {column.name: column for column in one.columns}
            break
    names = {one.name for one in parts}
    for scan in scans:
        if names & set(scan.interfaces):
            for f in (*scan.columns, *scan.checked):
                if not f.name.startswith("#"):
                    columns[f.read_from] = Column(f.read_from, f.type, f.clock)
    return list(columns.values())


def columns_read(partitions: PartitionSet) -> list[Column]:
    """The columns of the source that a partitioning set reads."""
    found = (part for expr in partitions.expressions for part in walk(expr))
    typed = {part.name: part.type for part in found if isinstance(part, Col)}
    return [Column(name, type) for name, type in typed.items()]


Family: TypeAlias = tuple[int, tuple[int, ...], tuple[str, ...]]
"""The number of partitions, the ranges of hashes, and the types of the values that are hashed:
sources that have all of them in common may have equal values in partitions of the same number."""


def key_ownership(
    interfaces: Mapping[str, Interface], sets: Mapping[str, PartitionSet], trees: Mapping[str, Rel]
) -> KeyOwnership | None:
    """The ownership by key of a plan; None: no source has several partitions."""
    families: dict[Family, dict[str, PartitionSet]] = {}
    hosts: dict[int, dict[str, None]] = {}
    counts: dict[str, int] = {}
    for one in interfaces.values():
        if one.partition is None or not one.is_part:
            continue
        source = interface_of(one.name)
        counts[source] = one.partition.count
        if source in sets:
            by, part = sets[source], one.partition
            family = part.count, usable_bounds(part, by), hashed_types(by)
            families.setdefault(family, {})[source] = by
        if one.partition.host:
            hosts.setdefault(one.partition.number, {})[one.partition.host] = None
    if not counts:
        return None
    kept: set[str] = set()
    reasons: dict[str, str] = {}
    values: dict[str, tuple[Expr, ...]] = {}
    linked: list[frozenset[str]] = []
    for (_, _, types), members in families.items():  # only sources split alike can meet in a task
        found = kept_streams(trees, members)
        kept |= found.streams
        reasons |= found.reasons
        values |= {
            name: some
            for name, some in found.values.items()
            if hashed_types(PartitionSet(some)) == types
        }
        linked += linked_sources(trees, found.streams)
    central = {name: why for name, why in reasons.items() if name not in kept}
    most = max(counts.values())
    return KeyOwnership(
        {name: sets[name] for name in counts if name in sets}, counts, frozenset(kept), central,
        tuple(tuple(hosts.get(number, ())) for number in range(most)),
        values=values, linked=tuple(linked),
    )  # fmt: skip


def usable_bounds(partition: Partition, by: PartitionSet) -> tuple[int, ...]:
    """The ranges of hashes of a partition; none where they are not known, or where the queries give
    a column another type than the one whose values were hashed: a text and the address it spells
    have different hashes.
    """
    same = not partition.types or partition.types == hashed_types(by)
    return partition.bounds if same else ()


def linked_sources(trees: Mapping[str, Rel], kept: Collection[str]) -> list[frozenset[str]]:
    """The sources whose tuples meet in the groups and joins of the streams that are kept."""
    found: dict[str, frozenset[str]] = {}

    def below(rel: Rel) -> frozenset[str]:
        if isinstance(rel, Scan):
            return frozenset(map(interface_of, rel.interfaces))
        if isinstance(rel, Read):
            return of_stream(rel.stream)
        return frozenset().union(*map(below, inputs(rel)))

    def of_stream(name: str) -> frozenset[str]:
        if name not in found:
            found[name] = below(trees[name]) if name in trees else frozenset()
        return found[name]

    groups: list[frozenset[str]] = []
    for name in kept:
        for node in operators_of(trees[name]):
            meeting = below(node)
            if len(meeting) < 2 or isinstance(node, EACH_BY_ITSELF):
                continue
            touched = [one for one in groups if one & meeting]
            groups = [one for one in groups if not one & meeting]
            groups.append(meeting.union(*touched))
    return groups
