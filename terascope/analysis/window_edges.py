"""Windows and time: which windows are closed when time has moved on, and which tuples a window is
made of.

In: the kind of window. Out: bounds on `wstart` and `wend` from bounds on time, and back.
"""

from __future__ import annotations

from typing import assert_never

from terascope.functions.slices import SliceVector
from terascope.plan.rel import WEND, WSTART, Slices, Sliding, WindowSpec


def open_from(spec: WindowSpec, edge: str, first_open_end: int) -> int:
    """When all windows that end before `first_open_end` are complete: the value of `edge` (wstart
    or wend) below which every window is. It is that of the first window that is open, and moves
    when a window closes.
    """
    match spec:
        case Sliding(range_, slide):
            end = first_open_end + -first_open_end % slide
            return end if edge == WEND else end - range_
        case Slices():
            last = first_open_end - 1
            vector = SliceVector(spec.lengths)
            return vector.end(last) if edge == WEND else vector.start(last)
        case _:
            assert_never(spec)


def oldest_start(spec: WindowSpec, edge: str, value: int) -> int:
    """The smallest start of the windows whose `edge` (wstart or wend) is at least `value`: nothing
    before it is inside one.
    """
    if edge == WSTART:
        return value
    match spec:
        case Sliding(range_):
            return value - range_
        case Slices():
            return SliceVector(spec.lengths).start(value - 1)
        case _:
            assert_never(spec)
