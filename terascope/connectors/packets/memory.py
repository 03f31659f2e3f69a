"""Memory of the decoder: arrays that are used again, and the stretch of a file that is at hand.

`Recycler` gives arrays with anything in them. When the last view of one is gone, Arrow's buffers
included, its memory is kept for the next array of that size. Why: a batch has some ten megabytes.
An allocator that returns them to the system between batches makes every page a fault, which costs
more than decoding what goes into it.

`SlidingWindow` is a read-only byte array that slides forward over an unpacked capture file, so that
memory is bounded by the window and the longest record.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import defaultdict
from math import prod
from threading import RLock
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from terascope.connectors.file_bytes import LOOKAHEAD_BYTES, ByteStream
from terascope.connectors.packets.words import SLACK, Bytes

Scalar = TypeVar("Scalar", bound=np.generic)

MOST_KEPT: Final = 64 << 20
"""Bytes that are kept at most; more go back to the system."""


class Recycler:
    """Blocks of memory that are not in use, by their size."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = RLock()  # memory can come back at any moment, within `array` too
        self._kept: defaultdict[int, list[Bytes]] = defaultdict(list)
        self.bytes_kept = 0

    def array(self, shape: tuple[int, ...], dtype: type[Scalar]) -> NDArray[Scalar]:
        """An array that is not initialised."""
        size = prod(shape) * np.dtype(dtype).itemsize
        if size == 0:
            return np.empty(shape, dtype)
        with self._lock:
            kept = self._kept[size]
            memory = kept.pop() if kept else None
            self.bytes_kept -= 0 if memory is None else size
        if memory is None:
            memory = np.empty(size, np.uint8)
        # All views hold on to this object, as numpy arrays of numpy arrays would not: they skip to
        # the array that owns the memory.
        lent = (ctypes.c_uint8 * size).from_buffer(memory.data)
        weakref.finalize(lent, self._take_back, memory).atexit = False
        found: NDArray[Scalar] = np.frombuffer(memoryview(lent), dtype).reshape(shape)
        return found

    def _take_back(self, memory: Bytes) -> None:
        with self._lock:
            if self.bytes_kept + len(memory) <= self._most:
                self._kept[len(memory)].append(memory)
                self.bytes_kept += len(memory)


RECYCLER: Final = Recycler()
"""The recycler of this process."""


WINDOW_BYTES: Final = 1 << 21
"""Two megabytes: enough packets for the calls into compiled code not to matter, and little enough
for a cache to hold. Reading into it is as fast as mapping the file, which was measured, and a file
that shrinks while it is read ends early instead of killing the process.
"""


class SlidingWindow:
    """The bytes `view` of a stream, of which the first is at offset `base` of the file.

    It reads little beyond `soft_end`, where a split should end. `final` says that the window
    reaches the end of the file; of a file that may grow (`open_ended`) it never does.
    """

    def __init__(
        self, stream: ByteStream, base: int, soft_end: int, open_ended: bool = False
    ) -> None:
        self._stream = stream
        self._soft_end = soft_end
        self._open_ended = open_ended
        self._buffer: Bytes = RECYCLER.array((WINDOW_BYTES + SLACK,), np.uint8)
        self._filled = 0
        self.base = base
        self.is_dry = False
        """The stream has no more bytes at the moment."""
        self.slide(base)

    @property
    def final(self) -> bool:
        return self.is_dry and not self._open_ended

    @property
    def _room(self) -> int:
        return len(self._buffer) - SLACK

    def slide(self, to: int) -> None:
        """Forget the bytes before offset `to` and read on."""
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
        while self._filled < limit and not self.is_dry:
            got = self._stream.read_into(raw[self._filled : limit])
            self._filled += got
            self.is_dry = got == 0
        self.view: Bytes = self._buffer[: self._filled]
        self.view.flags.writeable = False
