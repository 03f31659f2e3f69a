"""Each source is read once for the whole set.

In: a draft whose queries are split. Out: one `SourceRead` for all packet interfaces together (one
for those with partitions, one for the others), and one for every other interface with all its
partitions. Its columns are the union of the columns of
all scans; its predicate drops only tuples that no scan takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from terascope.connectors.arrival import arrived, is_arrival
from terascope.connectors.base import INTERFACE, LAYERS, Column, Edge, Split, interface_of
from terascope.connectors.registry import Interface, versioned
from terascope.diagnostic import SourceError
from terascope.kernels.codegen.expressions import unsupported
from terascope.physical.draft import JobDraft
from terascope.physical.job import SourceRead
from terascope.physical.ownership import columns_read, partition_sets
from terascope.physical.rules.low_planner import common_edge, membership, scan_use
from terascope.plan.build import TRUE, conjunction, disjunction
from terascope.plan.expr import Col, Expr, conjuncts, substitute
from terascope.plan.rel import Scan
from terascope.types import Type

PACKETS = "packets"
PACKETS_IN_PARTITIONS = "packets in partitions"
MOST_TERMS = 12
"""A source predicate of more alternatives costs more than it saves."""

ScanUse = tuple[Scan, Expr]
"""A scan and the predicate of the filter on it."""
SMALLEST_SPLIT: Final = 256 << 10
"""The bytes below which splits of partitions are not made smaller."""


def read_sources(draft: JobDraft) -> JobDraft:
    """Before: scans in many streams      After: one read for each source."""
    uses = [scan_use(stream.rel) for stream in draft.split.low]
    names = sorted({n for scan, _ in uses for n in scan.interfaces})
    bound = [draft.interfaces[n] for n in names]
    packets = [i for i in bound if i.is_packets and not i.is_part]
    parts = [i for i in bound if i.is_packets and i.is_part]  # tasks that read them are apart
    groups = [(PACKETS, packets)] if packets else []
    groups += [(PACKETS_IN_PARTITIONS if packets else PACKETS, parts)] if parts else []
    others: dict[str, list[Interface]] = {}
    for one in bound:
        if not one.is_packets:
            others.setdefault(interface_of(one.name), []).append(one)
    groups += others.items()
    edge = common_edge([stream.rel for stream in draft.split.low])
    sets = partition_sets({i.name: i for i in bound}, [scan for scan, _ in uses])
    draft = replace(draft, sets=sets)
    found = [source_read(name, members, uses, edge, draft) for name, members in groups]
    return replace(draft, reads=tuple(found))


def source_read(
    name: str, members: list[Interface], uses: list[ScanUse], edge: Edge | None, draft: JobDraft
) -> SourceRead:
    ours = {m.name for m in members}
    relevant = [(scan, p) for scan, p in uses if ours & set(scan.interfaces)]
    columns: dict[str, Column] = {}
    for scan, _ in relevant:
        for one in (*scan.columns, *scan.checked):
            add_column(columns, Column(one.read_from, one.type, one.clock), name)
        if scan.layer is not None:
            add_column(columns, Column(LAYERS, Type.LLONG), name)
        if ours - set(scan.interfaces):
            add_column(columns, Column(INTERFACE, Type.STRING), name)
    for source in {interface_of(name) for name in ours} & draft.sets.keys():
        for column in columns_read(draft.sets[source]):  # to check where each tuple is
            add_column(columns, replace(column, checked_only=True), name)
    clocks = {f.read_from for scan, _ in relevant for f in scan.columns if f.slope is not None}
    splits: list[Split] = []
    if draft.split_bytes is not None:
        splits = versioned(
            draft.splits_of(members, edge, size_of_splits(members, draft.split_bytes))
        )
    return SourceRead(
        name,
        tuple(members),
        tuple(columns.values()),
        # Tuples that no query takes still move the clocks; Spark has them anyway.
        source_predicate(relevant, ours) if members[0].hosts_low_level else None,
        tuple(arrived(splits, columns.values(), draft.arrival_ns)),
        tuple(sorted(clocks)),
        () if draft.is_live else tuple(notes(members)),
        edge=edge,
        arrival_ns=draft.arrival_ns if any(map(is_arrival, columns)) else 0,
        partitioned_by=None if members[0].hosts_low_level else draft.sets.get(name),
    )


def size_of_splits(members: Sequence[Interface], split_bytes: int) -> int:
    """The bytes of a split. Those of partitions are smaller: the splits of one range of time of all
    partitions together have that size.
    """
    if any(one.is_packets for one in members):  # their ranges of time are short already
        return split_bytes
    counts = [1 if one.partition is None else one.partition.count for one in members]
    return max(min(split_bytes, SMALLEST_SPLIT), split_bytes // max(counts))


def add_column(columns: dict[str, Column], column: Column, source: str) -> None:
    known = columns.setdefault(column.name, column)
    same = known.type is column.type or (known.type.is_integer and column.type.is_integer)
    if not same:
        raise SourceError(
            f"column '{column.name}' of '{source}' is declared {known.type.label} "
            f"in one PROTOCOL and {column.type.label} in another"
        )
    if known.clock and column.clock and known.clock != column.clock:
        # A date in a file becomes ticks of one unit; a second one would get the wrong time.
        raise SourceError(
            f"column '{column.name}' of '{source}' is declared clock({known.clock}) "
            f"in one PROTOCOL and clock({column.clock}) in another"
        )


def source_predicate(uses: list[ScanUse], members: set[str]) -> Expr | None:
    """The condition that any scan takes a tuple; None when all are taken, or it costs more."""
    terms = list(dict.fromkeys(scan_term(scan, p, members) for scan, p in uses))
    if len(terms) > MOST_TERMS:
        terms = list(dict.fromkeys(scan_term(scan, TRUE, members) for scan, _ in uses))
    terms = weakest(terms)
    if not terms or TRUE in terms or len(terms) > MOST_TERMS:
        return None
    return disjunction(terms)


def weakest(terms: list[Expr]) -> list[Expr]:
    """The terms without those that imply another term."""
    parts = [frozenset(conjuncts(t)) for t in terms]
    return [t for t, own in zip(terms, parts, strict=True) if not any(p < own for p in parts)]


def scan_term(scan: Scan, predicate: Expr, members: set[str]) -> Expr:
    """The condition of the tuples of one scan, in columns of the connector."""
    parts = membership(scan, members)
    names: dict[str, Expr] = {c.name: Col(c.read_from, c.type) for c in scan.columns}
    if predicate != TRUE:
        below = (substitute(c, names) for c in conjuncts(predicate))
        parts += [c for c in below if unsupported(c) is None]
    return conjunction(parts)


def notes(members: list[Interface]) -> Iterator[str]:
    for member in members:
        packed = [p.name for p in member.files if p.suffix == ".gz"]
        if packed:
            yield f"{', '.join(packed)}: compressed, each file is read as one partition"
        if not member.hosts_low_level:
            yield f"low level by catalyst: {member.noun}"
