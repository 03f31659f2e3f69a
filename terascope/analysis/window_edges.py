"""Windows and time: which windows are closed when time has moved on, and which tuples a window is
made of.

In: the kind of window. Out: bounds on `wstart` and `wend` from bounds on time, and back.
"""

from __future__ import annotations

from typing import assert_never

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
            return slice_end(spec, last) if edge == WEND else slice_start(spec, last)
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
            return slice_start(spec, value - 1)
        case _:
            assert_never(spec)


def slice_start(spec: Slices, time: int) -> int:
    """Where the slice that contains a time begins; before time 0 too."""
    return slice_around(spec, time)[0]


def slice_end(spec: Slices, time: int) -> int:
    """Where it ends."""
    return slice_around(spec, time)[1]


def slice_around(spec: Slices, time: int) -> tuple[int, int]:
    start = time // sum(spec.lengths) * sum(spec.lengths)
    for length in spec.lengths:
        if time < start + length:
            return start, start + length
        start += length
    raise AssertionError("a period is made of its slices")
