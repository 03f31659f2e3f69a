"""The value at a place in the order of some integers, without sorting all of them.

In: integers, which are moved. Out: one of them. Values are counted in 128 to 256 parts of equal
width between the smallest and the largest; then only those of the part with the place are looked
at, until they are few. The width shrinks to a 128th each time, so that there are at most 10 rounds,
whatever the values are.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from terascope.machine_code import inlined

FEW: Final = 24
"""So few values are sorted by insertion."""
PARTS: Final = 256


def room_for_parts() -> Any:
    """The counts that `selected` takes."""
    return np.zeros(PARTS, np.int64)


@inlined
def selected(values: Any, count: Any, place: Any, counts: Any) -> Any:
    """The value at `place`, from 0 on, in the order of the first `count` values."""
    while count > FEW:
        low = high = values[0]
        for k in range(count):
            low, high = min(low, values[k]), max(high, values[k])
        if low == high:
            return low
        span, least = np.uint64(high) - np.uint64(low), np.uint64(low)
        shift = np.uint64(0)
        while span >> shift >= np.uint64(PARTS):
            shift += np.uint64(1)
        counts[:] = 0
        for k in range(count):
            counts[(np.uint64(values[k]) - least) >> shift] += 1
        part = np.uint64(0)
        while place >= counts[part]:
            place -= counts[part]
            part += np.uint64(1)
        kept = np.uint64(0)
        for k in range(count):
            value = values[k]
            values[kept] = value
            kept += np.uint64((np.uint64(value) - least) >> shift == part)
        count = counts[part]
    for k in range(1, count):
        value, j = values[k], k
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
    return values[place]
