"""Constants take the type of what they are compared with.

`srcIP = '10.0.0.1'`, `SYN = 1`, `TCP_data = 'GET'` mean what they seem to.
"""

from __future__ import annotations

from collections.abc import Sequence

from terascope.bind.wide import narrowed, needs_care, of_type, wide_literal
from terascope.functions.base import TypeMistake
from terascope.plan.expr import Expr, Lit
from terascope.types import Type, parse_ip, unified


def coerce_alike(args: Sequence[Expr]) -> tuple[Expr, ...]:
    """The operands of a comparison, brought to one type.

    Raises:
        TypeMistake: a constant that is no value of the other side's type.
    """
    target = next((a.type for a in args if not isinstance(a, Lit)), None)
    if target is None:
        return common_literals(args)
    coerced = tuple(coerce(a, target) if isinstance(a, Lit) else a for a in args)
    if needs_care(coerced):
        return coerced
    common = unified(arg.type for arg in coerced)
    if common is not None and (common.is_numeric or common in (Type.BINARY, Type.WIDE)):
        return tuple(to_type(a, common) for a in coerced)
    return coerced


def common_literals(args: Sequence[Expr]) -> tuple[Expr, ...]:
    """Constants only: if one is above 2^63 - 1, all that can are held as it is."""
    if not any(a.type is Type.WIDE for a in args):
        return tuple(args)
    return tuple(coerce(a, Type.WIDE) if isinstance(a, Lit) else a for a in args)


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
    if target.is_integer and isinstance(value, bool):
        return literal
    if target is Type.BINARY and isinstance(value, str):
        return Lit(value.encode(), Type.BINARY)
    return literal
