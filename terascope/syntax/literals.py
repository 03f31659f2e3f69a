"""Constants: from their spelling to the value they hold.

In: the text of a number or of a prefixed string (`HEX'7f'`, `IP '10.0.0.1'`). Out: a `Literal_`
without span, or `BadLiteral` with the reason. `HEX` is UINT and `LHEX` ULLONG, as in GS-Lite;
`TIMEVAL'1.5'` (seconds) is a ULLONG of nanoseconds, so that it compares with `timestamp`; `X'0aff'`
is BINARY.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Final, Literal, TypeAlias

from terascope.syntax.ast import Duration, Literal_
from terascope.types import INT_MAX, WIDE_MAX, parse_ip

Unit: TypeAlias = Literal["ns", "us", "ms", "s", "min", "h", "d"]


class BadLiteral(ValueError):
    """A constant that means nothing; the message says why, `help` what to write."""

    def __init__(self, reason: str, help_: str | None = None) -> None:
        super().__init__(reason)
        self.help = help_


SUFFIX_TYPES: Final = {
    "": None,
    "U": "UINT",
    "UL": "UINT",
    "L": "LLONG",
    "LL": "LLONG",
    "ULL": "ULLONG",
}
INTEGER: Final = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uU]?[lL]{0,2})")
FLOAT: Final = re.compile(r"(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?")
DOTTED: Final = re.compile(r"\d+\.\d+\.[\d.]+")


def read_number(text: str) -> Literal_:
    """`42`, `0xFFF0`, `17UL`, `1.5`, `5.`, `1e9`, or the IPv4 address `10.0.0.1`."""
    if matched := INTEGER.fullmatch(text):
        digits, suffix = matched.groups()
        hexadecimal = digits[:2] in ("0x", "0X")
        if len(digits) > 40:
            raise BadLiteral(f"'{digits[:12]}...' does not fit in 64 bits")
        value = int(digits, 16 if hexadecimal else 10)
        return whole(value, SUFFIX_TYPES[suffix.upper()], hexadecimal=hexadecimal)
    if FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise BadLiteral(f"'{text}' is too large for a FLOAT")
        return Literal_("float", number)
    if DOTTED.fullmatch(text):
        return address(text, "ip")
    raise BadLiteral(f"'{text}' is not a number", "a name cannot start with a digit")


def whole(value: int, type_name: str | None = None, *, hexadecimal: bool = False) -> Literal_:
    if value > WIDE_MAX:
        raise BadLiteral(f"'{value}' does not fit in 64 bits", f"the largest is {WIDE_MAX}")
    return Literal_("int", value, type_name, hexadecimal=hexadecimal)


def read_prefixed(prefix: str, content: str) -> Literal_:
    """A string with a word of `LITERAL_PREFIXES` before it; `content` is without its quotes."""
    match prefix.upper():
        case "IP" | "IP_VAL":
            return address(content, "ip")
        case "IPV6" | "IPV6_VAL":
            return address(content, "ipv6")
        case "HEX" | "LHEX" as size:
            digits = content[2:] if content[:2] in ("0x", "0X") else content
            if not re.fullmatch(r"[0-9a-fA-F]{1,32}", digits):
                raise BadLiteral(f"'{content}' is not a hexadecimal number")
            type_name = "UINT" if size == "HEX" else "ULLONG"
            return whole(int(digits, 16), type_name, hexadecimal=True)
        case "TIMEVAL":
            return timeval(content)
        case _:
            try:
                return Literal_("binary", bytes.fromhex(content))
            except ValueError:
                raise BadLiteral(f"'{content}' is not a row of hexadecimal bytes") from None


def address(text: str, kind: Literal["ip", "ipv6"]) -> Literal_:
    value = parse_ip(text)
    if value is None:
        raise BadLiteral(f"'{text}' is not an IP address")
    if kind == "ipv6" and value[0] != 6:
        raise BadLiteral(f"'{text}' is not an IPv6 address", f"write IP '{text}'")
    return Literal_(kind, value)


def timeval(text: str) -> Literal_:
    try:
        nanoseconds = Decimal(text.strip()) * 1_000_000_000
    except InvalidOperation:
        nanoseconds = Decimal(-1)
    if not nanoseconds.is_finite() or nanoseconds < 0 or nanoseconds > INT_MAX:
        raise BadLiteral(f"'{text}' is not a time in seconds", "write for example TIMEVAL'1.5'")
    return whole(int(nanoseconds), "ULLONG")


SPELLINGS: Final[dict[Unit, str]] = {
    "ns": "ns nsec nsecs nanosecond nanoseconds",
    "us": "us usec usecs microsecond microseconds",
    "ms": "ms msec msecs millisecond milliseconds",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "d": "d day days",
}
UNITS: Final = {word: unit for unit, words in SPELLINGS.items() for word in words.split()}
UNIT_HELP: Final = "units are ns, us, ms, sec, min, hour and day, as in '18 sec'"
DURATION: Final = re.compile(r"\s*(\d+\.\d*|\.\d+|\d+)\s*([^\W\d]+)?\s*")


def read_duration(text: str) -> Duration:
    """`18 sec`, `1.5h`, `3`."""
    matched = DURATION.fullmatch(text)
    if matched is None:
        raise BadLiteral(f"'{text}' is not a length of time", UNIT_HELP)
    number, word = matched.groups()
    amount = read_number(number).value
    assert isinstance(amount, int | float)
    return duration(amount, word)


def duration(amount: int | float, word: str | None) -> Duration:
    if amount <= 0:
        raise BadLiteral("a length of time must be more than zero")
    unit = None if word is None else UNITS.get(word.lower())
    if word is not None and unit is None:
        raise BadLiteral(f"'{word}' is not a unit of time", UNIT_HELP)
    return Duration(amount, unit)
