"""The values that the partitions of declared partitionings have in a stream, while they matter.

In: the hashes that the reading tasks of a micro-batch report, and the segments of the store. Out:
an error when two partitions have the same value, before any row of the batch is emitted.

Two tuples with the same value in different partitions make a wrong row only if they meet in a
group, a window or a join. What batches have read before meets new tuples in the slice store; so the
hashes of a batch are forgotten when the store has no slice any more of which that batch had tuples.
A value that comes back later may be in another partition. Memory and disk are bounded by the
distinct values of the slices that are open or retained.

Each batch has a file with its hashes, which a repeated batch writes again. It is removed one batch
after the hashes were forgotten, because the newest batch may be repeated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from terascope.execute.partition_check import (
    Contradiction,
    PartitionHashes,
    checked_across,
    named_tuples,
)
from terascope.files import make_folder, open_file
from terascope.kernels.columns.arrays import Ints
from terascope.partitioning.placing import Hashes
from terascope.physical.job import SourceRead
from terascope.physical.ownership import KeyOwnership
from terascope.physical.stream.slice_streams import SliceValue
from terascope.streaming.state.segments import Segment
from terascope.streaming.stored_rows import base_stream

SUFFIX: Final = ".values"
Reach: TypeAlias = dict[str, SliceValue]
"""By stream: the last slice that a batch has stored tuples of."""


@dataclass
class KnownValues:
    """The hashes of sources whose tuples meet, each with a partition that has it and the last batch
    that read it.
    """

    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    places: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    batches: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    partitions: list[tuple[str, int]] = field(default_factory=list)
    """Source and number of each place."""

    def add(self, batch: int, seen: PartitionHashes) -> Contradiction | None:
        """Add the hashes that a partition has; return one that another partition has, if any."""
        own = (seen.source, seen.number)
        if own not in self.partitions:
            self.partitions.append(own)
        mine = self.partitions.index(own)
        at = np.searchsorted(self.hashes, seen.hashes)
        inside = at < len(self.hashes)
        is_known = np.zeros(len(at), bool)
        is_known[inside] = self.hashes[at[inside]] == seen.hashes[inside]
        known = at[is_known]
        numbers = np.array([number for _, number in self.partitions])
        wrong = np.flatnonzero(numbers[self.places[known]] != seen.number)
        if len(wrong):
            place = known[wrong[0]]
            return Contradiction(
                int(self.hashes[place]), self.partitions[int(self.places[place])], own
            )
        self.batches[known] = batch
        fresh = ~is_known
        self.hashes = np.insert(self.hashes, at[fresh], seen.hashes[fresh])
        self.places = np.insert(self.places, at[fresh], mine)
        self.batches = np.insert(self.batches, at[fresh], batch)
        return None

    def forget(self, batches: Sequence[int]) -> None:
        """Remove what none but these batches have read."""
        left = ~np.isin(self.batches, batches)
        self.hashes, self.places = self.hashes[left], self.places[left]
        self.batches = self.batches[left]


class PartitionValues:
    """The values of all declared partitions of a run."""

    def __init__(
        self,
        folder: Path,
        owned: KeyOwnership | None,
        reads: Sequence[SourceRead],
        otherwise: Collection[str],
        before: int,
    ) -> None:
        """`otherwise`: the streams of groups whose finished rows are stored by another column than
        their slices. `before`: the last batch that is done.
        """
        self._folder = folder
        self._otherwise = otherwise
        self._owned = owned
        self._reads = reads
        self._known: dict[frozenset[str], KnownValues] = {}
        self._reach: dict[int, Reach] = {}
        self._forgotten: list[Path] = []
        for batch, reach, seen in stored_values(folder):
            if batch <= before:
                self._reach[batch] = reach
                for one in seen:
                    self._of(one.source).add(batch, one)

    @property
    def count(self) -> int:
        """The number of hashes that are held."""
        return sum(len(known.hashes) for known in self._known.values())

    def take(self, batch: int, texts: Iterable[str], fresh: Iterable[Segment]) -> None:
        """Take the reports of the reading tasks of a batch, and the segments that they wrote.

        Raises:
            SourceError: two partitions have tuples with the same values.
        """
        seen = [one for one in map(PartitionHashes.of_json, texts) if len(one.hashes)]
        if not seen or self._owned is None:
            return
        checked_across(seen, self._reads, self._owned)
        reach = reach_of(fresh)
        self._write(batch, reach, seen)
        self._reach[batch] = reach
        for one in seen:
            found = self._of(one.source).add(batch, one)
            if found is not None:
                mistake = named_tuples(found, self._reads, self._owned)
                if mistake is not None:
                    raise mistake

    def expire(self, segments: Iterable[Segment]) -> None:
        """Forget the values of batches of whose slices nothing is stored any more."""
        if not self._reach:
            return
        least = least_slices(segments, self._otherwise)
        over = [n for n, reach in self._reach.items() if all(
            high < least.get(stream, math.inf) for stream, high in reach.items()
        )]  # fmt: skip
        for path in self._forgotten:
            path.unlink(missing_ok=True)
        self._forgotten = [self._path(batch) for batch in over]
        if over:
            for known in self._known.values():
                known.forget(over)
            for batch in over:
                del self._reach[batch]

    def _of(self, source: str) -> KnownValues:
        linked = () if self._owned is None else self._owned.linked
        group = next((one for one in linked if source in one), frozenset({source}))
        return self._known.setdefault(group, KnownValues())

    def _write(self, batch: int, reach: Reach, seen: Sequence[PartitionHashes]) -> None:
        make_folder(self._folder)
        with open_file(self._path(batch), "wb") as file:
            file.write(json.dumps(reach).encode() + b"\n")
            for one in seen:
                file.write(one.to_json().encode() + b"\n")

    def _path(self, batch: int) -> Path:
        return self._folder / f"{batch}{SUFFIX}"


def stored_values(folder: Path) -> Iterator[tuple[int, Reach, list[PartitionHashes]]]:
    """The batches in a folder, from the first to the last."""
    for path in sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: int(path.stem)):
        first, *lines = path.read_text(encoding="utf-8").splitlines()
        yield int(path.stem), json.loads(first), list(map(PartitionHashes.of_json, lines))


def reach_of(segments: Iterable[Segment]) -> Reach:
    """The last slice of each stream; tuples without a slice (NULL) stay to the end."""
    found: Reach = {}
    for one in segments:
        high = math.inf if one.unsliced or one.high is None else one.high
        found[one.stream] = max(found.get(one.stream, high), high)
    return found


def least_slices(
    segments: Iterable[Segment], otherwise: Collection[str]
) -> Mapping[str, SliceValue]:
    """The first slice of each stream that is stored, spans of several slices included. `otherwise`:
    the streams of whose rows the slices are not known.
    """
    found: dict[str, SliceValue] = {}
    for one in segments:
        stream = base_stream(one.stream)
        is_unknown = one.unsliced or (one.kind == "rows" and stream in otherwise)
        low = -math.inf if is_unknown or one.low is None else one.low
        found[stream] = min(found.get(stream, low), low)
    return found
