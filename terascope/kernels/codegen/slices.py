"""The slice each tuple lies in (paper 0, algorithm 1): the low level's time key.

In: a vector of times and the slices of a period. Out: a vector of edges. Times mostly move on a
little or not at all: the slice of the last tuple is tried first, and looked for only when time has
left it, however far (the loop that algorithm 1 leaves out). Slices are half-open.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from terascope.functions.overflow import Overflow
from terascope.functions.roles import SlicePart
from terascope.functions.slices import SliceVector, parse_slices
from terascope.kernels.codegen.statements import Statements
from terascope.kernels.codegen.terms import InputKind, Term, Unsupported, is_number
from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.plan.expr import Call, Col, Lit
from terascope.plan.show import show_expr
from terascope.types import INT_MAX, INT_MIN

Ints: TypeAlias = NDArray[np.int64]
Wanted: TypeAlias = Literal[0, 1, 2]

WANTED: Final[dict[str, Wanted]] = {"start": 0, "end": 1, "inside": 2}


def sliced(w: Statements, call: Call, guard: str | None) -> Term:
    """A vector of its own: the slice is the same for many tuples in a row."""
    time, text = call.args
    if not isinstance(time, Col) or not is_number(time.type) or not isinstance(text, Lit):
        raise Unsupported(f"{call.function.name} of anything but a column and a constant")
    return w.load(InputKind.SLICES, call)


def vector_of(call: Call) -> SliceVector:
    (_, text) = call.args
    assert isinstance(text, Lit)
    return parse_slices(str(text.value))


def slice_values(call: Call, times: NDArray[Any]) -> NDArray[Any]:
    """The value of the function for each time; undefined for NULLs."""
    vector, role = vector_of(call), call.function.role
    assert isinstance(role, SlicePart)
    edges = np.array([*vector.starts, vector.period], np.int64)
    gaps = np.zeros(len(vector.lengths), np.int64)
    gaps[list(vector.gaps)] = 1
    found = np.empty(len(times), np.int64)
    if len(times):
        if int(times.min()) < INT_MIN + vector.period or int(times.max()) > INT_MAX - vector.period:
            raise Overflow(show_expr(call))
        find_slices(times, edges, gaps, WANTED[role.part], found)
    return found != 0 if role.part == "inside" else found


@compiled_for(column(np.int64), column(np.int64), column(np.int64), INTEGER, output(np.int64))
def find_slices(times: Ints, edges: Ints, gaps: Ints, wanted: int, found: Ints) -> None:
    period = edges[-1]
    start, end, answer = np.int64(0), np.int64(0), np.int64(0)
    for i in range(len(times)):
        time = times[i]
        if time < start or time >= end:
            offset = time % period
            low, high = 0, len(gaps)
            while high - low > 1:
                middle = (low + high) // 2
                if edges[middle] <= offset:
                    low = middle
                else:
                    high = middle
            start = time - offset + edges[low]
            end = time - offset + edges[low + 1]
            if wanted == 0:
                answer = start
            elif wanted == 1:
                answer = end
            else:
                answer = 1 - gaps[low]
        found[i] = answer
