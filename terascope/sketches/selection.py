"""The value at a place in the order of some integers, without sorting all of them.

In: integers, of which some are moved. Out: one of them. Quickselect, with the median of three as
its pivot; after more rounds than a good choice of pivots needs, the rest is sorted.
"""

from __future__ import annotations

from typing import Any, Final

from terascope.machine_code import inlined

FEW: Final = 16
"""So few values are sorted by insertion."""
ROUNDS: Final = 40
"""More rounds than 2^25 values need with good pivots."""


@inlined
def selected(values: Any, count: Any, place: Any) -> Any:
    """The value at `place`, from 0 on, in the order of the first `count` values."""
    low, high = 0, count - 1
    rounds = 0
    while high - low > FEW:
        if rounds == ROUNDS:
            values[low : high + 1].sort()
            return values[place]
        rounds += 1
        first, middle, last = values[low], values[(low + high) >> 1], values[high]
        pivot = max(min(first, middle), min(max(first, middle), last))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            return pivot
    for k in range(low + 1, high + 1):
        value, j = values[k], k
        while j > low and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
    return values[place]
