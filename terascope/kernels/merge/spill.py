"""Groups moved to disk for lack of memory: files that nothing can be left of.

In: bytes of groups. Out: the same bytes again. The files have no names: a file is gone when it is
closed, or when its process ends, however that happens. Two forms of groups are spilled: payloads
(terascope.kernels.merge.payload) by their partition, in `Spill`, and rows of a table by their epoch
(terascope.execute.grouping.spilled_groups). They differ for a reason: partials of a merge come in
any order and are merged by key, the groups of a task are wanted again epoch by epoch.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from io import BufferedRandom
from pathlib import Path

import numpy as np

from terascope.diagnostic import OutputError, as_mistake
from terascope.kernels.columns.arrays import Bytes


class SpillFile:
    """Bytes appended to a file and read from any place of it.

    Raises:
        OutputError: the folder cannot be written, or is full.
    """

    def __init__(self, folder: Path) -> None:
        self.size = 0
        self._folder = folder
        self._file: BufferedRandom | None = None

    def append(self, data: bytes | memoryview) -> None:
        what = f"groups do not fit in memory and cannot be kept in '{self._folder}' meanwhile"
        with as_mistake(OutputError, what):
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            self._file.seek(0, 2)
            self.size += self._file.write(data)
            self._file.flush()

    def read(self, offset: int, size: int) -> Bytes:
        data = np.empty(size, np.uint8)
        if self._file is not None:
            self._file.seek(offset)
        if size and (self._file is None or self._file.readinto(data.data) < size):
            raise OutputError("groups that were kept on disk meanwhile are no longer there")
        return data

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self.size = None, 0


class Spill:
    """Payloads by partition, a file for each partition that has some."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self.bytes = 0
        self._files = [SpillFile(folder) for _ in range(partitions)]
        self._lengths: list[list[int]] = [[] for _ in range(partitions)]

    def append(self, partition: int, payload: bytes) -> None:
        self._files[partition].append(payload)
        self._lengths[partition].append(len(payload))
        self.bytes += len(payload)

    def partitions(self) -> Iterator[Iterator[bytes]]:
        """The payloads of every partition that has some; its file is closed after it was read."""
        for file, lengths in zip(self._files, self._lengths, strict=True):
            if lengths:
                yield self._payloads(file, lengths)
                file.close()

    @staticmethod
    def _payloads(file: SpillFile, lengths: list[int]) -> Iterator[bytes]:
        offset = 0
        for length in lengths:
            yield file.read(offset, length).tobytes()
            offset += length

    def close(self) -> None:
        for file in self._files:
            file.close()
