"""The values that each partition of a declared partitioning has had so far in a stream.

In: the hashes that the reading tasks of a micro-batch report. Out: an error when two partitions
have the same values, before any row of the batch is emitted. The hashes are kept in a file of the
run, which only grows: a batch that is run again adds what is there already.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from terascope.connectors.base import interface_of
from terascope.diagnostic import SourceError
from terascope.execute.partition_check import (
    Hashes,
    SourcePartitions,
    contradictions,
    named_tuples,
)
from terascope.files import escaped, make_folder, open_file
from terascope.physical.job import SourceRead
from terascope.physical.ownership import KeyOwnership
from terascope.physical.splits import SPLIT_BYTES


class PartitionValues:
    """The hashes of all values, by source and partition."""

    def __init__(
        self, folder: Path, owned: KeyOwnership | None, reads: Sequence[SourceRead]
    ) -> None:
        self._folder = folder
        self._owned = owned
        self._reads = reads
        self._known: dict[tuple[str, int], Hashes] = {}

    def take(self, texts: Sequence[str]) -> None:
        """Take the reports of a batch.

        Raises:
            SourceError: two partitions of a source have tuples with the same values.
        """
        every: list[str] = []
        for told in map(json.loads, texts):
            source, number = told["source"], told["partition"]
            hashes = np.frombuffer(base64.b64decode(told["hashes"]), np.uint64)
            self._add(source, number, hashes)
        if not texts:
            return
        for (source, number), hashes in self._known.items():
            text = base64.b64encode(hashes.tobytes()).decode()
            every.append(json.dumps({"source": source, "partition": number, "hashes": text}))
        for source, (hashed, one, other) in contradictions(every).items():
            raise self._mistake(source, hashed, (one, other))

    def _add(self, source: str, number: int, hashes: Hashes) -> None:
        if (source, number) not in self._known:
            path = self._path(source, number)
            known = np.fromfile(path, np.uint64) if path.is_file() else np.empty(0, np.uint64)
            self._known[source, number] = np.unique(known)
        known = self._known[source, number]
        fresh = np.setdiff1d(hashes, known, assume_unique=True)
        if len(fresh):
            make_folder(self._folder)
            with open_file(self._path(source, number), "ab") as file:
                file.write(fresh.tobytes())
            self._known[source, number] = np.union1d(known, fresh)

    def _path(self, source: str, number: int) -> Path:
        return self._folder / f"{escaped(source)}-{number}.hashes"

    def _mistake(self, source: str, hashed: int, partitions: tuple[int, int]) -> SourceError:
        assert self._owned is not None
        how = SourcePartitions(self._owned.sets[source])
        for read in self._reads:
            own = [one for one in read.interfaces if interface_of(one.name) == source]
            if own:
                splits = [split for one in own for split in one.splits(SPLIT_BYTES)]
                named = named_tuples(how, read, splits, hashed, partitions)
                if named is not None:
                    return named
        one, other = partitions
        return SourceError(
            f"the partitions of '{source}' are not by {how.set}: partitions {one} and {other} have"
            " tuples with the same values"
        )
