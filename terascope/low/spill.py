"""What does not fit in memory, on disk: payloads in files, a file for each partition.

In: payloads (terascope.low.payload) and the partition each belongs to. Out: the payloads of one
partition again. The files stand in a temporary folder that goes with the object, and each of them
goes as soon as it was read.
"""

from __future__ import annotations

import shutil
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
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="terascope-merge-", dir=folder))
        except OSError as problem:
            raise cannot_spill(folder, problem) from problem
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._files: list[BinaryIO | None] = [None] * partitions

    def append(self, partition: int, payload: bytes) -> None:
        try:
            file = self._files[partition]
            if file is None:
                file = self._files[partition] = (self._folder / str(partition)).open("w+b")
            file.write(len(payload).to_bytes(LENGTH_BYTES, "little"))
            file.write(payload)
        except OSError as problem:
            raise cannot_spill(self._folder.parent, problem) from problem
        self.bytes += len(payload)

    def partitions(self) -> Iterator[Iterator[bytes]]:
        """The payloads of every partition that has some. What was read is gone."""
        for number, file in enumerate(self._files):
            if file is not None:
                with file:
                    yield payloads(file)
                self._files[number] = None
                (self._folder / str(number)).unlink()

    def close(self) -> None:
        for file in self._files:
            if file is not None:
                file.close()
        self._files = []
        self._remove()


def payloads(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while length := file.read(LENGTH_BYTES):
        yield file.read(int.from_bytes(length, "little"))


def cannot_spill(folder: Path | str, problem: OSError) -> OutputError:
    why = (problem.strerror or str(problem)).lower()
    return OutputError(
        f"groups do not fit in memory and cannot be kept in '{folder}' meanwhile: {why}"
    )
