"""Vectors that are looked up: membership in a long list of constants, and the slice of a time.

In: a vector of numbers, and `Members` or the slices of a period. Out: a vector of flags or edges. A
list is data, not code: a bit for each number where they lie close together, a hash table otherwise;
a value is looked up once. NaN equals itself, and -0.0 is 0.0. The slice of a tuple is the low
level's time key (paper 0, algorithm 1). Times mostly move on a little or not at all: the slice of
the last tuple is tried first, and looked for only when time has left it, however far (the loop that
algorithm 1 leaves out). Slices are half-open.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import numpy as np

from terascope.functions.members import Members
from terascope.functions.overflow import Overflow
from terascope.functions.roles import SlicePart
from terascope.functions.slices import parse_slices
from terascope.hashing import multiplied
from terascope.kernels.codegen.statements import InputKind, Statements, Term, Unsupported, is_number
from terascope.kernels.columns.arrays import Bytes, Flags, Ints, Values, words_of
from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.plan.expr import Call, Col, Lit
from terascope.plan.show import show_expr
from terascope.types import INT_MAX, INT_MIN

WIDEST: Final = 1 << 22
"""Numbers within a range of this size have a flag each."""
FULLNESS: Final = 4
"""The least places of a hash table for each number."""


def among(w: Statements, call: Call, guard: str | None) -> Term:
    """A vector of its own. The operand is computed here, too, for the sake of its overflows."""
    operand, listed = call.args
    if not isinstance(listed, Lit) or not isinstance(listed.value, Members):
        raise Unsupported("IN a list that is no constant")
    w.term(operand, guard)
    return w.load(InputKind.MEMBERS, call)


def member_vector(members: Members, values: Values, valid: Values) -> tuple[Flags, Bytes]:
    """Whether each value is in the list, and where that is known."""
    words = words_of(values)
    found = np.zeros(len(words), np.bool_)
    search_of(members, values.dtype.kind == "f")(words, found)
    known = np.asarray(valid) != 0
    if members.has_null:
        known = known & found
    return found, known.view(np.uint8)


@lru_cache(maxsize=64)
def search_of(members: Members, floats: bool) -> Callable[[Ints, Flags], None]:
    """The function that looks words up: each has a flag where the numbers lie close together, or
    is looked up by its hash; one that is taken there goes to the next place.
    """
    words = words_of(np.array(members.values, np.float64 if floats else np.int64))
    low, high = (int(words.min()), int(words.max())) if len(words) else (0, WIDEST)
    if high - low < WIDEST:
        flags = np.zeros(high - low + 1, np.bool_)
        flags[words - low] = True
        return lambda sought, found: find_flags(sought, low, flags, found)
    bits = max(4, int(FULLNESS * len(words) - 1).bit_length())
    held, taken = np.zeros(1 << bits, np.int64), np.zeros(1 << bits, np.bool_)
    fill_hashes(words, bits, held, taken)
    return lambda sought, found: find_hashes(sought, bits, held, taken, found)


@compiled_for(column(np.int64), INTEGER, column(np.bool_), output(np.bool_))
def find_flags(words: Ints, low: int, flags: Flags, found: Flags) -> None:
    last = len(flags)
    for i in range(len(words)):
        place = np.uint64(words[i]) - np.uint64(low)  # below the smallest it is very large
        found[i] = place < np.uint64(last) and flags[place]


@compiled_for(column(np.int64), INTEGER, output(np.int64), output(np.bool_))
def fill_hashes(words: Ints, bits: int, held: Ints, taken: Flags) -> None:
    mask = np.int64(len(held) - 1)
    shift = np.uint64(64 - bits)
    for i in range(len(words)):
        place = np.int64(multiplied(words[i], shift))
        while taken[place] and held[place] != words[i]:
            place = (place + 1) & mask
        taken[place] = True
        held[place] = words[i]


@compiled_for(column(np.int64), INTEGER, column(np.int64), column(np.bool_), output(np.bool_))
def find_hashes(words: Ints, bits: int, held: Ints, taken: Flags, found: Flags) -> None:
    mask = np.int64(len(held) - 1)
    shift = np.uint64(64 - bits)
    for i in range(len(words)):
        place = np.int64(multiplied(words[i], shift))
        while taken[place] and held[place] != words[i]:
            place = (place + 1) & mask
        found[i] = taken[place]


Wanted: TypeAlias = Literal[0, 1, 2]

WANTED: Final[dict[str, Wanted]] = {"start": 0, "end": 1, "inside": 2}


def sliced(w: Statements, call: Call, guard: str | None) -> Term:
    """A vector of its own: the slice is the same for many tuples in a row."""
    time, text = call.args
    if not isinstance(time, Col) or not is_number(time.type) or not isinstance(text, Lit):
        raise Unsupported(f"{call.function.name} of anything but a column and a constant")
    return w.load(InputKind.SLICES, call)


def slice_values(call: Call, times: Values) -> Values:
    """The value of the function for each time; undefined for NULLs."""
    (_, text), role = call.args, call.function.role
    assert isinstance(text, Lit)
    assert isinstance(role, SlicePart)
    vector = parse_slices(str(text.value))
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
