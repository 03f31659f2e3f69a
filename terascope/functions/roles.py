"""The role of a scalar function: what it means to analyses, rules and engines.

In: nothing. Out: a `Role`, which a function declares (`Scalar.role`). An analysis asks whether a
function adds, compares or divides, never how it is called, so that two functions of one role
(`%` and `mod`) are treated alike everywhere:

    case Call(Scalar(role=FloorDivision()), (Col(name), Lit(value=int(step)))): ...

A function without a role has its types, its slope and its cost, and is otherwise opaque.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class Role:
    can_overflow: ClassVar[bool] = False
    """Over integers its value may not fit 64 bits."""


# ---- logic ---------------------------------------------------------------------------------------


class Conjunction(Role):
    """The conjunction AND."""


class Disjunction(Role):
    """The disjunction OR."""


class Negation(Role):
    """NOT."""


class NullTest(Role):
    """IS NULL."""


class Coalescing(Role):
    """The first argument that is not NULL."""


class Conditional(Role):
    """The second argument where the first is TRUE or not 0, else the third."""


class Membership(Role):
    """Whether the first argument equals one of the others."""


class ListMembership(Role):
    """The same of one long list of constants (terascope.functions.members)."""


@dataclass(frozen=True)
class Comparator(Role):
    """TRUE for some outcomes of comparing the first argument with the second."""

    less: bool = False
    equal: bool = False
    greater: bool = False

    @property
    def mirrored(self) -> Comparator:
        """The comparison with its sides exchanged."""
        return Comparator(self.greater, self.equal, self.less)

    @property
    def opposite(self) -> Comparator:
        """TRUE where this one is FALSE."""
        return Comparator(not self.less, not self.equal, not self.greater)

    @property
    def is_single(self) -> bool:
        """Whether it is TRUE for one outcome only; otherwise its opposite is."""
        return self.less + self.equal + self.greater == 1

    @property
    def is_equality(self) -> bool:
        return self == EQUAL

    @property
    def is_range(self) -> bool:
        return self.less != self.greater


LESS = Comparator(less=True)
EQUAL = Comparator(equal=True)
GREATER = Comparator(greater=True)


# ---- arithmetic ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Addition(Role):
    """The sum of the arguments, each with a sign: x + y, x - y and -x."""

    signs: tuple[int, ...]
    can_overflow: ClassVar[bool] = True


class Multiplication(Role):
    can_overflow: ClassVar[bool] = True


class FloorDivision(Role):
    """Division of integers, rounded down; NULL by zero."""

    can_overflow: ClassVar[bool] = True


class Remainder(Role):
    """The remainder of floor division."""


class Quotient(Role):
    """Division of FLOATs; NULL by zero."""


class Magnitude(Role):
    """The number without its sign."""

    can_overflow: ClassVar[bool] = True


@dataclass(frozen=True)
class BitOperation(Role):
    """Bit by bit; `symbol` as Python writes it."""

    symbol: Literal["&", "|", "^"]


class BitComplement(Role):
    """~x."""


class ShiftLeft(Role):
    can_overflow: ClassVar[bool] = True


class ShiftRight(Role):
    """Keeps the sign."""


class Narrowing(Role):
    """A WIDE (terascope.types) as a number to compute with."""

    can_overflow: ClassVar[bool] = True


# ---- addresses, text and time --------------------------------------------------------------------


class AddressMask(Role):
    """The bits of an IPv4 address that a mask keeps."""


class SubnetTest(Role):
    """Whether an address lies in a subnet."""


class TextPattern(Role):
    """LIKE."""


@dataclass(frozen=True)
class TextTest(Role):
    """A test of a text that needs only its bytes."""

    test: Literal["start", "contained", "equal", "text at", "byte at", "length", "regex"]
    text: int = 0
    """The position of the argument that is the text; the others are compared with it."""


class Extraction(Role):
    """The stretch of a text that a regular expression finds, or one of its groups."""


@dataclass(frozen=True)
class SlicePart(Role):
    """The begin or the end of the slice that a time lies in, or whether the slice is no gap."""

    part: Literal["start", "end", "inside"]
