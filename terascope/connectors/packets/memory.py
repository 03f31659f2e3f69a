"""Memory that is used again: arrays whose pages the operating system has given already.

In: a shape. Out: an array with anything in it. When the last view of it is gone, Arrow's buffers
included, its memory is kept for the next array of that size.

Why: a batch has some ten megabytes. An allocator that returns them to the system between batches
makes every page a fault, which costs more than decoding what goes into it.
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

from terascope.connectors.packets.words import Bytes

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
