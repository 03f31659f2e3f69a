"""The stretch of an unpacked capture file that is in memory.

In: a stream of bytes. Out: a `SlidingWindow`: a read-only byte array that slides forward over the
file, so that memory is bounded by the window and the longest record.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from terascope.connectors.file_bytes import LOOKAHEAD_BYTES, ByteStream
from terascope.connectors.packets.memory import RECYCLER
from terascope.connectors.packets.words import SLACK, Bytes

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
        self.view = self._frozen()
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
        self.view = self._frozen()

    def _frozen(self) -> Bytes:
        view = self._buffer[: self._filled]
        view.flags.writeable = False
        return view
