"""What does not fit in memory, on disk: payloads in files, a file for each partition.

In: payloads (terascope.kernels.merge.payload) and the partition each belongs to. Out: the payloads
of one partition again. The files have no names: each is gone when it was read, or its process is.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from terascope.diagnostic import OutputError

LENGTH_BYTES = 8


class Spill:
    """Files of payloads, one after the other, each with its length before it.

    Raises:
        OutputError: the folder cannot be written, or is full.
    """

    def __init__(self, folder: Path, partitions: int) -> None:
        self.bytes = 0
        self._folder = folder
        self._files: list[BinaryIO | None] = [None] * partitions

    def append(self, partition: int, payload: bytes) -> None:
        try:
            file = self._files[partition]
            if file is None:
                file = self._files[partition] = nameless_file(self._folder)
                weakref.finalize(self, file.close)
            file.write(len(payload).to_bytes(LENGTH_BYTES, "little"))
            file.write(payload)
        except OSError as problem:
            raise cannot_spill(self._folder, problem) from problem
        self.bytes += len(payload)

    def partitions(self) -> Iterator[Iterator[bytes]]:
        """The payloads of every partition that has some. What was read is gone."""
        for number, file in enumerate(self._files):
            if file is not None:
                with file:
                    yield payloads(file)
                self._files[number] = None

    def close(self) -> None:
        for file in self._files:
            if file is not None:
                file.close()
        self._files = []


def nameless_file(folder: Path) -> BinaryIO:
    """A file that nothing can be left of."""
    return tempfile.TemporaryFile(dir=folder)


def payloads(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while length := file.read(LENGTH_BYTES):
        yield file.read(int.from_bytes(length, "little"))


def cannot_spill(folder: Path, problem: OSError) -> OutputError:
    why = (problem.strerror or str(problem)).lower()
    return OutputError(
        f"groups do not fit in memory and cannot be kept in '{folder}' meanwhile: {why}"
    )
