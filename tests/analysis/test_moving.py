"""Which value is earlier, and where an expression reaches one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terascope.analysis.moving import (
    ALL,
    earlier,
    earliest,
    moved,
    oldest_start,
    open_from,
    reaches,
)
from terascope.functions.base import Trend
from terascope.plan.build import call
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Cast, Col, Expr, Lit
from terascope.plan.rel import WEND, WSTART, Slices, Sliding, WindowSpec
from terascope.reference.window import windows_around
from terascope.types import INT_MAX, Type

UP, DOWN = Trend.INCREASING, Trend.DECREASING
C, R = Col("c", Type.INT), Col("r", Type.FLOAT)


def whole(value: int) -> Lit:
    return Lit(value, Type.INT)


def real(value: float) -> Lit:
    return Lit(value, Type.FLOAT)


RISING: list[Expr] = [
    C,
    call("div", C, whole(7)),
    call("+", call("div", call("*", C, whole(3)), whole(10)), whole(-4)),
    call("&", C, whole(-16)),
    call("/", C, real(2.5)),
    call("*", C, whole(1 << 40)),
]


def test_none_is_before_and_all_after_every_value() -> None:
    for trend in (UP, DOWN):
        assert earlier(None, -5, trend)
        assert earlier(-5, ALL, trend)
        assert earlier(None, ALL, trend)
        assert not earlier(ALL, 3, trend)
        assert not earlier(3, None, trend)
        assert not earlier(ALL, ALL, trend)
        assert not earlier(None, None, trend)
    assert earlier(1, 2, UP)
    assert earlier(2, 1, DOWN)
    assert not earlier(2, 2, UP)


def test_the_earliest_goes_with_the_trend() -> None:
    assert earliest((3, 1, ALL), UP) == 1
    assert earliest((3, 1, ALL), DOWN) == 3
    assert earliest((3, None), UP) is None
    assert earliest((), UP) is ALL


def test_a_shift_cuts_whole_numbers_exactly_and_floats_a_hair_early() -> None:
    large = 1_700_000_000_000_000_001
    assert moved(large, -2.5, UP) == large - 2
    assert moved(large, -2.5, DOWN) == large - 3
    assert moved(large, -3, UP) == large - 3
    assert moved(1.5, -0.5, UP) == math.nextafter(1.0, -math.inf)
    assert moved(1.5, 0.5, DOWN) == math.nextafter(2.0, math.inf)
    assert moved(ALL, 5, UP) is ALL
    assert moved(None, 5, UP) is None


@given(
    expr=st.sampled_from(RISING),
    value=st.integers(-(10**6), 10**6),
    near=st.integers(-3, 3),
    down=st.booleans(),
)
def test_an_expression_is_earlier_where_its_column_is(
    expr: Expr, value: int, near: int, down: bool
) -> None:
    """The law of `reaches`, at values of the column around the answer; all directions."""
    for moves, column_trend in ((expr, UP), (call("neg", expr), DOWN)):
        trend = DOWN if down else UP
        column_moves = column_trend if not down else (DOWN if column_trend is UP else UP)
        found = reaches(moves, trend, C, column_moves, value, {})
        at = found + near
        computed = evaluated(moves, at)
        assert earlier(computed, value, trend) == earlier(at, found, column_moves)


def evaluated(expr: Expr, value: int | float) -> int | float:
    name = "c" if isinstance(value, int) else "r"
    found = compile_expr(expr, (name,), {})((value,))
    assert isinstance(found, int | float)
    return found


@given(value=st.floats(-1e9, 1e9))
def test_floats_are_found_to_the_last_bit(value: float) -> None:
    expr = call("+", call("*", R, real(0.3)), real(1.7))
    found = reaches(expr, UP, R, UP, value, {})
    assert evaluated(expr, found) >= value
    assert evaluated(expr, math.nextafter(found, -math.inf)) < value


def test_what_overflows_is_beyond_all_values() -> None:
    expr = call("*", C, whole(1 << 40))
    assert reaches(expr, UP, C, UP, 5, {}) == 1
    assert reaches(expr, UP, C, UP, -5, {}) == 0
    assert reaches(expr, UP, C, UP, INT_MAX, {}) == 1 << 23


def test_texts_and_unknown_values_reach_nothing() -> None:
    text = Col("t", Type.STRING)
    assert reaches(text, UP, text, UP, 5, {}) is None
    assert reaches(C, UP, C, UP, None, {}) is None
    assert reaches(C, UP, C, UP, ALL, {}) is ALL
    assert reaches(Cast(C, Type.FLOAT), UP, C, UP, 2.5, {}) == 3


# ---- windows -------------------------------------------------------------------------------------

SPECS: list[WindowSpec] = [
    Sliding(4, 4),
    Sliding(9, 4),
    Sliding(3, 5),
    Slices((2, 3)),
    Slices((1,)),
    Slices((4, 1, 6)),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("edge", [WSTART, WEND])
def test_edges_of_windows_agree_with_the_tuples_in_them(spec: WindowSpec, edge: str) -> None:
    windows = {t: list(windows_around(spec, t, t + 1)) for t in range(-40, 41)}
    place = 0 if edge == WSTART else 1
    for now in range(-10, 11):
        complete = open_from(spec, edge, now + 1)
        later = [w for t, found in windows.items() if t >= now for w in found]
        assert all(w[place] >= complete for w in later)
        # And it is no earlier than it must be: windows that are over are below it.
        over = [w for found in windows.values() for w in found if w[1] <= now]
        assert all(w[place] < complete for w in over)
        oldest = oldest_start(spec, edge, now)
        inside = [t for t, found in windows.items() if any(w[place] >= now for w in found)]
        assert min(inside) >= oldest
