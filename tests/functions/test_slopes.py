"""Whatever slope an operator claims must hold on every stream that keeps its operands' slopes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from terascope.functions.base import UNORDERED, Slope, Trend, ValueMistake
from terascope.functions.operators import operators
from terascope.functions.registry import Functions

INC = Slope(Trend.INCREASING)
DEC = Slope(Trend.DECREASING)
STRICT = Slope(Trend.INCREASING, strict=True)


def constant(value: object) -> Slope:
    return Slope(Trend.CONSTANT, value=value)


@st.composite
def moving(draw: st.DrawFn, length: int) -> tuple[Slope, list[int]]:
    """A slope, and values that keep it: a rising line, from which each may fall behind."""
    strict = draw(st.booleans())
    band = 0 if strict else draw(st.sampled_from([0, 0, 1, 7, 100]))
    line, values = draw(st.integers(-500, 500)), []
    for _ in range(length):
        line += draw(st.integers(int(strict), 40))
        values.append(line - draw(st.integers(0, band)))
    if draw(st.booleans()):
        return Slope(Trend.INCREASING, band, strict), values
    return Slope(Trend.DECREASING, band, strict), [-v for v in values]


def assert_keeps(slope: Slope, values: list[int | float]) -> None:
    if slope.trend is Trend.CONSTANT:
        assert all(v == slope.value for v in values)
    if not slope.is_ordered:
        return
    if slope.trend is Trend.DECREASING:
        values = [-v for v in values]
    peak = values[0]
    for earlier, later in pairwise(values):
        peak = max(peak, earlier)
        assert later >= peak - slope.band
        assert not slope.strict or later > earlier


CONSTANTS = st.sampled_from([0, 1, 2, 3, 7, 60, -1, -2, -8, -16, 15, 255, 1000, 0.5, -2.5])


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "div", "%", "&", "|", "^", "<<", ">>"])
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_operators_keep_what_they_claim(name: str, data: st.DataObject) -> None:
    operator = operators[name]
    length = data.draw(st.integers(1, 8))
    operands: list[tuple[Slope, list[Any]]] = []
    for _ in range(2):
        if data.draw(st.booleans()):
            operands.append(data.draw(moving(length)))
        else:
            value = data.draw(CONSTANTS)
            if name not in ("+", "-", "*", "/"):
                value = int(value)
            operands.append((constant(value), [value] * length))
    try:
        results = [operator(a, b) for a, b in zip(operands[0][1], operands[1][1], strict=True)]
    except ValueMistake:
        results = [None]
    assume(None not in results)  # NULLs and overflows have no place in an order
    assert_keeps(operator.slope([slope for slope, _ in operands]), results)


@pytest.mark.parametrize("name", ["neg", "~"])
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_turning(name: str, data: st.DataObject) -> None:
    slope, values = data.draw(moving(6))
    result = operators[name].slope([slope])
    assert result.is_ordered
    assert result.trend is not slope.trend
    assert_keeps(result, [operators[name](v) for v in values])


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc"])
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_rounding(name: str, data: st.DataObject) -> None:
    scalar = Functions.builtin().scalar(name)
    assert scalar is not None
    slope, values = data.draw(moving(6))
    halves = Slope(slope.trend, slope.band / 4, slope.strict)
    result = scalar.slope([halves])
    assert result.is_ordered
    assert_keeps(result, [scalar(v / 4) for v in values])


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("+", (INC, INC), INC),
        ("+", (constant(5), STRICT), STRICT),
        ("+", (INC, constant(None)), INC),
        ("+", (INC, DEC), UNORDERED),
        ("-", (INC, DEC), INC),
        ("-", (constant(9), INC), DEC),
        ("-", (INC, INC), UNORDERED),
        ("*", (INC, constant(-3)), DEC),
        ("*", (INC, constant(0)), constant(0)),
        ("*", (INC, constant(None)), UNORDERED),
        ("*", (INC, INC), UNORDERED),
        ("div", (STRICT, constant(60)), INC),
        ("div", (STRICT, constant(1)), STRICT),
        ("div", (Slope(Trend.INCREASING, 61), constant(60)), Slope(Trend.INCREASING, 2)),
        ("div", (Slope(Trend.INCREASING, 60), constant(60)), Slope(Trend.INCREASING, 1)),
        ("div", (INC, constant(-60)), DEC),
        ("div", (INC, constant(0)), UNORDERED),
        ("div", (constant(60), INC), UNORDERED),
        ("/", (STRICT, constant(60.0)), INC),
        (">>", (Slope(Trend.INCREASING, 2**40), constant(30)), Slope(Trend.INCREASING, 2**10)),
        (">>", (INC, constant(64)), UNORDERED),
        ("<<", (Slope(Trend.INCREASING, 3), constant(2)), Slope(Trend.INCREASING, 12)),
        ("&", (INC, constant(-16)), INC),
        ("&", (Slope(Trend.INCREASING, 5), constant(-16)), Slope(Trend.INCREASING, 16)),
        ("&", (INC, constant(0xFFFFFFF0)), UNORDERED),
        ("&", (INC, constant(-17)), UNORDERED),
        ("|", (INC, constant(15)), INC),
        ("|", (INC, constant(16)), UNORDERED),
        ("%", (INC, constant(60)), UNORDERED),
        ("%", (constant(61), constant(60)), constant(1)),
        ("=", (INC, constant(3)), UNORDERED),
        ("+", (constant(2**62), constant(2**62)), Slope(Trend.CONSTANT)),
    ],
)
def test_algebra(name: str, args: tuple[Slope, ...], expected: Slope) -> None:
    assert operators[name].slope(args) == expected


def test_non_temporal_forgets() -> None:
    scalar = Functions.builtin().scalar("non_temporal")
    assert scalar is not None
    assert scalar(7) == 7
    assert scalar.slope([STRICT]) == UNORDERED
