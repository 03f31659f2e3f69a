"""Values of whole columns of packed states.

In: a column of packed states, with NULLs among them, and a kernel that computes the values of most
of them. Out: the column of values.

A kernel marks each state: `FOUND` with a value, `NOTHING` without one. States that it leaves marked
as `REST`, because they are damaged or of a rare form, are then read one by one, by the function
that reads any state. So a damaged state raises the error of that function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.sketches.base import bytes_of
from terascope.sketches.packed_form import Data, Offsets

NOTHING: Final = 0
FOUND: Final = 1
REST: Final = 2

Marks = NDArray[np.uint8]


def opened(packed: pa.Array) -> tuple[Offsets, Data, Marks]:
    """Offsets, bytes and marks of a column: `NOTHING` where it is NULL, `REST` elsewhere."""
    column = packed.cast(pa.large_binary())
    marks: Marks = np.full(len(column), REST, np.uint8)
    if column.null_count:
        marks[column.is_null().to_numpy(zero_copy_only=False)] = NOTHING
    return *bytes_of(column), marks


def longest(offsets: Offsets) -> int:
    """The number of bytes of the longest state."""
    return int(np.diff(offsets).max(initial=0))


def closed(
    packed: pa.Array, values: NDArray[Any], marks: Marks, read: Callable[[bytes], Any]
) -> pa.Array:
    """The column of values, after the rest of the states were read one by one."""
    rest = np.flatnonzero(marks == REST)
    if len(rest):
        for place, state in zip(
            rest.tolist(), packed.take(pa.array(rest)).to_pylist(), strict=True
        ):
            found = read(state)
            marks[place] = NOTHING if found is None else FOUND
            if found is not None:
                values[place] = found
    absent = marks == NOTHING
    return pa.array(values, mask=absent if absent.any() else None)
