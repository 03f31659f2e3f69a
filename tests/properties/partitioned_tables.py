"""The tables of a random case, split into partitions by a random set."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from terascope.connectors.base import Column, arrow_type, partition_name
from terascope.connectors.registry import Interface, Partition
from terascope.partitioning.placing import even_bounds, partition_numbers, value_hashes
from terascope.partitioning.sets import parse_set
from terascope.types import Type
from tests.properties.engines import TYPES
from tests.properties.stream_cases import Tuples, whole

SETS = (
    "a", "b", "a, b", "ip", "a & 6", "b / 3, ip", "ip & 0xFFFFFF00", "s", "a, s", "b % 4", "b, ip",
    "a, b, ip, s", "b >> 1, a",
)  # fmt: skip
COLUMNS = [*(Column(name, type) for name, type in TYPES.items()), Column("ip", Type.IP)]


def random_partitions(rng: random.Random) -> tuple[str, int]:
    """A partitioning set, and a number of partitions."""
    return rng.choice(SETS), rng.choice([2, 2, 3, 5])


def divided(
    tuples: Sequence[Mapping[str, object]], by: str, count: int
) -> list[list[Mapping[str, object]]]:
    """The tuples of each partition, in their order; without a set in turn."""
    if not by:
        return [list(tuples[number::count]) for number in range(count)]
    set = parse_set(by, COLUMNS)
    batch = pa.RecordBatch.from_arrays(
        [pa.array([t[c.name] for t in tuples], arrow_type(c.type)) for c in COLUMNS],
        [c.name for c in COLUMNS],
    )
    numbers = partition_numbers(value_hashes(set, batch), even_bounds(count))
    found: list[list[Mapping[str, object]]] = [[] for _ in range(count)]
    for number, one in zip(numbers.tolist(), tuples, strict=True):
        found[number].append(one)
    return found


def partitioned_files(
    interface: Interface, tuples: Tuples, by: str, count: int, rng: random.Random
) -> dict[str, Interface]:
    """The files of a stream in partitions, each in a folder of its own. Some sources have no
    partitions, and some are split by another set.
    """
    if rng.random() < 0.1:
        return whole(interface, tuples, rng)
    if rng.random() < 0.15:
        by, count = random_partitions(rng)
    folders: list[Path] = []
    for number, some in enumerate(divided(tuples, by, count)):
        folders.append(Path(interface.location) / f"part{number}")
        inner = replace(interface, location=str(folders[-1]))
        whole(inner, [dict(one) for one in some], rng)
    return as_partitions(interface, folders, by, declared=rng.random() < 0.5)


def as_partitions(
    interface: Interface, locations: Sequence[Path], by: str, declared: bool, hosts: int = 0
) -> dict[str, Interface]:
    """The partitions of an interface. Declared ones say nothing about hashes. `hosts`: how many
    hosts hold them; 0: that is unknown.
    """
    count = len(locations)
    bounds = () if declared else even_bounds(count)
    return {
        partition_name(interface.name, n): replace(
            interface,
            name=partition_name(interface.name, n),
            location=str(location),
            partition=Partition(
                n, count, by, bounds, host=f"host{n * hosts // count}" if hosts else ""
            ),
        )
        for n, location in enumerate(locations)
    }
