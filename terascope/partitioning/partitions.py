"""The partitions of a source, each as an interface of its own.

In: an interface, and the partitioning set that is declared for it, or the manifest that `terascope
split` left beside the data. Out: one interface for each partition; a source without partitions is
itself. All partitions answer to the name of the source: a query reads the merge of them. A folder
whose ranges change in the course of time is partitioned by its set and the slice of time; one that
was split without regard to values has partitions that own no groups.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from terascope.connectors.base import find_files, partition_name
from terascope.connectors.registry import GENERATE, Interface, Partition
from terascope.diagnostic import SourceError
from terascope.partitioning.layout import Layout, read_layout


def partitions_of(interface: Interface, declared: str | None) -> list[Interface]:
    """The partitions of a source, or the source itself.

    Raises:
        SourceError: the location has no partitions, or its manifest cannot be read.
    """
    folder = Path(interface.location)
    layout = read_layout(folder) if interface.kind != GENERATE and folder.is_dir() else None
    if layout is not None and declared is None:
        return stored_partitions(interface, folder, layout)
    if declared is None:
        return [interface]
    if not declared.strip():
        raise SourceError(
            f"the partitioning set of '{interface.name}' is empty: write expressions over its"
            " columns, such as srcIP & 0xFFFFFFF0, destIP"
        )
    if interface.kind == GENERATE:
        raise SourceError(f"'{interface.name}' is generated traffic, which has no partitions")
    found = declared_locations(interface)
    return [
        part_of(interface, location, Partition(number, len(found), declared))
        for number, location in enumerate(found)
    ]


def stored_partitions(interface: Interface, folder: Path, layout: Layout) -> list[Interface]:
    """The partitions that a manifest states. They are of the kind that it names: a split of a table
    is Parquet, whatever the table was.
    """
    if layout.kind != interface.kind:
        interface = replace(interface, kind=layout.kind, options=())
    count, by, bounds = len(layout.partitions), layout.full_set, known_bounds(layout)
    return [
        part_of(
            interface,
            str(folder / one.path),
            Partition(number, count, by, bounds, () if layout.edge else layout.types, one.host),
        )
        for number, one in enumerate(layout.partitions)
    ]


def part_of(interface: Interface, location: str, partition: Partition) -> Interface:
    name = partition_name(interface.name, partition.number)
    return replace(interface, name=name, location=location, partition=partition)


def known_bounds(layout: Layout) -> tuple[int, ...]:
    """The ranges of hashes of all tuples; none where they may change in the course of time, and
    where tuples were dealt out in turn.
    """
    return layout.bounds if layout.by and not layout.edge else ()


def declared_locations(interface: Interface) -> list[str]:
    """Each folder in the location, or else each file of its kind, in the order of their names."""
    folder = Path(interface.location)
    if folder.is_dir():
        inner = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
        if inner:
            return [str(path) for path in inner]
    found = [str(path) for path in find_files(interface.location, interface.connector.suffixes)]
    if not found:
        raise SourceError(f"'{interface.location}' has no partitions: it holds no file or folder")
    return found
