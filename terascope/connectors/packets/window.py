"""Windows: the stretch of an unpacked capture file that is in memory.

In: a path, plain or gzip (told by its first bytes, not its name). Out: `Window`s, read-only byte
arrays that slide forward over the file, so that memory is bounded by the window and the longest
record.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Protocol

import numpy as np

from terascope.connectors.base import UnusableFile
from terascope.connectors.packets.compiled import SLACK, Bytes
from terascope.connectors.packets.memory import RECYCLER

GZIP_MAGIC: Final = b"\x1f\x8b"
WINDOW_BYTES: Final = 1 << 21
"""Two megabytes: enough packets for the calls into compiled code not to matter, and little enough
for a cache to hold. Reading into it is as fast as mapping the file, which was measured, and a file
that shrinks while it is read ends early instead of killing the process.
"""
LOOKAHEAD_BYTES: Final = 1 << 18
NO_END: Final = 1 << 62
UNPACKED_GZIP: Final = 31
"""zlib's window bits for a gzip wrapper."""


class Stream(Protocol):
    """Bytes of an unpacked file, in order."""

    consumed: int
    """Bytes of the file on disk used so far."""
    damaged: bool

    def read_into(self, room: memoryview) -> int:
        """Fill some of `room`; 0 at the end."""
        ...


class PlainStream:
    """A file as it is, from an offset on."""

    def __init__(self, file: BinaryIO, start: int) -> None:
        file.seek(start)
        self._file = file
        self.consumed = 0
        self.damaged = False

    def read_into(self, room: memoryview) -> int:
        got = self._file.readinto(room)  # type: ignore[attr-defined]  # BinaryIO leaves it out
        self.consumed += got
        return int(got)


class GzipStream:
    """What a gzip file unpacks to: all its members; where it is damaged, what came before."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._unpacker = zlib.decompressobj(UNPACKED_GZIP)
        self._packed = b""
        self._ended = False
        self.consumed = 0
        self.damaged = False

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
    """What can be unpacked before the damage: zlib itself throws away all of the failing call."""
    unpacked = bytearray()
    try:
        for k in range(len(packed)):
            if len(unpacked) >= most:
                break
            unpacked += unpacker.decompress(packed[k : k + 1], most - len(unpacked))
    except zlib.error:
        pass
    return bytes(unpacked)


class Window(Protocol):
    """A read-only view of a file's bytes from `base` on; `final` when it reaches the file's end."""

    view: Bytes
    base: int
    final: bool

    def slide(self, to: int) -> None:
        """Forget what stands before offset `to` and read on."""
        ...


class SlidingWindow:
    """A window over a stream. It reads little beyond `soft_end`, where a split should end."""

    def __init__(self, stream: Stream, base: int, soft_end: int) -> None:
        self._stream = stream
        self._soft_end = soft_end
        self._buffer: Bytes = RECYCLER.array((WINDOW_BYTES + SLACK,), np.uint8)
        self._filled = 0
        self.base = base
        self.final = False
        self.view = self._frozen()
        self.slide(base)

    @property
    def _room(self) -> int:
        return len(self._buffer) - SLACK

    def slide(self, to: int) -> None:
        to = min(to, self.base + self._filled)
        kept = self._buffer[to - self.base : self._filled]
        buffer = self._buffer
        if 2 * len(kept) > self._room:
            buffer = RECYCLER.array((2 * self._room + SLACK,), np.uint8)
        buffer[: len(kept)] = kept
        self._buffer, self._filled, self.base = buffer, len(kept), to
        self._read()

    def _read(self) -> None:
        end = self.base + self._filled
        wanted = self._soft_end - end if end < self._soft_end else LOOKAHEAD_BYTES
        limit = min(self._room, self._filled + wanted)
        raw = self._buffer.data
        while self._filled < limit and not self.final:
            got = self._stream.read_into(raw[self._filled : limit])
            self._filled += got
            self.final = got == 0
        self.view = self._frozen()

    def _frozen(self) -> Bytes:
        view = self._buffer[: self._filled]
        view.flags.writeable = False
        return view


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """The file, with the errors of opening and reading it told as a source's."""
    try:
        with Path(path).open("rb", buffering=0) as file:
            yield file
    except OSError as error:
        raise UnusableFile(f"cannot read '{path}': {error.strerror or error}") from error


def is_gzip(file: BinaryIO) -> bool:
    """Whether the file starts as gzip does."""
    file.seek(0)
    magic = file.read(len(GZIP_MAGIC))
    file.seek(0)
    return magic == GZIP_MAGIC
