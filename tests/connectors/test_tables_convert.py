from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from terascope.connectors.tables.convert import Converted, Fault, from_text
from terascope.connectors.tables.records import infer_type
from terascope.types import INT_MAX, INT_MIN, Type, parse_ip


def converted(texts: Sequence[str | None], type: Type) -> list[object]:
    """Each value, or the fault that stands in its place."""
    found: Converted = from_text(pa.array(texts, pa.string()), type)
    found.values.validate(full=True)
    values: list[object] = found.values.to_pylist()
    if found.faults is None:
        return values
    return [Fault(f) if f else v for v, f in zip(values, found.faults.tolist(), strict=True)]


def integer(text: str) -> object:
    """Python's reading of an integer, as the declared types have it."""
    digits = text.strip(" \t").lower()
    if not digits:
        return None
    try:
        value = int(digits, 16 if "0x" in digits else 10)
    except ValueError:
        return Fault.NOT_INTEGER
    return value if INT_MIN <= value <= INT_MAX else Fault.OUT_OF_RANGE


@settings(deadline=None)  # the first call compiles
@example(["9223372036854775807", "-9223372036854775808", "9223372036854775808"])
@example(["-0x8000000000000000", "0xFFFFFFFFFFFFFFFF", "0x", "-", "+5", "-9223372036854775809"])
@example(["00", "1" * 30, "-" + "9" * 19, "18446744073709551616"])
@given(
    st.lists(
        st.integers(-(2**66), 2**66).map(str)
        | st.integers(0, 2**66).map(hex)
        | st.text(alphabet="0123x- \t+aF", max_size=5)
    )
)
def test_integers_are_read_as_python_reads_them(texts: list[str]) -> None:
    assert converted([*texts, None], Type.INT) == [*map(integer, texts), None]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("60.0", 60),
        ("6e1", 60),
        ("60.5", Fault.NOT_INTEGER),
        ("1e999999999", Fault.OUT_OF_RANGE),
        ("1e-999999999", Fault.NOT_INTEGER),
        ("1_000", Fault.NOT_INTEGER),
        ("nan", Fault.NOT_INTEGER),
        ("٣", Fault.NOT_INTEGER),
        ("9223372036854775807.0", INT_MAX),
    ],
)
def test_whole_numbers_with_a_fraction(text: str, value: object) -> None:
    assert converted(["1", text], Type.INT) == [1, value]


@settings(deadline=None)
@example(["0.0.0.0", "255.255.255.255", "1.2.3.4.", "01.2.3.4", "1.2.3", "256.1.1.1", "1.2.3.0004"])
@given(
    st.lists(
        st.ip_addresses().map(str)
        | st.text(alphabet="0125.: ", max_size=9)
        | st.integers(0, 2**33).map(str)
    )
)
def test_addresses_are_read_as_python_reads_them(texts: list[str]) -> None:
    def address(text: str) -> object:
        bare = text.strip()
        if bare.isdigit():
            return (
                parse_ip(str(ipaddress.ip_address(int(bare))))
                if int(bare) < 2**32
                else Fault.NOT_IP
            )
        return (parse_ip(bare) or Fault.NOT_IP) if bare else None

    assert converted([*texts, None], Type.IP) == [*map(address, texts), None]


@settings(deadline=None)
@given(
    st.lists(
        st.floats(allow_nan=False).map(repr) | st.sampled_from([" 1 ", "+2", "x", "", "1_0", "٣"])
    )
)
def test_floats_are_read_as_python_reads_them(texts: list[str]) -> None:
    def number(text: str) -> object:
        if text in ("x", "1_0", "٣"):
            return Fault.NOT_NUMBER
        return float(text) if text.strip() else None

    assert converted(texts, Type.FLOAT) == [number(text) for text in texts]


def test_booleans() -> None:
    true, false = ["true", "T", "YES", "y", "1"], ["False", "f", "No", "N", "0"]
    assert converted(true, Type.BOOL) == [True] * 5
    assert converted(false, Type.BOOL) == [False] * 5
    assert converted(["", None, "2"], Type.BOOL) == [None, None, Fault.NOT_BOOL]


def test_only_text_types_hold_the_empty_text() -> None:
    for type in (Type.INT, Type.FLOAT, Type.BOOL, Type.IP, Type.IPV6):
        assert converted(["", " ", None], type) == [None, None, None]
    assert converted(["", " ", None], Type.STRING) == ["", " ", None]
    assert converted(["", None], Type.BINARY) == [b"", None]


def test_slices_of_a_column_convert_as_the_column_does() -> None:
    texts = pa.array(["x", "1", None, "2", "y"]).slice(1, 3)
    assert from_text(texts, Type.INT).values.to_pylist() == [1, None, 2]
    assert from_text(texts, Type.STRING).values.to_pylist() == ["1", None, "2"]


@pytest.mark.parametrize(
    ("texts", "type"),
    [
        (["1", "-2", ""], Type.INT),
        (["1", "2.5"], Type.FLOAT),
        (["1.0"], Type.FLOAT),
        (["0", "1"], Type.INT),
        (["true", "no"], Type.BOOL),
        (["true", "1"], Type.BOOL),
        (["10.0.0.1", "::1", ""], Type.IP),
        (["10.0.0.1", "x"], Type.STRING),
        (["", None], Type.STRING),
        ([], Type.STRING),
    ],
)
def test_inferred_types(texts: list[str | None], type: Type) -> None:
    assert infer_type(pa.array(texts, pa.string())) is type
