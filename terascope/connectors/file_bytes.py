"""Bytes of a file, plain or gzip, and its approximate number of records.

In: a path. Out: its bytes, unpacked: a `ByteStream` that fills a buffer, or chunks. A gzip file is
recognised by its first bytes, not by its name, and is always read from its beginning; of a damaged
one, everything before the damage is read.

The number of records is estimated from the size of a file and the mean length of the records at its
beginning. That takes about a millisecond and compiles nothing, so that planning can decide whether
a sample of the source pays.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from terascope.connectors.base import SHORTEST_TUPLE, FileFault, ReadReport, UnusableFile

GZIP_MAGIC: Final = b"\x1f\x8b"
UNPACKED_GZIP: Final = 31
"""zlib's window bits for a gzip wrapper."""
LOOKAHEAD_BYTES: Final = 1 << 18
NO_END: Final = 1 << 62
"""The end of a range that has none."""
CHUNK: Final = 4 * 1024 * 1024


@contextmanager
def opened(path: str | Path, buffering: int = -1) -> Iterator[BinaryIO]:
    """The open file; an error of opening it becomes an UnusableFile of one line."""
    try:
        file = Path(path).open("rb", buffering)  # noqa: SIM115 - closed below
    except OSError as error:
        raise unreadable(path, error) from error
    with file:
        yield file


@contextmanager
def opened_raw(path: str | Path) -> Iterator[BinaryIO]:
    """The open file without a buffer; errors of reading it become an UnusableFile, too."""
    with opened(path, buffering=0) as file:
        try:
            yield file
        except OSError as error:
            raise unreadable(path, error) from error


def unreadable(path: str | Path, error: OSError) -> UnusableFile:
    return UnusableFile(f"cannot read '{path}': {(error.strerror or str(error)).lower()}")


def size_of(path: str | Path) -> int:
    try:
        return Path(path).stat().st_size
    except OSError as error:
        raise unreadable(path, error) from error


def is_gzip(path: str | Path) -> bool:
    with opened(path) as file:
        return starts_as_gzip(file)


def starts_as_gzip(file: BinaryIO) -> bool:
    """Whether an open file starts as gzip does; it stands at its beginning afterwards."""
    file.seek(0)
    magic = file.read(len(GZIP_MAGIC))
    file.seek(0)
    return magic == GZIP_MAGIC


class ByteStream(ABC):
    """Bytes of an unpacked file, in order."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.consumed = 0
        """Bytes of the file on disk used so far."""
        self.damaged = False

    @abstractmethod
    def read_into(self, room: memoryview) -> int:
        """Fill some of `room`; 0 at the end."""


class PlainStream(ByteStream):
    """A file as it is, from an offset on."""

    def __init__(self, file: BinaryIO, start: int) -> None:
        super().__init__(file)
        file.seek(start)

    def read_into(self, room: memoryview) -> int:
        got = self._file.readinto(room)  # type: ignore[attr-defined]  # BinaryIO leaves it out
        self.consumed += got
        return int(got)


class GzipStream(ByteStream):
    """The unpacked bytes of a gzip file with all its members, up to the damage, if there is any."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._unpacker = zlib.decompressobj(UNPACKED_GZIP)
        self._packed = b""
        self._ended = False

    def read_into(self, room: memoryview) -> int:
        while not self._ended:
            if not self._packed:
                self._packed = self._file.read(LOOKAHEAD_BYTES)
                self.consumed += len(self._packed)
            exhausted = not self._packed
            before = self._unpacker.copy()
            try:
                unpacked = self._unpacker.decompress(self._packed, len(room))
            except zlib.error:
                self.damaged = self._ended = True
                unpacked = salvage(before, self._packed, len(room))
                room[: len(unpacked)] = unpacked
                return len(unpacked)
            self._packed = self._unpacker.unconsumed_tail
            if self._unpacker.eof:
                self._next_member()
            elif exhausted and not unpacked:
                self.damaged = self._ended = True
            if unpacked:
                room[: len(unpacked)] = unpacked
                return len(unpacked)
        return 0

    def _next_member(self) -> None:
        rest = self._unpacker.unused_data
        if not rest:
            rest = self._file.read(LOOKAHEAD_BYTES)
            self.consumed += len(rest)
        rest = rest.lstrip(b"\0")  # some writers pad the file after the last member
        self._packed = rest
        self._ended = not rest
        self._unpacker = zlib.decompressobj(UNPACKED_GZIP)


def salvage(unpacker: zlib._Decompress, packed: bytes, most: int) -> bytes:
    """The bytes before the damage: zlib itself discards all of the failing call."""
    unpacked = bytearray()
    try:
        for k in range(len(packed)):
            if len(unpacked) >= most:
                break
            unpacked += unpacker.decompress(packed[k : k + 1], most - len(unpacked))
    except zlib.error:
        pass
    return bytes(unpacked)


def stream_of(file: BinaryIO) -> ByteStream:
    """The unpacked bytes of an open file, from its beginning on."""
    return GzipStream(file) if starts_as_gzip(file) else PlainStream(file, 0)


def read_chunks(
    path: str | Path, start: int, end: int, report: ReadReport, size: int = CHUNK
) -> Iterator[bytes]:
    """A range of a plain file; of a gzip file everything unpacked from byte `start` on, its damage
    reported after the last bytes before it.
    """
    with opened(path) as file:
        if not starts_as_gzip(file):
            file.seek(start)
            while start < end and (chunk := file.read(min(size, end - start))):
                start += len(chunk)
                report.bytes_read += len(chunk)
                yield chunk
            return
        stream, before = GzipStream(file), report.bytes_read
        room = bytearray(size)
        while filled := filled_from(stream, memoryview(room)):
            report.bytes_read = before + stream.consumed
            if start < filled:
                yield bytes(room[start:filled])
            start = max(start - filled, 0)
        if stream.damaged:
            report.blame(str(path), FileFault.DAMAGED_GZIP)


def filled_from(stream: ByteStream, room: memoryview) -> int:
    """Fill a buffer as far as the stream reaches; how many bytes are in it."""
    filled = 0
    while filled < len(room) and (got := stream.read_into(room[filled:])):
        filled += got
    return filled


def head(path: str | Path, size: int) -> bytes:
    """The first bytes of a file, unpacked; at most `size`."""
    chunks = read_chunks(path, 0, size, ReadReport(), size)
    return next(chunks, b"")[:size]


BEGINNING: Final = 1 << 16
"""Bytes of a file that are looked at."""


def estimated_records(path: Path, size: int, mean_length: Callable[[bytes], float | None]) -> float:
    """The number of records of a file, by the mean length of those at its beginning."""
    try:
        with path.open("rb") as file:
            packed = file.read(BEGINNING)
    except OSError:
        return size / SHORTEST_TUPLE
    start, growth = unpacked(packed)
    return size * growth / (mean_length(start) or SHORTEST_TUPLE)


def unpacked(start: bytes) -> tuple[bytes, float]:
    """The beginning of a file as it is without compression, and how much longer that is."""
    if not start.startswith(GZIP_MAGIC):
        return start, 1.0
    try:
        plain = zlib.decompressobj(UNPACKED_GZIP).decompress(start)
    except zlib.error:
        return b"", 1.0
    return plain, len(plain) / len(start)


def line_length(start: bytes) -> float | None:
    """The mean length of the lines; None when there is no whole one."""
    lines = start.count(b"\n")
    return (start.rfind(b"\n") + 1) / lines if lines else None
