"""Whether the tuples of a source are in the partitions that they belong to.

In: the batches that the task of a partition reads, and the partitioning set of the source. Out: an
error that names a tuple in a wrong partition, never a wrong answer.

Where the ranges of hashes of the partitions are known, each task checks its own tuples. Where a
partitioning is only declared, nobody knows which partition a value belongs to; but all its tuples
are in one. Each task then reports the hashes of the values that it has seen, and the driver looks
for one that two partitions have (`contradictions`). Two different values rarely have the same hash
of 64 bits: the tuples are read again to tell, and are named (`named_tuples`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.connectors.base import ReadReport, Split, interface_of, partition_of
from terascope.connectors.registry import read_split
from terascope.diagnostic import SourceError
from terascope.execute.reports import Outgoing
from terascope.partitioning.placing import partition_numbers, value_hashes
from terascope.partitioning.sets import PartitionSet
from terascope.physical.job import SourceRead
from terascope.physical.ownership import KeyOwnership
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Lit
from terascope.plan.show import show_expr

Hashes = NDArray[np.uint64]
NO_SET = PartitionSet(())
REMEDY = "write the partitions anew with 'terascope split', or bind the source without them"


@dataclass(frozen=True)
class SourcePartitions:
    """How one source is partitioned."""

    set: PartitionSet
    bounds: tuple[int, ...] = ()
    """The ends of the ranges of hashes, where they are known."""


@dataclass(frozen=True)
class PartitionCheck:
    """The check of the tuples of one read, by the name of the source."""

    sources: Mapping[str, SourcePartitions]

    def of_partition(self, number: int) -> CheckedPartition:
        return CheckedPartition(self, number)


def check_of(read: SourceRead, owned: KeyOwnership) -> PartitionCheck | None:
    """The check of the tuples of a read; None: none of its sources has partitions."""
    sources: dict[str, SourcePartitions] = {}
    for one in read.interfaces:
        source = interface_of(one.name)
        if one.partition is not None and owned.sets.get(source, NO_SET).expressions:
            sources[source] = SourcePartitions(owned.sets[source], one.partition.bounds)
    return PartitionCheck(sources) if sources else None


@dataclass
class CheckedPartition:
    """The tuples of one partition of each source of a read."""

    check: PartitionCheck
    number: int
    _seen: dict[str, list[Hashes]] = field(default_factory=dict)
    _rows: int = 0

    def __call__(self, batch: pa.RecordBatch, interface: str) -> None:
        """Look at a batch that was read.

        Raises:
            SourceError: a tuple is in a wrong partition.
        """
        source = interface_of(interface)
        how = self.check.sources.get(source)
        if how is None or not batch.num_rows:
            return
        hashes = value_hashes(how.set, batch)
        if how.bounds:
            numbers = partition_numbers(hashes, how.bounds)
            wrong = np.flatnonzero(numbers != self.number)
            if len(wrong):
                row = int(wrong[0])
                raise SourceError(
                    f"a tuple of '{source}' is in partition {self.number} and belongs to partition"
                    f" {numbers[row]}: {values_text(how.set, batch, row)}; {REMEDY}"
                )
            return
        some = self._seen.setdefault(source, [])
        some.append(np.unique(hashes))
        self._rows += len(some[-1])
        if self._rows > 1 << 20 and len(some) > 1:
            some[:] = [np.unique(np.concatenate(some))]
            self._rows = len(some[0])

    def reports(self) -> Iterator[Outgoing]:
        for source, some in self._seen.items():
            hashes = np.unique(np.concatenate(some))
            text = base64.b64encode(hashes.tobytes()).decode()
            report = json.dumps({"source": source, "partition": self.number, "hashes": text})
            yield Outgoing(-1, self.number, "values", None, report)


def contradictions(texts: Iterable[str]) -> dict[str, tuple[int, int, int]]:
    """By source: a hash that two partitions have, and these two; from the reports of all tasks."""
    seen: dict[str, list[tuple[int, Hashes]]] = {}
    for told in map(json.loads, texts):
        hashes = np.frombuffer(base64.b64decode(told["hashes"]), np.uint64)
        seen.setdefault(told["source"], []).append((told["partition"], hashes))
    found: dict[str, tuple[int, int, int]] = {}
    for source, some in seen.items():
        every = np.concatenate([hashes for _, hashes in some])
        where = np.concatenate([np.full(len(hashes), n, np.int64) for n, hashes in some])
        order = np.lexsort((where, every))
        every, where = every[order], where[order]
        same = np.flatnonzero((every[1:] == every[:-1]) & (where[1:] != where[:-1]))
        if len(same):
            at = int(same[0])
            found[source] = int(every[at]), int(where[at]), int(where[at + 1])
    return found


def named_tuples(
    how: SourcePartitions,
    read: SourceRead,
    splits: Sequence[Split],
    hashed: int,
    partitions: Sequence[int],
) -> SourceError | None:
    """The error that names two tuples with the same values in different partitions; None: their
    values differ, only the hashes of these are the same.
    """
    found: dict[int, str] = {}
    for split in splits:
        number = partition_of(split.interface)
        if number not in partitions or number in found:
            continue
        wanted = [column for column in read.columns if column.name in how.set.columns]
        for batch in read_split(split, wanted, ReadReport()):
            rows = np.flatnonzero(value_hashes(how.set, batch) == np.uint64(hashed))
            if len(rows):
                found[number] = values_text(how.set, batch, int(rows[0]))
                break
    if len(found) < 2 or len(set(found.values())) > 1:
        return None
    (one, text), (other, _) = sorted(found.items())[:2]
    source = splits[0].source
    return SourceError(
        f"the partitions of '{source}' are not by {how.set}: a tuple in partition {one} and one in"
        f" partition {other} have the same values, {text}; {REMEDY}"
    )


def values_text(set: PartitionSet, batch: pa.RecordBatch, row: int) -> str:
    """The values of a partitioning set for one tuple, such as srcIP = 10.0.0.1."""
    names = tuple(batch.schema.names)
    values = tuple(column[row].as_py() for column in batch.columns)
    shown: list[str] = []
    for expr in set.expressions:
        value = compile_expr(expr, names, {})(values)
        shown.append(f"{show_expr(expr)} = {show_expr(Lit(value, expr.type))}")
    return ", ".join(shown)
