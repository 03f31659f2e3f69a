"""Payload columns: bytes of packets copied out of the window before it slides.

In: where payloads lie in the window, -1 where a packet has none. Out: an Arrow binary array.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from terascope.connectors.packets.bits import validity_by_sign
from terascope.connectors.packets.compiled import Bytes, Ints, compiled


@compiled
def gather(buffer: Bytes, at: Ints, lengths: Ints, out: Bytes) -> None:
    """Lay the stretches of `buffer` one after the other into `out`; a length of 0 or less is
    nothing.
    """
    to = 0
    for i in range(len(at)):
        if lengths[i] > 0:
            out[to : to + lengths[i]] = buffer[at[i] : at[i] + lengths[i]]
            to += lengths[i]


class PayloadColumn:
    """One payload column of a batch that several windows contribute to."""

    def __init__(self) -> None:
        self._lengths: list[Ints] = []
        self._pieces: list[Bytes] = []
        self.bytes_held = 0

    def add(self, window: Bytes, at: Ints, lengths: Ints) -> None:
        """Copy the payloads of some packets; length -1 is NULL."""
        piece = np.empty(int(np.maximum(lengths, 0).sum()), np.uint8)
        gather(window, at, lengths, piece)
        self._lengths.append(lengths.copy())
        self._pieces.append(piece)
        self.bytes_held += len(piece)

    def finish(self) -> pa.Array:
        """All of it as a binary array."""
        lengths = np.concatenate(self._lengths)
        ends = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(np.maximum(lengths, 0), out=ends[1:])
        content = np.concatenate(self._pieces)
        return pa.Array.from_buffers(
            pa.binary(),
            len(lengths),
            [validity_by_sign(lengths), pa.py_buffer(ends), pa.py_buffer(content)],
        )
