"""Exact states: what columns keep equals what zero, reduce, merge and finish give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from terascope.functions.aggregates.folding import Maximum, Minimum
from terascope.functions.aggregates.in_order import First, Last
from terascope.sketches.extremes import (
    extreme_value,
    first_kind,
    last_kind,
    max_kind,
    min_kind,
)
from terascope.types import Type
from tests.sketches.state_laws import argument, folded, states_of

GROUPS = 60
TEXTS = ["", "a", "a\0", "ab", "abcdefgh", "abcdefghi", "abcdefgh\0", "é", "zz" * 20, "\U0001f600"]


def values(type_: Type, count: int, rng: np.random.Generator) -> list[Any]:
    if type_ is Type.FLOAT:
        return [float(x) for x in rng.normal(0, 1e3, count)]
    if type_ is Type.BOOL:
        return [bool(x) for x in rng.integers(0, 2, count)]
    if type_ is Type.STRING:
        return [TEXTS[k] for k in rng.integers(0, len(TEXTS), count)]
    if type_.is_address:
        bytes_4 = [b"\4" + rng.bytes(4) for _ in range(count)]
        return [b"\6" + rng.bytes(16) if k % 3 == 0 else b for k, b in enumerate(bytes_4)]
    if type_ is Type.BINARY:
        return [rng.bytes(int(rng.integers(0, 12))) for _ in range(count)]
    return [int(x) for x in rng.integers(-(2**63), 2**63 - 1, count)]


def skewed(count: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Numbers of groups: a few have most tuples, some have none."""
    return ((GROUPS - 1) * rng.random(count) ** 3).astype(np.int64)


# ---- FIRST, LAST, MIN, MAX -----------------------------------------------------------------------

ANY_TYPE = [Type.INT, Type.FLOAT, Type.BOOL, Type.STRING, Type.IP, Type.BINARY, Type.WIDE]


@pytest.mark.parametrize("type_", ANY_TYPE, ids=lambda t: t.value)
@pytest.mark.parametrize("last", [False, True])
def test_first_and_last(type_: Type, last: bool) -> None:
    rng = np.random.default_rng(1)
    count = 1500
    interfaces = [f"interface-{k}" for k in rng.integers(0, 12, count)]
    clocks = rng.integers(0, 8, count).tolist()
    rows = list(zip(values(type_, count, rng), clocks, interfaces, range(count), strict=True))
    numbers = skewed(count, rng)
    kind = (last_kind if last else first_kind)(type_)
    types = (type_, Type.ULLONG, Type.STRING, Type.ULLONG)
    states = states_of(kind, types, numbers, rows, GROUPS, rng)
    aggregate = Last() if last else First()
    wanted = folded(
        aggregate, numbers, rows, GROUPS, key=lambda row: (row[1], row[2].encode(), row[3])
    )
    assert [extreme_value(state) for state in states] == wanted
    assert None in wanted


def test_interfaces_may_be_numbers_and_clocks_floats() -> None:
    rng = np.random.default_rng(2)
    clocks = [float(x) for x in rng.integers(-2, 2, 500)]
    rows = list(zip(range(500), clocks, rng.integers(-3, 3, 500).tolist(), range(500), strict=True))
    numbers = skewed(500, rng)
    types = (Type.INT, Type.FLOAT, Type.INT, Type.ULLONG)
    states = states_of(first_kind(Type.INT), types, numbers, rows, GROUPS, rng)
    wanted = folded(First(), numbers, rows, GROUPS, key=lambda row: row[1:])
    assert [extreme_value(state) for state in states] == wanted


@pytest.mark.parametrize("type_", [Type.STRING, Type.IP, Type.BINARY], ids=lambda t: t.value)
@pytest.mark.parametrize("largest", [False, True])
def test_min_and_max_of_bytes(type_: Type, largest: bool) -> None:
    rng = np.random.default_rng(3)
    rows = [(value,) for value in values(type_, 1500, rng)]
    numbers = skewed(1500, rng)
    kind = (max_kind if largest else min_kind)(type_)
    states = states_of(kind, (type_,), numbers, rows, GROUPS, rng)
    wanted = folded(Maximum() if largest else Minimum(), numbers, rows, GROUPS)
    assert [extreme_value(state) for state in states] == wanted


def test_dropped_states_begin_anew() -> None:
    column = min_kind(Type.STRING).low()
    both = np.array([0, 1])
    column.iterate(both, [argument(Type.STRING, ["a", "b"])])
    column.drop(np.array([0]))
    column.iterate(np.array([0]), [argument(Type.STRING, ["c"])])
    assert [extreme_value(s) for s in column.pack(both).to_pylist()] == ["c", "b"]
    column.clear()
    assert [extreme_value(s) for s in column.pack(both).to_pylist()] == [None, None]
