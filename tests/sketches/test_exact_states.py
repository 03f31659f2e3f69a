"""Exact states: what columns keep equals what zero, reduce, merge and finish give."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

from terascope.functions.aggregates.counting import CountDups, members
from terascope.functions.aggregates.folding import Maximum, Minimum, items
from terascope.functions.aggregates.in_order import First, Last, Median
from terascope.functions.aggregates.spread import PopulationVariance, SampleDeviation
from terascope.functions.aggregates.total import Sum
from terascope.sketches.base import StateKind, packed_states
from terascope.sketches.extremes import (
    extreme_value,
    first_kind,
    last_kind,
    max_kind,
    min_kind,
)
from terascope.sketches.float_moments import FLOAT_MOMENTS, FLOAT_SUM, moments_of
from terascope.sketches.moments import INTEGER_MOMENTS, small_moments
from terascope.sketches.values import (
    list_kind,
    numbers_of,
    ordered_kind,
    ordered_rows,
    set_kind,
    set_sizes,
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


# ---- moments -------------------------------------------------------------------------------------

HUGE = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7e308, 1.0]


def floats(case: str, count: int, rng: np.random.Generator) -> list[float]:
    if case == "plain":
        return [float(x) for x in rng.normal(1e4, 1e3, count)]
    if case == "zeros":
        return [float(x) for x in rng.integers(-1, 2, count)]
    if case == "huge":
        return [HUGE[k] for k in rng.integers(0, len(HUGE), count)]
    if case == "special":
        special = [np.nan, np.inf, -np.inf]
        rare = rng.random(count) < 0.01
        return [
            special[k] if r else 0.1 * k
            for k, r in zip(rng.integers(0, 3, count), rare, strict=True)
        ]
    bits = rng.integers(0, 2**64, count, np.uint64, endpoint=False)
    found = bits.view(np.float64)
    return [float(x) for x in np.where(np.isfinite(found), found, 1.5)]


FLOAT_CASES = ["plain", "zeros", "huge", "special", "any"]


@pytest.mark.parametrize("case", FLOAT_CASES)
def test_moments_of_floats(case: str) -> None:
    rng = np.random.default_rng(4)
    rows = [(x,) for x in floats(case, 2000, rng)]
    numbers = skewed(2000, rng)
    states = states_of(FLOAT_MOMENTS, (Type.FLOAT,), numbers, rows, GROUPS, rng)
    wanted = folded(SampleDeviation(), numbers, rows, GROUPS)
    assert [moments_of(s)[:4] for s in states] == [w[:4] for w in wanted]
    for aggregate in (SampleDeviation(), PopulationVariance()):
        found = [aggregate.finish(moments_of(s)) for s in states]
        assert repr(found) == repr([aggregate.finish(w) for w in wanted])


@pytest.mark.parametrize("case", FLOAT_CASES)
def test_sums_of_floats(case: str) -> None:
    rng = np.random.default_rng(5)
    rows = [(x,) for x in floats(case, 2000, rng)]
    numbers = skewed(2000, rng)
    states = states_of(FLOAT_SUM, (Type.FLOAT,), numbers, rows, GROUPS, rng)
    for state, wanted in zip(states, folded(Sum(), numbers, rows, GROUPS), strict=True):
        count, total, _, flags, _ = moments_of(state)
        assert (total, flags) == (wanted or (0, 0))
        assert (count > 0) == (wanted is not None)


INTEGER_CASES = {"lengths": (40, 1500), "signed": (-(2**31), 2**31), "all": (-(2**63), 2**63 - 1)}


@pytest.mark.parametrize("case", INTEGER_CASES)
def test_moments_of_integers(case: str) -> None:
    rng = np.random.default_rng(6)
    drawn = rng.integers(*INTEGER_CASES[case], 3000)
    drawn[::50] = INTEGER_CASES[case][0]
    rows = [(int(x),) for x in drawn]
    numbers = skewed(3000, rng)
    states = states_of(INTEGER_MOMENTS, (Type.INT,), numbers, rows, GROUPS, rng)
    wanted = folded(SampleDeviation(), numbers, rows, GROUPS)
    assert [moments_of(s) for s in states] == wanted
    narrow, count, total, squares = small_moments(packed_states(states))
    assert narrow.any() == (case != "all" or not wanted[-1][0])
    for k in np.flatnonzero(narrow):
        assert (count[k], total[k], np.uint64(squares[k])) == wanted[k][:3]


def test_a_state_merged_with_itself_many_times() -> None:
    state = FLOAT_MOMENTS.low()
    state.iterate(np.zeros(3, np.int64), [np.array([1.75, -(2.0**40), 3e-5])])
    before = moments_of(state.pack(np.zeros(1, np.int64))[0].as_py())
    for _ in range(40):
        state.merge(np.zeros(1, np.int64), state.pack(np.zeros(1, np.int64)))
    after = moments_of(state.pack(np.zeros(1, np.int64))[0].as_py())
    assert after[:3] == tuple(2**40 * n for n in before[:3])


# ---- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", [Type.INT, Type.FLOAT, Type.WIDE], ids=lambda t: t.value)
def test_lists_of_values(type_: Type) -> None:
    rng = np.random.default_rng(7)
    drawn = values(type_, 4000, rng)
    if type_ is Type.INT:
        drawn = [v >> int(shift) for v, shift in zip(drawn, rng.integers(0, 64, 4000), strict=True)]
    rows = [(v,) for v in drawn]
    numbers = skewed(4000, rng)
    states = states_of(list_kind(type_), (type_,), numbers, rows, GROUPS, rng)
    wanted = folded(Median(), numbers, rows, GROUPS)
    assert [sorted(numbers_of(s).tolist()) for s in states] == [sorted(items(w)) for w in wanted]


def test_lists_are_narrow() -> None:
    column = list_kind(Type.INT).low()
    column.iterate(np.zeros(1000, np.int64), [np.arange(10**12, 10**12 + 1000)])
    assert column.pack(np.zeros(1, np.int64)).nbytes < 2100


@pytest.mark.parametrize("type_", ANY_TYPE, ids=lambda t: t.value)
def test_sets_of_values(type_: Type) -> None:
    rng = np.random.default_rng(8)
    few = values(type_, 60, rng)
    if type_ is Type.FLOAT:
        few[:4] = [0.0, -0.0, float("nan"), -float("nan")]
    rows = [(few[k],) for k in rng.integers(0, 60, 5000)]
    rows += [(v,) for v in values(type_, 300, rng)]
    numbers = skewed(5300, rng)
    states = states_of(set_kind(type_), (type_,), numbers, rows, GROUPS, rng)
    dups = folded(CountDups(), numbers, rows, GROUPS)
    assert [set_sizes(s) for s in states] == [(n, len(members(seen))) for n, seen in dups]


def test_values_in_stream_order() -> None:
    rng = np.random.default_rng(9)
    count = 800
    texts, places = values(Type.STRING, count, rng), rng.permutation(count).tolist()
    interfaces = [f"if{k}" for k in rng.integers(0, 3, count)]
    clocks = rng.integers(0, 50, count).tolist()
    rows = list(zip(texts, range(count), clocks, interfaces, places, strict=True))
    numbers = skewed(count, rng)
    types = (Type.STRING, Type.INT, Type.ULLONG, Type.STRING, Type.ULLONG)
    states = states_of(ordered_kind(types[:2]), types, numbers, rows, GROUPS, rng)
    in_order = sorted(range(count), key=lambda i: rows[i][2:])
    wanted = [[rows[i][:2] for i in in_order if numbers[i] == g] for g in range(GROUPS)]
    assert [ordered_rows(state) for state in states] == wanted


# ---- all -----------------------------------------------------------------------------------------

PLACE = (Type.ULLONG, Type.STRING, Type.ULLONG)
CASES = [
    (first_kind(Type.STRING), (Type.STRING, *PLACE), extreme_value),
    (last_kind(Type.INT), (Type.INT, *PLACE), extreme_value),
    (min_kind(Type.STRING), (Type.STRING,), extreme_value),
    (INTEGER_MOMENTS, (Type.INT,), moments_of),
    (FLOAT_MOMENTS, (Type.FLOAT,), moments_of),
    (list_kind(Type.INT), (Type.INT,), numbers_of),
    (set_kind(Type.STRING), (Type.STRING,), set_sizes),
    (ordered_kind((Type.STRING,)), (Type.STRING, *PLACE), ordered_rows),
]


def some_states(kind: StateKind, types: tuple[Type, ...], count: int) -> list[bytes]:
    rng = np.random.default_rng(10)
    columns = [argument(t, values(t, count, rng)) for t in types]
    column = kind.low()
    column.iterate((np.arange(count) ** 2) % 7, columns)
    packed: list[bytes] = column.pack(np.arange(9)).to_pylist()
    return packed


def case_name(part: Any) -> str:
    return getattr(part, "__name__", None) or str(part)[:30]


@pytest.mark.parametrize(("kind", "types", "read"), CASES, ids=case_name)
def test_states_survive_bytes(kind: StateKind, types: tuple[Type, ...], read: Any) -> None:
    for state in some_states(kind, types, 500):
        column = kind.high()
        column.merge(np.array([3]), packed_states([state]))
        (again,) = column.pack(np.array([3])).to_pylist()
        assert repr(read(again)) == repr(read(state))
        column.drop(np.array([3]))
        assert column.pack(np.array([3])).equals(kind.high().pack(np.array([0])))


@pytest.mark.parametrize(("kind", "types", "read"), CASES, ids=case_name)
def test_damaged_states_are_refused(kind: StateKind, types: tuple[Type, ...], read: Any) -> None:
    """Cut short, of another family or version: a sentence. Other damage: that, or a wrong state."""
    states = some_states(kind, types, 40)
    whole = max(states, key=len)
    bad = [b"", b"T", b"TQ\1\0" + whole[4:], whole[:2] + b"\7" + whole[3:], whole[:3] + b"\xff"]
    bad += [whole[:cut] for cut in range(4, len(whole), 3)]
    for state in bad:
        with pytest.raises(ValueError, match=r"bytes are|state"):
            kind.high().merge(np.array([0]), packed_states([state]))
        with pytest.raises(ValueError, match=r"bytes are|state"):
            read(state)
    rng = np.random.default_rng(11)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(4, len(damaged))] = int(rng.integers(0, 256))
        for use in (lambda s: kind.high().merge(np.array([0]), packed_states([s])), read):
            with contextlib.suppress(ValueError):
                use(bytes(damaged))


@pytest.mark.parametrize(
    ("kind", "types", "most"),
    [
        (first_kind(Type.INT), (Type.INT, *PLACE), 40),
        (INTEGER_MOMENTS, (Type.INT,), 60),
        (FLOAT_MOMENTS, (Type.FLOAT,), 230),
        (list_kind(Type.INT), (Type.INT,), 90),
        (set_kind(Type.INT), (Type.INT,), 120),
    ],
    ids=str,
)
def test_small_groups_take_little_memory(
    kind: StateKind, types: tuple[Type, ...], most: int
) -> None:
    groups = 200_000
    rng = np.random.default_rng(12)
    numbers = np.concatenate([np.arange(groups), rng.integers(0, groups, groups)])
    rng.shuffle(numbers)
    known = {
        Type.INT: rng.integers(0, 1500, 2 * groups),
        Type.FLOAT: rng.normal(0, 1, 2 * groups),
        Type.ULLONG: np.arange(2 * groups),
        Type.STRING: argument(Type.STRING, ["eth0"] * (2 * groups)),
    }
    column = kind.low()
    column.iterate(numbers, [known[t] for t in types])
    assert column.memory_bytes / groups < most
    before = column.memory_bytes
    column.drop(np.arange(groups))
    column.iterate(numbers, [known[t] for t in types])
    assert column.memory_bytes <= 1.5 * before, "dropped states leave their memory to others"
