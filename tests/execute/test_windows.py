"""Windows put together from slices, against what they are by definition."""

from __future__ import annotations

import math
import struct
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.execute.rows.collect import ALWAYS, Sequences
from terascope.functions.aggregates.folding import (
    AND_INT,
    MAX_FLOAT,
    MAX_INT,
    MIN_FLOAT,
    MIN_INT,
    OR_INT,
    XOR_INT,
)
from terascope.functions.base import ValueMistake
from terascope.functions.slots import COUNT, COUNT_OF, RANGE, SUM_INT, SlotKind
from terascope.kernels.merge.groups import Block, GroupFields
from terascope.kernels.tables.slots import Shape
from terascope.plan.rel import Field
from terascope.sharing.slices import Periodic, paired
from terascope.types import INT_MAX, INT_MIN, Type

KINDS: tuple[SlotKind, ...] = (
    COUNT, COUNT_OF, SUM_INT, MIN_INT, MAX_INT, MIN_FLOAT, MAX_FLOAT,
    OR_INT, AND_INT, XOR_INT, RANGE,
)  # fmt: skip
SHAPES = (Shape(1, KINDS[:6]), Shape(3, KINDS[6:]), Shape(0, (COUNT,)))
FLOATS = [0.0, 0.5, -2.25, 1024.0, math.inf, math.nan]
"""Whose sums are exact, but for what becomes NaN."""

Number: TypeAlias = int | float
Slice: TypeAlias = tuple[int, int, int, list[Number | None]]
"""Group, start, end, and the slots; None has seen nothing."""


def fields_of(shape: Shape) -> GroupFields:
    keys = [Field("slice", Type.LLONG), *(Field(f"k{i}", Type.LLONG) for i in range(shape.keys))]
    slots = tuple(
        Field(f"s{j}", Type.FLOAT if kind.is_float else Type.LLONG)
        for j, kind in enumerate(shape.slots)
    )
    return GroupFields(tuple(keys), slots, shape, epoch=0)


def word(kind: SlotKind, value: Number) -> int:
    if kind.is_float:
        return int(struct.unpack("q", struct.pack("d", value))[0])
    return int(value)


def row(shape: Shape, group: int, values: list[Number | None]) -> list[int]:
    state, words = 1, [group + 7 * k for k in range(shape.words)]
    slots = []
    for j, (kind, value) in enumerate(zip(shape.slots, values, strict=True)):
        state |= 0 if value is None else 1 << (j + 1)
        slots.append(0 if value is None else word(kind, value))
    return [state, *words, *slots]


def number(kind: SlotKind, held: int) -> Number:
    return float(struct.unpack("d", struct.pack("q", held))[0]) if kind.is_float else held


def merged(kind: SlotKind, values: list[Number]) -> Number:
    """Of at least one value."""
    reals = [float(v) for v in values]
    wholes = [int(v) for v in values if not kind.is_float]
    match kind.name:
        case "count" | "count_of" | "sum_int":
            return sum(wholes)
        case "range":
            return wholes[0]
        case "min_int":
            return min(wholes)
        case "max_int":
            return max(wholes)
        case "min_float":
            return min((v for v in reals if not math.isnan(v)), default=math.nan)
        case "max_float":
            return math.nan if any(map(math.isnan, reals)) else max(reals)
        case "or_int" | "and_int" | "xor_int":
            found = wholes[0]
            for v in wholes[1:]:
                found = {"or_int": found | v, "and_int": found & v, "xor_int": found ^ v}[kind.name]
            return found
    raise AssertionError(kind)


def by_definition(
    shape: Shape, slices: list[Slice], window: Periodic
) -> dict[tuple[int, int], list[Number | None]]:
    """(end, group) -> slots."""
    inside: dict[tuple[int, int], list[list[Number | None]]] = {}
    for group, start, end, values in slices:
        for at in range(
            -(-end // window.slide) * window.slide, start + window.range + 1, window.slide
        ):
            inside.setdefault((at, group), []).append(values)
    found = {}
    for key, some in inside.items():
        columns = [[v for v in column if v is not None] for column in zip(*some, strict=True)]
        found[key] = [
            merged(kind, column) if column else None
            for kind, column in zip(shape.slots, columns, strict=True)
        ]
    return found


def by_kernel(
    shape: Shape,
    slices: list[Slice],
    window: Periodic,
    since: int = -ALWAYS,
    until: int = ALWAYS,
) -> dict[tuple[int, int], list[Number | None]]:
    vector = paired(window)
    blocks = []
    for start in sorted({s for _, s, _, _ in slices}):
        some = [row(shape, group, values) for group, s, _, values in slices if s == start]
        blocks.append(Block.of(start, np.array(some, np.int64).reshape(len(some), shape.stride)))
    found: dict[tuple[int, int], list[Number | None]] = {}
    for rows, wends in Sequences(blocks, fields_of(shape), vector.end).of(window, since, until):
        for held, wend in zip(rows.tolist(), wends.tolist(), strict=True):
            group = held[1] if shape.words else 0
            assert held[1 : shape.first_slot] == [group + 7 * k for k in range(shape.words)]
            key = wend, group
            assert key not in found, "every window of a group stands once"
            found[key] = [
                number(kind, held[shape.slot(j)]) if held[0] >> (j + 1) & 1 else None
                for j, kind in enumerate(shape.slots)
            ]
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[Shape, list[Slice], Periodic]:
    shape = draw(st.sampled_from(SHAPES))
    window = Periodic(draw(st.integers(1, 40)), draw(st.integers(1, 12)))
    vector = paired(window)
    edges = pairwise([*vector.starts, vector.period])
    kept = [edge for i, edge in enumerate(edges) if i not in vector.gaps]
    ints = st.integers(-(2**40), 2**40)
    whole = {kind: st.sampled_from(FLOATS) if kind.is_float else ints for kind in KINDS}
    whole[RANGE] = st.just(0)
    whole[COUNT] = whole[COUNT_OF] = st.integers(0, 2**30)
    values = st.tuples(
        *(whole[k] if k == COUNT else st.none() | whole[k] for k in shape.slots)
    ).map(list)
    groups = st.integers(0, 2 if shape.keys else 0)
    places = st.tuples(groups, st.integers(-2, 12), st.sampled_from(kept))
    drawn = draw(st.lists(places, max_size=30, unique=True))
    slices = [
        (group, turn * vector.period + a, turn * vector.period + b, draw(values))
        for group, turn, (a, b) in drawn
    ]
    return shape, slices, window


@settings(deadline=None, max_examples=80)
@given(cases())
def test_windows_are_what_they_are_by_definition(case: tuple[Shape, list[Slice], Periodic]) -> None:
    found, expected = by_kernel(*case), by_definition(*case)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert repr(found[key]) == repr(values), key  # as text: NaN is NaN


@settings(deadline=None, max_examples=80)
@given(cases(), st.integers(-60, 200), st.integers(-60, 200))
def test_some_of_the_windows(
    case: tuple[Shape, list[Slice], Periodic], since: int, until: int
) -> None:
    found, everything = by_kernel(*case, since, until), by_definition(*case)
    assert found.keys() == {key for key in everything if since <= key[0] < until}
    for key, values in found.items():
        assert repr(values) == repr(everything[key]), key


@pytest.mark.parametrize(("extreme", "back"), [(INT_MAX, -1), (INT_MIN, 1)])
def test_only_a_window_whose_sum_is_too_large_is_a_mistake(extreme: int, back: int) -> None:
    shape, window = Shape(0, (COUNT, SUM_INT)), Periodic(20, 10)

    def windows(*sums: int) -> dict[tuple[int, int], list[Number | None]]:
        slices: list[Slice] = [(0, 10 * i, 10 * i + 10, [1, v]) for i, v in enumerate(sums)]
        return by_kernel(shape, slices, window)

    assert windows(extreme, back, extreme, back)[20, 0] == [2, extreme + back]
    with pytest.raises(ValueMistake, match="integer overflow in SUM"):
        windows(back, 0, extreme, -back)
