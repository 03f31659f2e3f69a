from __future__ import annotations

import math

import pytest

from terascope.functions.base import TypeMistake, Value, ValueMistake
from terascope.functions.operators import operators
from terascope.types import INT_MAX, INT_MIN, Type, format_ip, parse_ip

NAN = math.nan


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("and", (True, None, True), None),
        ("and", (None, False), False),
        ("or", (None, True), True),
        ("or", (False, None), None),
        ("not", (None,), None),
        ("in", (1, 2, None), None),
        ("in", (1, 2, None, 1), True),
        ("in", (None, 1), None),
        ("in", (1, 2, 3), False),
        ("=", ("GET", b"GET"), True),
        ("=", ("é", b"\xc3\xa9"), True),
        ("=", (NAN, NAN), True),
        (">", (NAN, math.inf), True),
        ("=", (2**53 + 1, float(2**53)), True),
        ("<", (b"\4\xff\xff\xff\xff", b"\6" + bytes(16)), True),
        ("<", ("B", "a"), True),
        ("div", (-7, 2), -4),
        ("div", (7, -2), -4),
        ("div", (7, 0), None),
        ("%", (-7, 60), 53),
        ("%", (7, -60), -53),
        ("%", (7, 0), None),
        ("/", (7, 2), 3.5),
        ("/", (7, 0), None),
        ("/", (7.0, -0.0), None),
        ("-", (3, 5), -2),
        ("+", (1, 0.5), 1.5),
        ("neg", (5,), -5),
        ("~", (0,), -1),
        (">>", (-8, 1), -4),
        (">>", (8, 64), None),
        (">>", (8, -1), None),
        ("<<", (1, 62), 2**62),
        ("<<", (1, 64), None),
        ("^", (0b110, 0b011), 0b101),
        ("||", ("a", b"\xff"), "a\xff"),
        ("like", ("GET /index", "GET%x"), True),
        ("like", ("a\nb", "a_b"), True),
        ("like", ("50%", "50\\%"), True),
        ("like", ("50x", "50\\%"), False),
        ("like", ("a.c", "a.c"), True),
        ("like", ("abc", "a.c"), False),
        ("is_null", (None,), True),
        ("coalesce", (None, 0, 1), 0),
        ("coalesce", (None, None), None),
    ],
)
def test_meaning(name: str, args: tuple[Value, ...], expected: Value) -> None:
    result = operators[name](*args)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("+", (INT_MAX, 1), "integer overflow in 9223372036854775807 + 1"),
        ("-", (INT_MIN, 1), "integer overflow in -9223372036854775808 - 1"),
        ("*", (2**40, 2**40), "integer overflow in 1099511627776 * 1099511627776"),
        ("neg", (INT_MIN,), "integer overflow in -(-9223372036854775808)"),
        ("div", (INT_MIN, -1), "integer overflow in -9223372036854775808 div -1"),
        ("<<", (1, 63), "integer overflow in 1 << 63"),
    ],
)
def test_overflow_stops(name: str, args: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueMistake) as caught:
        operators[name](*args)
    assert str(caught.value).startswith(f"{message}: integers are signed 64-bit numbers;")


@pytest.mark.parametrize(
    ("name", "types", "expected"),
    [
        ("-", (Type.UINT, Type.UINT), Type.INT),
        ("-", (Type.ULLONG, Type.UINT), Type.LLONG),
        ("+", (Type.UINT, Type.UINT), Type.UINT),
        ("+", (Type.INT, Type.FLOAT), Type.FLOAT),
        ("/", (Type.UINT, Type.UINT), Type.FLOAT),
        ("div", (Type.UINT, Type.UINT), Type.UINT),
        ("=", (Type.IP, Type.IPV6), Type.BOOL),
        ("=", (Type.IP, Type.NULL), Type.BOOL),
        (">>", (Type.ULLONG, Type.INT), Type.ULLONG),
        ("mask", (Type.IP, Type.UINT), Type.IP),
        ("coalesce", (Type.NULL, Type.INT, Type.FLOAT), Type.FLOAT),
    ],
)
def test_types(name: str, types: tuple[Type, ...], expected: Type) -> None:
    assert operators[name].type_rule(types) is expected


@pytest.mark.parametrize(
    ("name", "types", "message"),
    [
        ("=", (Type.IP, Type.INT), "cannot compare IP with INT"),
        (
            "<",
            (Type.IP, Type.STRING),
            "cannot compare IP with STRING; write the address as IP '10.0.0.1'",
        ),
        ("=", (Type.BOOL, Type.UINT), "cannot compare BOOL with UINT; write TRUE or FALSE"),
        ("+", (Type.STRING, Type.STRING), "cannot add STRING and STRING; to join texts write ||"),
        ("-", (Type.IP, Type.INT), "cannot subtract INT from IP"),
        (
            "div",
            (Type.FLOAT, Type.INT),
            "cannot divide FLOAT by INT as integers; write CAST(... AS LLONG)",
        ),
        ("and", (Type.BOOL, Type.INT), "AND takes conditions, not INT"),
        ("&", (Type.FLOAT, Type.INT), "& takes an integer as first argument, not FLOAT"),
        ("in", (Type.IP, Type.INT), "cannot look for IP among values of INT"),
        ("like", (Type.IP, Type.STRING), "LIKE takes a text as first argument, not IP; "),
        ("coalesce", (Type.INT, Type.IP), "COALESCE cannot choose between INT and IP"),
    ],
)
def test_type_mistakes(name: str, types: tuple[Type, ...], message: str) -> None:
    with pytest.raises(TypeMistake) as caught:
        operators[name].type_rule(types)
    assert str(caught.value).startswith(message)


def test_mask() -> None:
    def masked(address: str, mask: int) -> str | None:
        result = operators["mask"](parse_ip(address), mask)
        return None if result is None else format_ip(result)

    assert masked("10.1.2.3", 0xFFFFFF00) == "10.1.2.0"
    assert masked("10.1.2.3", -256) == "10.1.2.0"
    assert masked("2001:db8::1", 0xFFFFFF00) is None
