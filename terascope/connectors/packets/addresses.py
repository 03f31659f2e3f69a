"""Address columns: Arrow's variable-size binary, a version byte and the address in network order.

In: the places of IP headers. Out: the addresses one behind the other, and where each ends; a packet
without an IP header has none, which is NULL.
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


class AddressColumn:
    """One address column of a batch."""

    def __init__(self, in_four: int, in_six: int, rows: int) -> None:
        self._places = (in_four, in_six)
        self._ends: NDArray[np.int32] = RECYCLER.array((rows + 1,), np.int32)
        self._ends[0] = 0
        self._content: Bytes = RECYCLER.array((rows * LONGEST + SLACK,), np.uint8)

    def add(self, window: Bytes, network: Ints, layers: Bytes, first: int, last: int) -> None:
        """The addresses of rows first..last."""
        append_addresses(
            window, network, *self._places, layers, first, last, self._ends, self._content
        )

    def finish(self, count: int, valid: pa.Buffer | None) -> pa.Array:
        """The first `count` of them."""
        ends = self._ends[: count + 1]
        content = self._content[: int(ends[-1])]
        return pa.Array.from_buffers(
            pa.binary(), count, [valid, pa.py_buffer(ends), pa.py_buffer(content)]
        )
