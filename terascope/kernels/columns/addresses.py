"""Functions of addresses, for all values of a dictionary at once.

In: addresses as Arrow holds them: the version and then the bytes (terascope.types). Out: a column
of the same length. IPv4 with constants is the common case; everything else is left to the
functions' own meaning, value by value.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.functions.subnets import Subnet

Words: TypeAlias = NDArray[np.uint32]

V4_BYTES = 5


def ipv4_words(addresses: pa.Array) -> tuple[NDArray[np.bool_], Words]:
    """The mask of IPv4 addresses, and their 32 bits."""
    _, ends, content = addresses.buffers()
    offsets = np.frombuffer(ends, np.int32)[
        addresses.offset : addresses.offset + len(addresses) + 1
    ]
    is_v4 = np.diff(offsets) == V4_BYTES
    if addresses.null_count:
        is_v4 &= addresses.is_valid().to_numpy(zero_copy_only=False)
    data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    starts = offsets[:-1][is_v4]
    words = np.zeros(len(starts), np.uint32)
    for place in range(1, V4_BYTES):
        words = words << np.uint32(8) | data[starts + place]
    return is_v4, words


def masked(addresses: pa.Array, mask: int) -> pa.Array:
    """IPv4 addresses with some bits only; NULL for others."""
    is_v4, words = ipv4_words(addresses)
    found = np.empty((len(words), V4_BYTES), np.uint8)
    found[:, 0] = 4
    found[:, 1:] = (
        (words & np.uint32(mask & 0xFFFFFFFF)).astype(">u4").view(np.uint8).reshape(-1, 4)
    )
    lengths = np.where(is_v4, V4_BYTES, 0)
    own = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    valid = pa.py_buffer(np.packbits(is_v4, bitorder="little"))
    buffers = [valid, pa.py_buffer(own), pa.py_buffer(found)]
    return pa.Array.from_buffers(pa.binary(), len(addresses), buffers)


def within(addresses: pa.Array, subnet: Subnet) -> pa.Array:
    """Whether each address lies in an IPv4 subnet."""
    is_v4, words = ipv4_words(addresses)
    first = int.from_bytes(subnet.first[1:], "big")
    mask = np.uint32(0xFFFFFFFF << (32 - subnet.length) & 0xFFFFFFFF)
    found = np.zeros(len(addresses), np.bool_)
    found[is_v4] = (words & mask) == np.uint32(first)
    missing = addresses.is_null().to_numpy(zero_copy_only=False) if addresses.null_count else None
    return pa.array(found, mask=missing)
