"""Columns of bytes: addresses and payloads, copied out of the window before it slides.

In: where the parts of packets lie in the window. Out: Arrow's variable-size binary, values one
behind the other; a packet that has no such part is NULL. An address is a version byte and the
address in network order.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.connectors.packets.fields import IPV4, IPV6
from terascope.connectors.packets.memory import RECYCLER
from terascope.connectors.packets.words import SLACK, Bytes, Ints, load64, store64
from terascope.machine_code import compiled

LONGEST: Final = 17
FIRST_BYTES: Final = 1 << 20


@compiled
def append_addresses(
    buffer: Bytes,
    network: Ints,
    in_four: int,
    in_six: int,
    layers: Bytes,
    first: int,
    last: int,
    ends: NDArray[np.int32],
    content: Bytes,
) -> None:
    """Append the addresses at this offset in the headers, for rows first..last.

    Stores are whole words: excess bytes are overwritten by the next address.
    """
    to = int(ends[first])
    for i in range(first, last):
        at = network[i - first]
        if layers[i] & IPV4:
            store64(content, to, (load64(buffer, at + in_four) << 8) | 4)
            to += 5
        elif layers[i] & IPV6:
            store64(content, to, (load64(buffer, at + in_six) << 8) | 6)
            store64(content, to + 8, load64(buffer, at + in_six + 7))
            store64(content, to + 16, load64(buffer, at + in_six + 15))
            to += LONGEST
        ends[i + 1] = to


@compiled
def payload_bytes(lengths: Ints, layers: Bytes, layer: int, first: int, last: int) -> int:
    """The total length of the payloads of rows first..last."""
    total = 0
    for i in range(first, last):
        total += lengths[i] if layers[i] & layer else 0
    return total


@compiled
def append_payloads(
    buffer: Bytes,
    at: Ints,
    lengths: Ints,
    layers: Bytes,
    layer: int,
    first: int,
    last: int,
    ends: NDArray[np.int32],
    content: Bytes,
) -> None:
    """Concatenate the payloads of rows first..last.

    Copied by whole words: excess bytes are overwritten by the next payload.
    """
    to = int(ends[first])
    for i in range(first, last):
        if layers[i] & layer:
            start = at[i]
            for k in range(0, lengths[i], 32):
                one = load64(buffer, start + k)
                two = load64(buffer, start + k + 8)
                three = load64(buffer, start + k + 16)
                four = load64(buffer, start + k + 24)
                store64(content, to + k, one)
                store64(content, to + k + 8, two)
                store64(content, to + k + 16, three)
                store64(content, to + k + 24, four)
            to += lengths[i]
        ends[i + 1] = to


class BytesColumn:
    """One column of a batch in the making."""

    def __init__(self, rows: int, room: int) -> None:
        self._ends: NDArray[np.int32] = RECYCLER.array((rows + 1,), np.int32)
        self._ends[0] = 0
        self._content: Bytes = RECYCLER.array((room,), np.uint8)

    def finish(self, count: int, valid: pa.Buffer | None) -> pa.Array:
        """The first `count` values."""
        ends = self._ends[: count + 1]
        content = self._content[: int(ends[-1])]
        return pa.Array.from_buffers(
            pa.binary(), count, [valid, pa.py_buffer(ends), pa.py_buffer(content)]
        )


class AddressColumn(BytesColumn):
    """Addresses that stand so far into the IPv4 and the IPv6 header."""

    def __init__(self, in_four: int, in_six: int, rows: int) -> None:
        super().__init__(rows, rows * LONGEST + SLACK)
        self._places = (in_four, in_six)

    def add(self, window: Bytes, network: Ints, layers: Bytes, first: int, last: int) -> None:
        """The addresses of rows first..last."""
        append_addresses(
            window, network, *self._places, layers, first, last, self._ends, self._content
        )


class PayloadColumn(BytesColumn):
    """Payloads of the packets that have `layer`."""

    def __init__(self, layer: int, rows: int) -> None:
        super().__init__(rows, FIRST_BYTES)
        self.layer = layer
        self.bytes_held = 0

    def add(
        self, window: Bytes, at: Ints, lengths: Ints, layers: Bytes, first: int, last: int
    ) -> None:
        """Copy the payloads of rows first..last."""
        held = self.bytes_held
        self.bytes_held += payload_bytes(lengths, layers, self.layer, first, last)
        if self.bytes_held + SLACK > len(self._content):
            room = FIRST_BYTES
            while room < self.bytes_held + SLACK:  # few sizes, so that they are found again
                room *= 2
            grown: Bytes = RECYCLER.array((room,), np.uint8)
            grown[:held] = self._content[:held]
            self._content = grown
        append_payloads(
            window, at, lengths, layers, self.layer, first, last, self._ends, self._content
        )
