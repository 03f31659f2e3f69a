"""The normal form of an expression over one attribute: how much of the attribute its value keeps.

In: a typed expression. Out: a `NormalForm`: a core, which is a part of the digits or bits of a base
expression, and a one-to-one map over it. `time / 60`, `(time / 60) * 60`, `time - time % 60` and
`time >> 2` are digits of `time`; `x & 0xF0` is a digit as well, because
x & 0xF0 = ((x div 16) mod 16) * 16; `srcIP & 0xFFFFFF00` and `prefix(srcIP, 24)` are digits of the
number that an IPv4 address is. An expression of another kind is its own core.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from terascope.functions import roles
from terascope.functions.base import Scalar, Value, ValueMistake
from terascope.functions.scalars.addresses import prefix as prefix_function
from terascope.partitioning.digits import (
    V4,
    V6,
    AddressPrefix,
    BitSubset,
    Bounded,
    Core,
    Digits,
    NormalForm,
    Opaque,
    added,
    base_extent,
    bits_of,
    divided,
    extent_of,
    masked,
    multiplied,
    number_of,
    remainder,
)
from terascope.plan.build import call
from terascope.plan.evaluate import constant_value
from terascope.plan.expr import Call, Cast, Col, Expr, Lit, Param, children, rebuild, walk
from terascope.types import UINT_MAX, Type, value_range

# ---- from expressions ----------------------------------------------------------------------------


def fixed_value(expr: Expr) -> Value:
    """The value of an expression of constants; None when it is no such, or NULL."""
    if isinstance(expr, Lit):
        return expr.value
    for part in walk(expr):
        if isinstance(part, Col | Param) or is_users(part):
            return None
    try:
        return constant_value(expr, {})
    except ValueMistake:
        return None


def is_users(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function.user_defined


def fixed_number(expr: Expr) -> int | None:
    """The integer that a constant is."""
    if not expr.type.is_integer:
        return None
    value = fixed_value(expr)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


COMMUTATIVE: Final = (
    roles.Conjunction, roles.Disjunction, roles.Multiplication, roles.BitOperation,
)  # fmt: skip


def commutes(function: Scalar) -> bool:
    match function.role:
        case roles.Addition(signs):
            return signs == (1, 1)
        case roles.Comparator() as role:
            return role == role.mirrored
        case role:
            return isinstance(role, COMMUTATIVE)


def normal_form(expr: Expr, bounded: Bounded = None) -> NormalForm:
    """The normal form of an expression."""
    found = computed_form(expr, bounded)
    if found is not None:
        return found
    parts = tuple(form_expr(normal_form(part, bounded), bounded) for part in children(expr))
    if isinstance(expr, Call) and commutes(expr.function):
        parts = tuple(sorted(parts, key=repr))
    base = rebuild(expr, parts) if parts else expr
    if base.type.is_whole and not isinstance(base, Lit):
        return NormalForm(Digits(base))
    if base.type.is_address and isinstance(base, Col):
        return NormalForm(AddressPrefix(base))
    return NormalForm(Opaque(base))


def computed_form(expr: Expr, bounded: Bounded) -> NormalForm | None:
    """The form of an expression that computes with the form of another one."""
    match expr:
        case Cast(operand):
            return cast_form(expr, normal_form(operand, bounded), bounded)
        case Call(Scalar(role=roles.Narrowing()), (operand,)):
            return normal_form(operand, bounded)
        case Call(Scalar(role=roles.AddressMask()), (address, mask)):
            bits = fixed_number(mask)
            form = number_form(normal_form(address, bounded), bounded)
            return None if bits is None or form is None else as_address(form, bits, bounded)
        case Call(function, (address, *lengths)) if function == prefix_function:
            return prefix_form(normal_form(address, bounded), lengths, bounded)
        case Call(function, (operand,)) if expr.type.is_integer and operand.type.is_whole:
            match function.role:
                case roles.Addition((-1,)):
                    return multiplied(number(operand, bounded), -1)
                case roles.BitComplement():
                    form = multiplied(number(operand, bounded), -1)
                    return form and added(form, -1)
        case Call(_, (left, right)) if expr.type.is_integer:
            if left.type.is_whole and right.type.is_whole:
                return binary_form(expr, left, right, bounded)
    return None


def number(expr: Expr, bounded: Bounded) -> NormalForm:
    """The form of a whole number: it is never opaque."""
    form = normal_form(expr, bounded)
    return form if not isinstance(form.core, Opaque) else NormalForm(Digits(expr))


def binary_form(expr: Call, left: Expr, right: Expr, bounded: Bounded) -> NormalForm | None:
    """The form of an operator of which one operand is a constant."""
    role, constant = expr.function.role, fixed_number(right)
    if constant is None and (constant := fixed_number(left)) is not None:
        if isinstance(role, roles.Addition) and role.signs == (1, -1):
            form = multiplied(number(right, bounded), -1)
            return form and added(form, constant)
        if not commutes(expr.function):
            return None
        left = right
    match role, right:
        case roles.Addition((1, -1)), Call(Scalar(role=roles.Remainder()), (dividend, divisor)):
            step = fixed_number(divisor)
            if step is not None and form_key(dividend, bounded) == form_key(left, bounded):
                form = divided(number(left, bounded), step, bounded) if step > 0 else None
                return form and multiplied(form, step)
    return (
        None if constant is None else constant_form(role, number(left, bounded), constant, bounded)
    )


def constant_form(
    role: roles.Role | None, form: NormalForm, constant: int, bounded: Bounded
) -> NormalForm | None:
    match role:
        case roles.Addition((1, sign)):
            return added(form, sign * constant)
        case roles.Multiplication():
            return multiplied(form, constant)
        case roles.FloorDivision():
            return divided(form, constant, bounded)
        case roles.Remainder():
            return remainder(form, constant, bounded)
        case roles.ShiftRight() if 0 <= constant <= 63:
            return divided(form, 1 << constant, bounded)
        case roles.ShiftLeft() if 0 <= constant <= 63:
            return multiplied(form, 1 << constant)
        case roles.BitOperation("&"):
            return masked(form, constant, bounded)
        case roles.BitOperation("|"):  # the bits of the constant are the same for all
            kept = masked(form, ~constant, bounded)
            return kept and added(kept, constant)
        case _:
            return None


def cast_form(cast: Cast, form: NormalForm, bounded: Bounded) -> NormalForm | None:
    """The form of a cast that keeps the value."""
    source, target = cast.operand.type, cast.type
    if cast.renames or (source.is_address and target.is_address):
        return form
    if source.is_address and target.is_integer:
        return number_form(form, bounded)
    if not source.is_whole or isinstance(form.core, Opaque):
        return None
    low, high = extent_of(form, bounded)
    if target.is_address and low >= 0 and high <= UINT_MAX:
        return replace(form, is_address=True)
    if not target.is_whole:
        return None
    least, most = value_range(target)
    return form if least <= low and high <= most else None


def number_form(form: NormalForm, bounded: Bounded) -> NormalForm | None:
    """The number of an address that has this form."""
    if form.is_address:
        return replace(form, is_address=False)
    match form.core:
        case AddressPrefix(base, v4):
            return masked(NormalForm(Digits(number_of(base))), first_bits(v4), bounded)
        case Opaque(base) if base.type.is_address:
            return NormalForm(Digits(number_of(base)))
        case _:
            return None


def first_bits(length: int) -> int:
    """The mask of the first bits of an IPv4 address."""
    return (1 << V4) - (1 << V4 - length)


def as_address(form: NormalForm, bits: int, bounded: Bounded) -> NormalForm | None:
    made = masked(form, bits & UINT_MAX, bounded)
    return made and replace(made, is_address=True)


def prefix_form(form: NormalForm, lengths: list[Expr], bounded: Bounded) -> NormalForm | None:
    """The form of prefix(address, n4[, n6])."""
    known = [length for one in lengths if (length := fixed_number(one)) is not None]
    limits = (V4, V6)
    if len(known) < len(lengths) or any(
        not 0 <= n <= m for n, m in zip(known, limits, strict=False)
    ):
        return None
    match form.core, known:
        case AddressPrefix(base, v4, v6), [first, second]:
            return NormalForm(AddressPrefix(base, min(v4, first), min(v6, second)))
    number = number_form(form, bounded)
    if number is None or (len(known) == 2 and not form.is_address):
        return None
    return as_address(number, first_bits(known[0]), bounded)


# ---- to expressions ------------------------------------------------------------------------------


def integer(value: int) -> Lit:
    if value < 0:
        return Lit(value, Type.INT)
    return Lit(value, Type.UINT if value <= UINT_MAX else Type.ULLONG)


def calculated(operator: str, operand: Expr, constant: int) -> Expr:
    """The operator with a constant; an operator with one that changes nothing is left out."""
    neutral = {"+": 0, "*": 1, "div": 1}
    if neutral.get(operator) == constant:
        return operand
    if operator == "+" and constant < 0:
        operator, constant = "-", -constant
    return call(operator, computable_number(operand), integer(constant))


def computable_number(expr: Expr) -> Expr:
    return call("narrow", expr) if expr.type is Type.WIDE else expr


def form_expr(form: NormalForm, bounded: Bounded = None) -> Expr:
    """An expression of that form, the shortest one of all."""
    known = bits_of(replace(form, is_address=False), bounded)
    if known is not None and known[1] != -1:
        base, mask = known
        low, high = base_extent(base, bounded)
        if low >= 0:
            mask &= (1 << high.bit_length()) - 1
        if not form.is_address:
            return call("&", computable_number(base), integer(mask))
        if isinstance(base, Cast) and base.operand.type.is_address:
            return call("mask", base.operand, integer(mask))
    made = applied_form(form, core_expr(form.core))
    return Cast(made, Type.IP) if form.is_address else made


def applied_form(form: NormalForm, core: Expr) -> Expr:
    return calculated("+", calculated("*", core, form.scale), form.shift)


def core_expr(core: Core) -> Expr:
    match core:
        case Digits(base, step, count, offset):
            made = calculated("div", calculated("+", base, offset), step)
            return made if count is None else calculated("%", made, count)
        case BitSubset(base, mask):
            return call("&", computable_number(base), integer(mask))
        case AddressPrefix(base, v4, v6) if (v4, v6) == (V4, V6):
            return base
        case AddressPrefix(base, v4, v6):
            return Call(prefix_function, (base, integer(v4), integer(v6)), Type.IP)
        case Opaque(base):
            return base


# ---- comparing -----------------------------------------------------------------------------------


def form_key(expr: Expr, bounded: Bounded = None) -> tuple[object, ...]:
    """Equal for expressions of the same normal form, whatever the types of their numbers are."""
    return key_of(normal_form(expr, bounded))


def key_of(form: NormalForm) -> tuple[object, ...]:
    core = form.core
    numbers = tuple(value for name, value in vars(core).items() if name != "base")
    rest = (form.scale, form.shift, form.is_address)
    return (type(core).__name__, numbers, expression_key(core.base), *rest)


def expression_key(expr: Expr) -> tuple[object, ...]:
    parts = tuple(map(expression_key, children(expr)))
    match expr:
        case Col(name) | Param(name):
            return (type(expr).__name__, name)
        case Lit(value, kind):
            return ("Lit", type(value).__name__, value, kind.is_address)
        case Call(function):
            return (function.name, *parts)
        case Cast(type=kind):
            return ("Cast", kind.label, *parts)
        case _:
            return (type(expr).__name__, *parts)
