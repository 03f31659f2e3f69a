"""Operands: constants take the type of what they are compared with, and ULLONG columns with all of
their 64 bits are converted where something computes with them.

`srcIP = '10.0.0.1'`, `SYN = 1`, `TCP_data = 'GET'` mean what they seem to. Of operands that are
WIDE (terascope.types), functions which only compare, keep or count see values as they are held, and
all others see numbers. A number above 2^63 - 1 that is computed with in integers is an overflow,
reported when it is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from terascope.functions.base import Scalar, TypeMistake
from terascope.functions.operators import comparison
from terascope.functions.roles import EQUAL, Comparator
from terascope.plan.build import call, disjunction
from terascope.plan.expr import Call, Case, Cast, Expr, Lit
from terascope.types import BIAS, INT_MAX, INT_MIN, Type, parse_ip, unified

ZERO: Final = Lit(-BIAS, Type.WIDE)
NOTHING: Final = Lit(0, Type.UINT)


def coerce_alike(args: Sequence[Expr]) -> tuple[Expr, ...]:
    """The operands of a comparison, brought to one type.

    Raises:
        TypeMistake: a constant that is no value of the other side's type.
    """
    target = next((a.type for a in args if not isinstance(a, Lit)), None)
    if target is None:  # Constants only: if one is above 2^63 - 1, all that can are held as it is.
        is_wide = any(a.type is Type.WIDE for a in args)
        return tuple(coerce(a, Type.WIDE) if is_wide and isinstance(a, Lit) else a for a in args)
    coerced = tuple(coerce(a, target) if isinstance(a, Lit) else a for a in args)
    if needs_care(coerced):
        return coerced
    common = unified(arg.type for arg in coerced)
    if common is not None and (common.is_numeric or common in (Type.BINARY, Type.WIDE)):
        return tuple(to_type(a, common) for a in coerced)
    return coerced


def to_type(expr: Expr, type: Type) -> Expr:
    """Widen integers to FLOAT and text to bytes where the other side is so."""
    if expr.type is type or expr.type is Type.NULL or (expr.type.is_integer and type.is_integer):
        return expr
    if expr.type is Type.WIDE and type.is_integer:
        return narrowed(expr)
    return of_type(expr, type)


def coerce(literal: Lit, target: Type) -> Lit:
    value = literal.value
    if value is None:
        return literal
    if target.is_address and isinstance(value, str):
        address = parse_ip(value)
        if address is None:
            raise TypeMistake(f"'{value}' is not an IP address")
        return Lit(address, Type.IP)
    if target.is_address and isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < 2**32:
            raise TypeMistake(f"{value} is not an IPv4 address")
        return Lit(b"\x04" + value.to_bytes(4, "big"), Type.IP)
    if target is Type.BOOL and value in (0, 1) and literal.type.is_integer:
        return Lit(bool(value), Type.BOOL)
    if target.is_whole and isinstance(value, bool):
        literal = Lit(int(value), Type.UINT)
    if target is Type.WIDE and literal.type.is_integer and literal.value >= 0:
        return wide_literal(literal.value)
    if target is Type.BINARY and isinstance(value, str):
        return Lit(value.encode(), Type.BINARY)
    return literal


# ---- ULLONG with 64 bits -------------------------------------------------------------------------


def wide_literal(number: int) -> Lit:
    return Lit(number - BIAS, Type.WIDE)


def narrowed(expr: Expr) -> Expr:
    """A number to compute with.

    Raises:
        TypeMistake: a constant that nothing can be computed with.
    """
    if expr.type is not Type.WIDE:
        return expr
    match expr:
        case Lit(value=int(held)):
            if held + BIAS > INT_MAX:
                raise TypeMistake(
                    f"{held + BIAS} can be compared but not computed with, for it is above"
                    f" {INT_MAX}; write CAST({held + BIAS} AS FLOAT)"
                )
            return Lit(held + BIAS, Type.ULLONG)
        case Cast(operand) if operand.type.is_unsigned:
            return operand
    return call("narrow", expr)


def of_type(expr: Expr, type: Type) -> Expr:
    """An operand as one of the type that it was unified to. No number becomes NULL by that."""
    if expr.type is Type.WIDE and type.is_integer:
        expr = narrowed(expr)
    return expr if expr.type is type else Cast(expr, type)


def full_cast(expr: Expr, type: Type) -> Expr:
    """CAST as it is written: ULLONG is all of its 64 bits, unless the operand is an integer, whose
    values fit in 63. What cannot be converted is NULL.
    """
    if type is Type.ULLONG and (expr.type.is_text or expr.type in (Type.FLOAT, Type.WIDE)):
        type = Type.WIDE
    if expr.type is Type.WIDE and type.is_address:
        expr = Cast(expr, Type.UINT)
    return expr if expr.type is type is Type.WIDE else Cast(expr, type)


def computable(function: Scalar, args: Sequence[Expr]) -> tuple[Expr, ...]:
    """The arguments of a function as it takes them: FLOATs where it computes in FLOAT."""
    if function.takes_held or not any(a.type is Type.WIDE for a in args):
        return tuple(args)
    plain = tuple(Type.ULLONG if a.type is Type.WIDE else a.type for a in args)
    if function.type_rule(plain) is Type.FLOAT:
        return tuple(Cast(a, Type.FLOAT) if a.type is Type.WIDE else a for a in args)
    return tuple(map(narrowed, args))


# ---- comparisons ---------------------------------------------------------------------------------


def needs_care(args: Sequence[Expr]) -> bool:
    """Whether some are WIDE and others may be negative."""
    types = [a.type for a in args]
    return Type.WIDE in types and any(t.is_integer and not t.is_unsigned for t in types)


def compared(function: Scalar, left: Expr, right: Expr) -> Expr:
    """A comparison of a WIDE with an integer that may be negative."""
    role = function.role
    assert isinstance(role, Comparator)
    if right.type is Type.WIDE:
        return compared(comparison(role.mirrored), right, left)
    # What is negative is below all of them. As a WIDE it is NULL, which no equality holds for, so
    # that an equality stays one that joins can use.
    held = Call(function, (left, Cast(right, Type.WIDE)), Type.BOOL)
    never = call("<", left, ZERO)
    always = call(">=", left, ZERO)
    negative = call("<", right, NOTHING)
    if role.is_equality:
        truth = Lit(True, Type.BOOL)
        return call("and", held, Case(((negative, never),), truth, Type.BOOL))
    below = always if role.greater else never
    return Case(((negative, below),), held, Type.BOOL)


def member(tested: Expr, items: Sequence[Expr]) -> Expr:
    """`tested IN (items)` where some are WIDE and others may be negative."""
    possible = [i for i in items if not is_impossible(tested.type, i)]
    if not possible:
        least = ZERO if tested.type is Type.WIDE else Lit(INT_MIN, Type.LLONG)
        return call("<", tested, least)
    if all(isinstance(i, Lit) for i in possible):
        return call("in", tested, *possible)
    return disjunction(equality(tested, item) for item in possible)


def equality(left: Expr, right: Expr) -> Expr:
    if needs_care((left, right)):
        return compared(comparison(EQUAL), left, right)
    if Type.WIDE in (left.type, right.type):
        return call("=", of_type(left, Type.WIDE), of_type(right, Type.WIDE))
    return call("=", left, right)


def is_impossible(type: Type, item: Expr) -> bool:
    """Whether a constant is outside of a type."""
    if not isinstance(item, Lit) or not isinstance(item.value, int):
        return False
    if type is Type.WIDE:
        return item.type.is_integer and item.value < 0
    return item.type is Type.WIDE and item.value + BIAS > INT_MAX
