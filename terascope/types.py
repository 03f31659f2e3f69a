"""The value types of GSQL, and how a value of each is held.

One representation serves every engine, so that rows compare equal without conversion:

========  =======================================  ==================
type      Python value                             Arrow column
========  =======================================  ==================
BOOL      bool                                     bool
integers  int, signed 64-bit                       int64
WIDE      int, the number less 2^63                int64
FLOAT     float                                    float64
STRING    str                                      string
IP        bytes: version (4 or 6), then the        binary
          4 or 16 address bytes in network order
BINARY    bytes                                    binary
========  =======================================  ==================

The leading version byte makes an address self-describing and gives one order: IPv4 before IPv6,
then numeric. NULL is None everywhere.

WIDE is ULLONG with all of its 64 bits, the type of columns that a source may fill with numbers up
to 2^64 - 1. Such a number is held less 2^63, so that it is a signed 64-bit integer and held values
have the order of the numbers: whoever only compares, keeps or counts values does that as with every
other integer column, and whoever computes converts it first (the operator `narrow`). Sources hold
numbers so, and outputs turn them back.
"""

from __future__ import annotations

import enum
import ipaddress
from collections.abc import Iterable
from typing import Final


class Type(enum.Enum):
    """A GSQL type. The integer types differ in name only: arithmetic is signed 64-bit for all. WIDE
    is none of them, for its values are held otherwise.
    """

    BOOL = "BOOL"
    INT = "INT"
    UINT = "UINT"
    LLONG = "LLONG"
    ULLONG = "ULLONG"
    WIDE = "ULLONG64"  # all 64 bits of ULLONG; nobody writes it
    FLOAT = "FLOAT"
    STRING = "STRING"
    IP = "IP"
    IPV6 = "IPV6"
    BINARY = "BINARY"
    NULL = "NULL"  # the type of a bare NULL; takes on any other

    __hash__ = object.__hash__  # each is there once; Enum's own hash is slow

    @property
    def label(self) -> str:
        """The name that people use."""
        return "ULLONG" if self is Type.WIDE else self.value

    @property
    def is_whole(self) -> bool:
        """Whether values are integers, whatever they are held as."""
        return self in INTEGERS or self is Type.WIDE

    @property
    def is_integer(self) -> bool:
        return self in INTEGERS

    @property
    def is_numeric(self) -> bool:
        return self in INTEGERS or self is Type.FLOAT

    @property
    def is_address(self) -> bool:
        return self is Type.IP or self is Type.IPV6

    @property
    def is_text(self) -> bool:
        """Whether string functions take it: text, or raw bytes such as a packet's payload."""
        return self is Type.STRING or self is Type.BINARY

    @property
    def is_unsigned(self) -> bool:
        return self is Type.UINT or self is Type.ULLONG


INTEGERS: Final = frozenset({Type.INT, Type.UINT, Type.LLONG, Type.ULLONG})
UINT_MAX: Final = 2**32 - 1
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
WIDE_MAX: Final = 2**64 - 1
BIAS: Final = 2**63
"""The number that is subtracted from a WIDE number to hold it."""


def value_range(type: Type) -> tuple[int, int]:
    """The smallest and largest number that a source may give an integer column, and that a cast
    gives. What is computed may be outside: arithmetic is signed 64-bit for all.
    """
    if type is Type.WIDE:
        return 0, WIDE_MAX
    least = 0 if type.is_unsigned else INT_MIN
    return least, UINT_MAX if type is Type.UINT else INT_MAX


type_names: Final[dict[str, Type]] = {
    **{type.value: type for type in Type if type not in (Type.WIDE, Type.NULL)},
    "USHORT": Type.UINT,
    "V_STR": Type.STRING,
    "VSTRING": Type.STRING,
    "CHAR": Type.STRING,
}
"""Every spelling of a type name, in upper case."""


def parse_ip(text: str) -> bytes | None:
    """The held form of an address in text, or None when it is not one."""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    return bytes([address.version]) + address.packed


def format_ip(value: bytes) -> str:
    """An address as people write it; IPv6 compressed as RFC 5952 says."""
    if len(value) == 5:
        return ".".join(map(str, value[1:]))
    return str(ipaddress.IPv6Address(value[1:]))


def unify(left: Type, right: Type) -> Type | None:
    """The type that holds values of both, or None when there is none."""
    if left is right or right is Type.NULL:
        return left
    if left is Type.NULL:
        return right
    if Type.WIDE in (left, right):
        return _unify_wide(right if left is Type.WIDE else left)
    if left.is_numeric and right.is_numeric:
        if Type.FLOAT in (left, right):
            return Type.FLOAT
        wide = {Type.LLONG, Type.ULLONG} & {left, right}
        if left.is_unsigned and right.is_unsigned:
            return Type.ULLONG if wide else Type.UINT
        return Type.LLONG if wide else Type.INT
    if left.is_address and right.is_address:
        return Type.IP
    if left.is_text and right.is_text:
        return Type.BINARY
    return None


def unified(types: Iterable[Type]) -> Type | None:
    """The type that holds values of all, or None when there is none."""
    common: Type | None = Type.NULL
    for type in types:
        common = None if common is None else unify(common, type)
    return common


def _unify_wide(other: Type) -> Type | None:
    """WIDE with another type: no integer type holds it and negative numbers, too."""
    if other.is_unsigned:
        return Type.WIDE
    if other.is_integer:
        return Type.LLONG
    return Type.FLOAT if other is Type.FLOAT else None
