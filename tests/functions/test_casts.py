from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terascope.functions.base import TypeMistake, Value
from terascope.functions.casts import cast_value, format_float, parse_float
from terascope.functions.values import holds
from terascope.types import INT_MAX, INT_MIN, Type, parse_ip
from tests.functions.values import BY_TYPE


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (3, Type.INT, Type.FLOAT, 3.0),
        (-2.9, Type.FLOAT, Type.INT, -2),
        (math.nan, Type.FLOAT, Type.INT, None),
        (math.inf, Type.FLOAT, Type.LLONG, None),
        (9.3e18, Type.FLOAT, Type.LLONG, None),
        (float(INT_MIN), Type.FLOAT, Type.LLONG, INT_MIN),
        (" 42\n", Type.STRING, Type.INT, 42),
        ("-42", Type.STRING, Type.INT, -42),
        ("4_2", Type.STRING, Type.INT, None),
        ("٤", Type.STRING, Type.INT, None),
        ("4.5", Type.STRING, Type.INT, None),
        ("", Type.STRING, Type.INT, None),
        ("9223372036854775807", Type.STRING, Type.INT, INT_MAX),
        ("9223372036854775808", Type.STRING, Type.INT, None),
        ("0" * 30 + "7", Type.STRING, Type.INT, 7),
        (b"17", Type.BINARY, Type.UINT, 17),
        ("1.5e3", Type.STRING, Type.FLOAT, 1500.0),
        (".5", Type.STRING, Type.FLOAT, 0.5),
        ("nan", Type.STRING, Type.FLOAT, None),
        ("1e999", Type.STRING, Type.FLOAT, None),
        (True, Type.BOOL, Type.INT, 1),
        (2, Type.INT, Type.BOOL, True),
        (True, Type.BOOL, Type.STRING, "true"),
        ("FALSE", Type.STRING, Type.BOOL, False),
        ("maybe", Type.STRING, Type.BOOL, None),
        ("10.0.0.1", Type.STRING, Type.IP, b"\4\n\0\0\1"),
        ("10.0.0", Type.STRING, Type.IP, None),
        (b"\4\n\0\0\1", Type.IP, Type.STRING, "10.0.0.1"),
        (b"\4\n\0\0\1", Type.IP, Type.UINT, 0x0A000001),
        (parse_ip("2001:db8::1"), Type.IP, Type.UINT, None),
        (parse_ip("2001:db8::1"), Type.IPV6, Type.STRING, "2001:db8::1"),
        (0x0A000001, Type.UINT, Type.IP, b"\4\n\0\0\1"),
        (2**32, Type.ULLONG, Type.IP, None),
        (-1, Type.INT, Type.IP, None),
        ("é", Type.STRING, Type.BINARY, b"\xc3\xa9"),
        (b"\xc3\xa9", Type.BINARY, Type.STRING, "Ã©"),
        (None, Type.NULL, Type.IP, None),
        (-5, Type.INT, Type.ULLONG, None),
        (-5, Type.INT, Type.LLONG, -5),
        (-1, Type.LLONG, Type.UINT, None),
        (2**32 - 1, Type.ULLONG, Type.UINT, 2**32 - 1),
        (2**32, Type.ULLONG, Type.UINT, None),
        (2**32, Type.UINT, Type.UINT, None),
        (2**32, Type.UINT, Type.ULLONG, 2**32),
        (-0.9, Type.FLOAT, Type.UINT, 0),
        (-1.0, Type.FLOAT, Type.ULLONG, None),
        (4294967296.0, Type.FLOAT, Type.UINT, None),
        ("-1", Type.STRING, Type.UINT, None),
        ("4294967296", Type.STRING, Type.UINT, None),
        ("4294967296", Type.STRING, Type.ULLONG, 2**32),
        (INT_MIN, Type.LLONG, Type.ULLONG, None),
    ],
)
def test_cast(value: Value, source: Type, target: Type, expected: Value) -> None:
    result = cast_value(value, source, target)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [(Type.IP, Type.FLOAT), (Type.FLOAT, Type.IP), (Type.BOOL, Type.IP), (Type.INT, Type.BINARY)],
)
def test_senseless_casts_are_refused(source: Type, target: Type) -> None:
    with pytest.raises(TypeMistake, match=f"cannot cast {source.value} to {target.value}"):
        cast_value(None, source, target)


@given(st.data())
def test_a_cast_gives_its_type(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(list(BY_TYPE)))
    target = data.draw(st.sampled_from([t for t in Type if t is not Type.NULL]))
    value = data.draw(BY_TYPE[source])
    try:
        result = cast_value(value, source, target)
    except TypeMistake:
        return
    assert holds(result, target)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-1e-300, "-1.0E-300"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
    ],
)
def test_the_form_of_a_float(value: float, text: str) -> None:
    assert format_float(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_reads_back(value: float) -> None:
    assert parse_float(format_float(value)) == value
