"""Values in held form: how they compare, and their two faces as text and as bytes.

In: values as terascope.types holds them. Out: one order and one equality for every operator and
aggregate, so that a minimum, a comparison and a sorted percentile never disagree.

FLOAT follows SQL engines, not IEEE: NaN equals itself and is the largest number. An integer and a
FLOAT compare as FLOATs. STRING and BINARY compare as bytes, STRING in UTF-8.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from terascope.functions.base import Value
from terascope.functions.overflow import Overflow
from terascope.types import INT_MAX, INT_MIN, Type

Text: TypeAlias = str | bytes

SOME_VALUE: Final[dict[Type, Value]] = {
    Type.BOOL: False,
    Type.FLOAT: 0.0,
    Type.STRING: "",
    Type.BINARY: b"",
    Type.IP: b"\4" + bytes(4),
    Type.IPV6: b"\6" + bytes(16),
}
"""A value of each type, which stands where a vector without NULLs has none; for integers 0."""


def as_text(value: Text) -> str:
    """Raw bytes become one character each (latin-1), so that no payload is unreadable."""
    return value if isinstance(value, str) else value.decode("latin-1")


def as_bytes(value: Text) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8")


def order_key(value: Value) -> Value:
    """A key under which values of one type sort as GSQL compares them."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def distinct_key(value: Value) -> Value:
    """Equal values of one type, and only those, give keys that are equal in Python, where NaN is
    not equal to itself.
    """
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def compare(left: Value, right: Value) -> int:
    """Negative, zero or positive, as left stands before, with or after right."""
    if isinstance(left, float) or isinstance(right, float):
        left, right = order_key(float(left)), order_key(float(right))
    elif isinstance(left, str) is not isinstance(right, str):
        left, right = as_bytes(left), as_bytes(right)
    return int(left > right) - int(left < right)


def smaller(left: Value, right: Value) -> Value:
    return right if compare(right, left) < 0 else left


def larger(left: Value, right: Value) -> Value:
    return right if compare(right, left) > 0 else left


def whole(value: int, what: str) -> int:
    """The integer itself, when a signed 64-bit integer can hold it."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise Overflow(what)


def finite(value: float) -> float | None:
    """The number itself, or NULL when it is infinite or no number."""
    return value if math.isfinite(value) else None


def truncated(value: float, most: int = INT_MAX) -> int | None:
    """A FLOAT as integer, towards zero; NULL when there is none of 64 bits."""
    if not math.isfinite(value):
        return None
    result = math.trunc(value)
    return result if INT_MIN <= result <= most else None


def holds(value: Value, type_: Type) -> bool:
    """Whether a value is one of that type in held form; NULL is of every type."""
    if value is None:
        return True
    if type_ is Type.BOOL:
        return isinstance(value, bool)
    if type_.is_whole:
        return type(value) is int and INT_MIN <= value <= INT_MAX
    if type_ is Type.FLOAT:
        return isinstance(value, float)
    if type_ is Type.STRING:
        return isinstance(value, str)
    if type_.is_address:
        return isinstance(value, bytes) and (value[:1], len(value)) in ((b"\4", 5), (b"\6", 17))
    return type_ is Type.BINARY and isinstance(value, bytes)
