"""Recipes of numbers: arithmetic that notes integer overflows, bits, and the digits of FLOATs.

In: a call. Out: its statements. Division by zero is NULL; INTs divide towards minus infinity. A
digit (terascope.functions.exact_floats) is cut off what the higher digits left of a value; all of
these steps are exact. The digits of a value beyond the ordinary range are made elsewhere
(terascope.execute.grouping.pending_tuples): here they are anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from terascope.functions import roles
from terascope.functions.aggregates.float_sums import FLOAT_DIGIT, FLOAT_TOTAL
from terascope.functions.base import Scalar
from terascope.functions.exact_floats import DIGITS, LIMIT, WEIGHTS
from terascope.functions.signatures import INTEGER, NUMBER, signature
from terascope.kernels.codegen.statements import (
    SMALLEST,
    Recipe,
    Statements,
    Term,
    Unsupported,
    alike,
    both,
    convert,
)
from terascope.plan.expr import Call, Expr, Lit, walk
from terascope.types import Type


def added(w: Statements, call: Call, guard: str | None) -> Term:
    """X + y, x - y and -x."""
    role = call.function.role
    assert isinstance(role, roles.Addition)
    if len(role.signs) == 1:
        return negative(w, call, guard)
    a, b = alike(w, call, guard)
    valid, symbol = both(a.valid, b.valid), "+" if role.signs[1] > 0 else "-"
    result = w.made(f"{a.value} {symbol} {b.value}", valid, call.type)
    if a.type is not Type.FLOAT:
        x, y, r = a.value, b.value, result.value
        differs = f"({x} ^ {r}) & ({y} ^ {r})" if symbol == "+" else f"({x} ^ {y}) & ({x} ^ {r})"
        w.flag(f"({differs}) < 0", valid, guard)
    return result


def multiplied(w: Statements, call: Call, guard: str | None) -> Term:
    """The product as FLOAT tells an overflow, but near 2^63, where the sign does."""
    a, b = alike(w, call, guard)
    valid = both(a.valid, b.valid)
    result = w.made(f"{a.value} * {b.value}", valid, call.type)
    if a.type is not Type.FLOAT:
        size = w.assign(f"abs(np.float64({a.value}) * np.float64({b.value}))")
        sign = f"(({result.value} < 0) != (({a.value} < 0) != ({b.value} < 0)))"
        w.flag(f"({size} > 9.3e18) | (({size} > 9.1e18) & {sign})", valid, guard)
    return result


def floor_divided(w: Statements, call: Call, guard: str | None) -> Term:
    """`div` and `%`: towards minus infinity; by zero is NULL."""
    a, b = alike(w, call, guard)
    symbol = "//" if isinstance(call.function.role, roles.FloorDivision) else "%"
    if isinstance(call.args[1], Lit) and call.args[1].value:
        divisor, valid = b.value, both(a.valid, b.valid)
    else:
        nonzero = w.assign(f"{b.value} != 0")
        divisor, valid = w.assign(f"pick({nonzero}, {b.value}, 1)"), both(nonzero, a.valid)
        valid = both(valid, b.valid)
    if symbol == "//" and not harmless(call):
        w.flag(f"({a.value} == {SMALLEST}) & ({divisor} == -1)", valid, guard)
    return w.made(f"{a.value} {symbol} {divisor}", valid, call.type)


def quotient(w: Statements, call: Call, guard: str | None) -> Term:
    a, b = (convert(w, w.term(x, guard), Type.FLOAT) for x in call.args)
    nonzero = w.assign(f"{b.value} != 0.0")
    divisor = w.assign(f"pick({nonzero}, {b.value}, 1.0)")
    valid = both(both(nonzero, a.valid), b.valid)
    return w.made(f"{a.value} / {divisor}", valid, Type.FLOAT)


def bits(w: Statements, call: Call, guard: str | None) -> Term:
    role = call.function.role
    assert isinstance(role, roles.BitOperation)
    a, b = alike(w, call, guard)
    text = f"{a.value} {role.symbol} {b.value}"
    return w.made(text, both(a.valid, b.valid), call.type)


def unary(text: str, overflows: bool) -> Recipe:
    """`text`: the operation; `overflows`: on the smallest integer."""

    def recipe(w: Statements, call: Call, guard: str | None) -> Term:
        term = w.term(call.args[0], guard)
        if overflows and term.type is not Type.FLOAT:
            w.flag(f"{term.value} == {SMALLEST}", term.valid, guard)
        return w.made(text.format(term.value), term.valid, call.type)

    return recipe


negative: Final = unary("-({})", overflows=True)


def narrowed(w: Statements, call: Call, guard: str | None) -> Term:
    """A WIDE as a number; above 2^63 - 1 it is an overflow."""
    term = w.term(call.args[0], guard)
    w.flag(f"{term.value} >= 0", term.valid, guard)
    return w.made(f"{term.value} ^ {SMALLEST}", term.valid, call.type)


def shifted(w: Statements, call: Call, guard: str | None) -> Term:
    a, b = alike(w, call, guard)
    possible = w.assign(f"({b.value} >= 0) & ({b.value} <= 63)")
    places = w.assign(f"pick({possible}, {b.value}, 0)")
    valid = both(both(possible, a.valid), b.valid)
    to_left = isinstance(call.function.role, roles.ShiftLeft)
    result = w.made(f"{a.value} {'<<' if to_left else '>>'} {places}", valid, call.type)
    if to_left:
        w.flag(f"({result.value} >> {places}) != {a.value}", valid, guard)
    return result


ARITHMETIC_RECIPES: Final[Mapping[type[roles.Role], Recipe]] = {
    roles.Addition: added,
    roles.Multiplication: multiplied,
    roles.FloorDivision: floor_divided,
    roles.Remainder: floor_divided,
    roles.Quotient: quotient,
    roles.BitOperation: bits,
    roles.BitComplement: unary("~{}", overflows=False),
    roles.ShiftLeft: shifted,
    roles.ShiftRight: shifted,
    roles.Magnitude: unary("abs({})", overflows=True),
    roles.Narrowing: narrowed,
}


# ---- overflows -----------------------------------------------------------------------------------


def can_overflow(expr: Expr) -> bool:
    """Whether computing it may meet an integer overflow."""
    return any(
        isinstance(e, Call)
        and e.function.role is not None
        and e.function.role.can_overflow
        and e.type.is_integer
        and not harmless(e)
        for e in walk(expr)
    )


def harmless(expr: Call) -> bool:
    """Division by a constant that is not -1."""
    match expr:
        case Call(Scalar(role=roles.FloorDivision()), (_, Lit(value=int(value)))):
            return value != -1
    return False


def only_kernels(*args: object) -> None:
    raise AssertionError("float_rest stands only in generated kernels, never in a plan")


FLOAT_REST: Final = Scalar(
    "float_rest",
    signature("float_rest", NUMBER, INTEGER, returns=Type.FLOAT),
    only_kernels,
    doc="float_rest(x, k): what is left of x without its digits from k on",
)


def place_of(call: Call) -> int:
    match call.args[1]:
        case Lit(value=int(place)) if 0 <= place <= DIGITS:
            return place
    raise Unsupported("a digit whose place is not constant")


def digit(w: Statements, call: Call, guard: str | None) -> Term:
    place = place_of(call)
    left = w.term(Call(FLOAT_REST, (call.args[0], Lit(place + 1, Type.INT)), Type.FLOAT), guard)
    return w.made(f"np.int64({left.value} * {1 / WEIGHTS[place]!r})", left.valid, Type.LLONG)


def rest(w: Statements, call: Call, guard: str | None) -> Term:
    place = place_of(call)
    if place == DIGITS:
        value = convert(w, w.term(call.args[0], guard), Type.FLOAT)
        size = w.assign(f"abs({value.value})")
        return w.made(f"pick({size} < {LIMIT!r}, {value.value}, 0.0)", value.valid, Type.FLOAT)
    higher = Call(FLOAT_REST, (call.args[0], Lit(place + 1, Type.INT)), Type.FLOAT)
    left = w.term(higher, guard)
    own = w.term(Call(FLOAT_DIGIT, call.args, Type.LLONG), guard)
    taken = f"np.float64({own.value}) * {WEIGHTS[place]!r}"
    return w.made(f"{left.value} - {taken}", left.valid, Type.FLOAT)


def total(w: Statements, call: Call, guard: str | None) -> Term:
    terms = [w.term(arg, guard) for arg in call.args]
    valid: str | None = None
    for term in terms:
        valid = both(valid, term.valid)
    values = ", ".join(term.value for term in terms)
    return w.made(f"float_total({values})", valid, Type.FLOAT)


FLOAT_RECIPES: Final[Mapping[Scalar, Recipe]] = {
    FLOAT_DIGIT: digit,
    FLOAT_REST: rest,
    FLOAT_TOTAL: total,
}
