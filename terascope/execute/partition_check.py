"""Whether the tuples of a source are in the partitions that they belong to.

In: the batches that the task of a partition reads, and the partitioning set of the source. Out: an
error that names a tuple in a wrong partition, never a wrong answer.

Where the ranges of hashes of the partitions are known, each task checks its own tuples. Where a
partitioning is only declared, it is unknown which partition a value belongs to; but all tuples with
it are in one. Each task then reports the hashes of the values that it has read, and the driver
looks for one that two partitions have (`contradictions`): two of a source, or of sources whose
tuples meet in a task. Two different values rarely have the same hash of 64 bits: the tuples are
read again to tell, and are named (`named_tuples`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from terascope.connectors.base import (
    ReadReport,
    Split,
    interface_of,
    partition_name,
    partition_of,
)
from terascope.connectors.registry import read_split
from terascope.diagnostic import SourceError
from terascope.execute.reports import Outgoing
from terascope.functions.base import Value
from terascope.partitioning.hash_sets import HashSet, first_outside
from terascope.partitioning.placing import Hashes, partition_numbers, value_hashes
from terascope.partitioning.sets import PartitionSet
from terascope.physical.job import SourceRead
from terascope.physical.ownership import KeyOwnership, usable_bounds
from terascope.physical.splits import SPLIT_BYTES
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Lit
from terascope.plan.show import show_expr

REMEDY = "write the partitions anew with 'terascope split', or bind the source without them"


@dataclass(frozen=True)
class SourcePartitions:
    """How one source is partitioned."""

    set: PartitionSet
    bounds: tuple[int, ...] = ()
    """The ends of the ranges of hashes, where they are known."""
    unused: tuple[str, ...] = ()
    """The columns of the set that no query reads. A tuple for which one is NULL is not checked: its
    value may be malformed, and no answer depends on its partition."""

    def range_of(self, number: int) -> tuple[int, int]:
        """The first and the last hash of a partition."""
        return self.bounds[number - 1] if number else 0, self.bounds[number] - 1


@dataclass(frozen=True)
class PartitionCheck:
    """The check of the tuples of one read, by the name of the source."""

    sources: Mapping[str, SourcePartitions]

    def of_task(self, task: int) -> CheckedPartitions:
        return CheckedPartitions(self, task)


def check_of(read: SourceRead, owned: KeyOwnership) -> PartitionCheck | None:
    """The check of the tuples of a read; None: none of its sources has partitions by values."""
    sources: dict[str, SourcePartitions] = {}
    for one in read.interfaces:
        source = interface_of(one.name)
        if one.partition is not None and source in owned.sets:
            by = owned.sets[source]
            unused = tuple(c.name for c in read.columns if c.checked_only and c.name in by.columns)
            sources[source] = SourcePartitions(by, usable_bounds(one.partition, by), unused)
    return PartitionCheck(sources) if sources else None


@dataclass
class CheckedPartitions:
    """The tuples that one task reads, of one partition of each source or of several."""

    check: PartitionCheck
    task: int
    _seen: dict[tuple[str, int], HashSet] = field(default_factory=dict)

    def __call__(self, batch: pa.RecordBatch, split: Split) -> None:
        """Look at a batch that was read.

        Raises:
            SourceError: a tuple is in a wrong partition.
        """
        source, number = split.source, partition_of(split.interface)
        how = self.check.sources.get(source)
        if how is None or number is None:
            return
        for name in how.unused:
            if batch.column(name).null_count:
                batch = batch.filter(batch.column(name).is_valid())
        if not batch.num_rows:
            return
        hashes = value_hashes(how.set, batch)
        if not how.bounds:
            self._seen.setdefault((source, number), HashSet()).add(hashes)
            return
        first, last = how.range_of(number)
        row = first_outside(hashes, first, last)
        if row >= 0:
            (belongs,) = partition_numbers(hashes[row : row + 1], how.bounds)
            raise SourceError(
                f"a tuple in '{split.path}' is in partition {number} of '{source}' and belongs to"
                f" partition {belongs}: {values_text(how.set, batch, row)}; {REMEDY}"
            )

    def reports(self) -> Iterator[Outgoing]:
        for (source, number), some in self._seen.items():
            report = PartitionHashes(source, number, some.values()).to_json()
            yield Outgoing(-1, self.task, "values", None, report)


# ---- in the driver -------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartitionHashes:
    """The hashes of the values that one partition has, each once."""

    source: str
    number: int
    hashes: Hashes

    def to_json(self) -> str:
        text = base64.b64encode(self.hashes.tobytes()).decode()
        return json.dumps({"source": self.source, "partition": self.number, "hashes": text})

    @staticmethod
    def of_json(text: str) -> PartitionHashes:
        told = json.loads(text)
        hashes = np.frombuffer(base64.b64decode(told["hashes"]), np.uint64)
        return PartitionHashes(told["source"], told["partition"], hashes)


@dataclass(frozen=True)
class Contradiction:
    """Two partitions that have the same value, by its hash."""

    hash: int
    one: tuple[str, int]
    """A source and the number of a partition."""
    other: tuple[str, int]


def contradictions(
    seen: Sequence[PartitionHashes], linked: Iterable[frozenset[str]] = ()
) -> list[Contradiction]:
    """For each source, and for sources that are linked, a hash that partitions of different numbers
    have.
    """
    groups = [frozenset({one.source}) for one in seen]
    found = (
        contradiction([one for one in seen if one.source in group])
        for group in dict.fromkeys((*groups, *linked))
    )
    return [one for one in found if one is not None]


def contradiction(seen: Sequence[PartitionHashes]) -> Contradiction | None:
    if len({one.number for one in seen}) < 2:
        return None
    every = np.concatenate([one.hashes for one in seen])
    where = np.concatenate([np.full(len(o.hashes), at, np.int64) for at, o in enumerate(seen)])
    numbers = np.array([one.number for one in seen])
    order = np.argsort(every, kind="stable")
    every, where = every[order], where[order]
    same = np.flatnonzero((every[1:] == every[:-1]) & (numbers[where[1:]] != numbers[where[:-1]]))
    if not len(same):
        return None
    at = int(same[0])
    one, other = seen[where[at]], seen[where[at + 1]]
    return Contradiction(int(every[at]), (one.source, one.number), (other.source, other.number))


def checked_across(
    seen: Sequence[PartitionHashes], reads: Sequence[SourceRead], owned: KeyOwnership
) -> None:
    """Look for values that two partitions have.

    Raises:
        SourceError: there is one; it names a tuple of each.
    """
    for found in contradictions(seen, owned.linked):
        mistake = named_tuples(found, reads, owned)
        if mistake is not None:
            raise mistake


def named_tuples(
    found: Contradiction, reads: Sequence[SourceRead], owned: KeyOwnership
) -> SourceError | None:
    """The error that names two tuples with the same values in different partitions; None: their
    values differ, only the hashes of these are the same. Where a file is gone by now, the error
    names the partitions only.
    """
    (source, number), (other, other_number) = sorted((found.one, found.other))
    first, second = (
        first_tuple(name, at, found.hash, reads, owned.sets[name])
        for name, at in ((source, number), (other, other_number))
    )
    if first is not None and second is not None and first.values != second.values:
        return None
    by = owned.sets[source]
    if source == other:
        start = f"the partitions of '{source}' are not by {by}:"
    else:
        start = (
            f"the partitions of '{source}' by {by} and those of '{other}' by {owned.sets[other]} do"
            " not go together:"
        )
    if first is None or second is None:
        return SourceError(
            f"{start} partition {number} of '{source}' and partition {other_number} of '{other}'"
            f" have tuples with the same values; {REMEDY}"
        )
    return SourceError(
        f"{start} a tuple in '{first.path}' (partition {number}) and one in '{second.path}'"
        f" (partition {other_number}) have the same values, {first.text}; {REMEDY}"
    )


@dataclass(frozen=True)
class FoundTuple:
    """A tuple with the file that has it."""

    path: str
    values: tuple[Value, ...]
    text: str


def first_tuple(
    source: str, number: int, hash: int, reads: Sequence[SourceRead], set: PartitionSet
) -> FoundTuple | None:
    """The first tuple of a partition whose values have a hash."""
    name = partition_name(source, number)
    for read in reads:
        columns = [column for column in read.columns if column.name in set.columns]
        splits = [s for i in read.interfaces if i.name == name for s in i.splits(SPLIT_BYTES)]
        for split in splits:
            with suppress(SourceError):
                for batch in read_split(split, columns, ReadReport()):
                    rows = np.flatnonzero(value_hashes(set, batch) == np.uint64(hash))
                    if len(rows):
                        row = int(rows[0])
                        text = values_text(set, batch, row)
                        return FoundTuple(split.path, values_of(set, batch, row), text)
    return None


def values_of(set: PartitionSet, batch: pa.RecordBatch, row: int) -> tuple[Value, ...]:
    """The values of a partitioning set for one tuple."""
    names = tuple(batch.schema.names)
    values = tuple(column[row].as_py() for column in batch.columns)
    return tuple(compile_expr(expr, names, {})(values) for expr in set.expressions)


def values_text(set: PartitionSet, batch: pa.RecordBatch, row: int) -> str:
    """The values of a partitioning set for one tuple, such as srcIP = 10.0.0.1."""
    pairs = zip(set.expressions, values_of(set, batch, row), strict=True)
    return ", ".join(f"{show_expr(e)} = {show_expr(Lit(value, e.type))}" for e, value in pairs)
