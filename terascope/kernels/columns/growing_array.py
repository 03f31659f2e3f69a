"""An array that grows at its end.

In: values, some at a time. Out: all of them, as one array. Its memory is used again after `take`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class GrowingArray:
    """Values behind each other."""

    def __init__(self, dtype: Any) -> None:
        self._room: NDArray[Any] = np.empty(0, dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """Memory of the values."""
        return self._count * self._room.itemsize

    @property
    def values(self) -> NDArray[Any]:
        return self._room[: self._count]

    def add(self, values: NDArray[Any]) -> NDArray[Any]:
        """Append values; return their position."""
        end = self._count + len(values)
        if end > len(self._room):
            larger = np.empty(max(end, 3 * self._count // 2), self._room.dtype)
            larger[: self._count] = self.values
            self._room = larger
        place = self._room[self._count : end]
        place[:] = values
        self._count = end
        return place

    def take(self) -> NDArray[Any]:
        """All of them. The next go to the same place."""
        values, self._count = self.values, 0
        return values
