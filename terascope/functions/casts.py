"""CAST: a value made to be of another type. What cannot be converted is NULL, and so is a number
outside of the range of an unsigned type.

In: a value, its type and the type wanted. Out: the converted value. `check_cast` says beforehand
which pairs of types make no sense at all.

Numbers become text in one form everywhere: integers in decimal, FLOAT with the fewest digits that
read back as the same number, plain between 0.001 and 10000000 and as 1.5E10 outside, which is the
form of the JVM (19 and later) too.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from terascope.functions.base import TypeMistake, Value
from terascope.functions.values import as_bytes, as_text, truncated
from terascope.types import (
    BIAS,
    INT_MAX,
    INT_MIN,
    INTEGERS,
    WIDE_MAX,
    Type,
    format_ip,
    parse_ip,
    value_range,
)

BLANKS: Final = " \t\n\r\f\v"
WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
IPV4_MAX: Final = 2**32 - 1
TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}

cast_names: Final[dict[str, Type]] = {
    **{type.value.lower(): type for type in (*INTEGERS, Type.FLOAT)},
    "to_llong": Type.LLONG,
}
"""GS-Lite's casts, written as functions: UINT(x) is CAST(x AS UINT)."""


def check_cast(source: Type, target: Type) -> None:
    """Raise TypeMistake unless some value of the one type can become one of the other."""
    if source is Type.NULL or source is target or _group(source) == _group(target):
        return
    if source.is_text or target is Type.STRING:
        return
    if _is_number(source) and _is_number(target):
        return
    if {_group(source), _group(target)} == {"integer", "address"}:
        return
    raise TypeMistake(f"cannot cast {source.label} to {target.label}")


def cast_value(value: Value, source: Type, target: Type) -> Value:
    """The value as one of the target type, or NULL."""
    check_cast(source, target)
    if value is None or source is target is Type.WIDE:
        return value
    if source is Type.WIDE:
        value, source = value + BIAS, Type.ULLONG
    if target is Type.WIDE:
        number = _to_integer(value, source, target)
        return None if number is None else number - BIAS
    if target.is_integer:
        return _to_integer(value, source, target)
    if target.is_address:
        return _to_address(value, source)
    match target:
        case Type.FLOAT:
            return parse_float(as_text(value)) if source.is_text else float(value)
        case Type.BOOL:
            text = as_text(value).strip(BLANKS).lower() if source.is_text else None
            return bool(value) if text is None else TRUTH.get(text)
        case Type.STRING:
            return to_string(value, source)
        case Type.BINARY:
            return as_bytes(value)
        case _:
            return value


def is_within(value: int | None, target: Type) -> bool:
    """Whether a number is one of an integer type; NULL is of every type."""
    least, most = value_range(target)
    return value is None or least <= value <= most


def may_be_outside(source: Type, target: Type) -> bool:
    """Whether numbers of the one type may be outside of the range of the other. Arithmetic between
    unsigned values gives no negative ones, but it may give more than a UINT holds.
    """
    if source is Type.BOOL or source.is_address or not target.is_unsigned:
        return False
    if source is Type.WIDE:
        return False  # the conversion itself checks the range
    return target is Type.UINT or not source.is_unsigned


def to_string(value: Value, source: Type) -> str:
    if source.is_text:
        return as_text(value)
    if source.is_address:
        return format_ip(value)
    if source is Type.BOOL:
        return "true" if value else "false"
    return format_float(value) if isinstance(value, float) else str(value)


def format_float(value: float) -> str:
    """The one way a FLOAT is written."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, exponent = f"{Decimal(repr(value)).normalize():E}".split("E")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}E{int(exponent)}"


def parse_integer(text: str, most: int = INT_MAX) -> int | None:
    """A decimal integer of 64 bits, blanks around it allowed."""
    text = text.strip(BLANKS)
    if not WHOLE_NUMBER.fullmatch(text):
        return None
    # a number of more digits than that cannot fit, and very long ones are slow to convert
    if len(text.lstrip("+-").lstrip("0")) > len(str(WIDE_MAX)):
        return None
    value = int(text)
    return value if INT_MIN <= value <= most else None


def parse_float(text: str) -> float | None:
    text = text.strip(BLANKS)
    if not NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _to_integer(value: Value, source: Type, target: Type) -> int | None:
    """The number, if it is one of the target type."""
    least, most = value_range(target)
    if source.is_text:
        number = parse_integer(as_text(value), most)
    elif source.is_address:
        number = int.from_bytes(value[1:], "big") if value[0] == 4 else None
    else:
        number = truncated(value, most) if isinstance(value, float) else int(value)
    return number if number is not None and least <= number <= most else None


def _to_address(value: Value, source: Type) -> bytes | None:
    if source.is_text:
        return parse_ip(as_text(value))
    if source.is_integer:
        return b"\4" + value.to_bytes(4, "big") if 0 <= value <= IPV4_MAX else None
    return bytes(value)


def _is_number(type_: Type) -> bool:
    return type_.is_whole or type_ is Type.FLOAT or type_ is Type.BOOL


def _group(type_: Type) -> str:
    """Types whose values need no conversion, or only that between text and bytes."""
    if type_.is_whole:
        return "integer"
    if type_.is_address:
        return "address"
    return "text" if type_.is_text else type_.label
