"""The operators of GSQL as scalar functions, named as they are written.

In: nothing. Out: `operators`, by name. The binder makes calls of them; `CASE` and `CAST` are
expressions of their own, `BETWEEN` is two comparisons, `/` is `div` or `/` as the language says.

Integers are signed 64-bit: what does not fit stops the run with a message, it never wraps round.
Division by zero is NULL.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from terascope.functions import roles, slopes
from terascope.functions.base import Scalar, TypeMistake, TypeRule, Value, unordered
from terascope.functions.signatures import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Want,
    expect,
    known,
    signature,
    signed,
    unified,
)
from terascope.functions.values import as_text, compare, whole
from terascope.types import BIAS, Type, unify

# ---- logic ---------------------------------------------------------------------------------------


def _and(*args: bool | None) -> bool | None:
    if any(a is False for a in args):
        return False
    return None if any(a is None for a in args) else True


def _or(*args: bool | None) -> bool | None:
    if any(a is True for a in args):
        return True
    return None if any(a is None for a in args) else False


def _in(value: Value, *items: Value) -> bool | None:
    if value is None:
        return None
    if any(i is not None and compare(value, i) == 0 for i in items):
        return True
    return None if any(i is None for i in items) else False


def _coalesce(*args: Value) -> Value:
    """The first argument that is not NULL."""
    return next((a for a in args if a is not None), None)


def _conditions(word: str) -> TypeRule:
    def rule(args: tuple[Type, ...]) -> Type:
        if not args:
            raise TypeMistake(f"{word} takes conditions")
        for type_ in args:
            if not BOOLEAN.takes(type_):
                raise TypeMistake(f"{word} takes conditions, not {type_.label}")
        return Type.BOOL

    return rule


def _members(args: tuple[Type, ...]) -> Type:
    if len(args) < 2:
        raise TypeMistake("IN takes a value and a list of values")
    for item in args[1:]:
        if unify(args[0], item) is None:
            raise TypeMistake(f"cannot look for {args[0].value} among values of {item.value}")
    return Type.BOOL


# ---- comparison ----------------------------------------------------------------------------------


def _comparable(args: tuple[Type, ...]) -> Type:
    left, right = expect("a comparison", args, ANYTHING, ANYTHING)
    if unify(left, right) is None:
        raise TypeMistake(f"cannot compare {left.label} with {right.label}{_advice(left, right)}")
    return Type.BOOL


def _advice(left: Type, right: Type) -> str:
    pair = {left, right}
    if pair & {Type.IP, Type.IPV6} and Type.STRING in pair:
        return "; write the address as IP '10.0.0.1'"
    if Type.BOOL in pair and (left.is_integer or right.is_integer):
        return "; write TRUE or FALSE"
    return ""


def _comparison(name: str, outcomes: str) -> Scalar:
    """`outcomes` has a sign for each outcome of comparing that it is TRUE for."""
    role = roles.Comparator("<" in outcomes, "=" in outcomes, ">" in outcomes)

    def evaluate(left: Value, right: Value) -> bool:
        order = compare(left, right)
        return role.less if order < 0 else role.greater if order > 0 else role.equal

    return Scalar(
        name, _comparable, evaluate, slope=slopes.folding(evaluate), cost_ns=2, payload_ns=10,
        takes_held=True, role=role,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def like_regex(pattern: str) -> re.Pattern[str]:
    r"""A LIKE pattern as regular expression: % is any text, _ one character, \c the character c."""
    parts, characters = [], iter(pattern)
    for c in characters:
        if c == "%":
            parts.append(".*")
        elif c == "_":
            parts.append(".")
        else:
            parts.append(re.escape(next(characters, c) if c == "\\" else c))
    return re.compile("".join(parts), re.DOTALL)


def _like(value: str | bytes, pattern: str | bytes) -> bool:
    return like_regex(as_text(pattern)).fullmatch(as_text(value)) is not None


# ---- arithmetic ----------------------------------------------------------------------------------

VERBS: Final = {
    "+": "add {0} and {1}",
    "-": "subtract {1} from {0}",
    "*": "multiply {0} by {1}",
    "/": "divide {0} by {1}",
    "div": "divide {0} by {1}",
    "%": "take {0} modulo {1}",
}


def _numeric(name: str, result: Callable[[Type], Type] = lambda t: t) -> TypeRule:
    """Two numbers (integers only for div and %); the result is of their common type."""
    want = INTEGER if name in ("div", "%") else NUMBER

    def rule(args: tuple[Type, ...]) -> Type:
        left, right = expect(name, args, ANYTHING, ANYTHING)
        if not (want.takes(left) and want.takes(right)):
            verb = VERBS[name].format(left.label, right.label)
            if name == "+" and left.is_text and right.is_text:
                raise TypeMistake(f"cannot {verb}; to join texts write ||")
            if want is INTEGER and Type.FLOAT in (left, right):
                raise TypeMistake(f"cannot {verb} as integers; write CAST(... AS LLONG)")
            raise TypeMistake(f"cannot {verb}")
        return result(known(unified(name, args), Type.INT))

    return rule


def _bits(name: str) -> TypeRule:
    return signature(
        name, INTEGER, INTEGER, returns=lambda args: known(unified(name, args), Type.INT)
    )


def _shift_type(name: str) -> TypeRule:
    return signature(name, INTEGER, INTEGER, returns=lambda args: known(args[0], Type.INT))


def _neg(value: Value) -> Value:
    return -value if isinstance(value, float) else whole(-value, f"-({value})")


def _div(left: int, right: int) -> int | None:
    """Rounds down; by zero is NULL."""
    return whole(left // right, f"{left} div {right}") if right else None


def _mod(left: int, right: int) -> int | None:
    """Takes the sign of the divisor; by zero is NULL."""
    return left % right if right else None


def _quotient(left: int | float, right: int | float) -> float | None:
    return float(left) / float(right) if right else None


def _narrow(held: int) -> int:
    """A WIDE as a number to compute with."""
    return whole(held + BIAS, str(held + BIAS))


def _shift_left(value: int, places: int) -> int | None:
    return whole(value << places, f"{value} << {places}") if 0 <= places <= 63 else None


def _shift_right(value: int, places: int) -> int | None:
    return value >> places if 0 <= places <= 63 else None


def _mask(address: bytes, mask: int) -> bytes | None:
    """Masks an IPv4 address; IPv6 is NULL."""
    if address[0] != 4:
        return None
    bits = int.from_bytes(address[1:], "big") & mask & 0xFFFFFFFF
    return b"\4" + bits.to_bytes(4, "big")


def _mask_type(args: tuple[Type, ...]) -> Type:
    left, right = expect("a mask", args, ANYTHING, ANYTHING)
    if not (left.is_address and INTEGER.takes(right)):
        raise TypeMistake(f"cannot mask {left.label} with {right.label}; write ip & 0xFFFFFF00")
    return Type.IP


def _operator(
    name: str,
    type_rule: TypeRule,
    evaluate: Callable[..., Value],
    role: roles.Role,
    slope: slopes.SlopeRule = unordered,
    cost_ns: int = 2,
) -> Scalar:
    rule = slopes.folding(evaluate, slope)
    return Scalar(name, type_rule, evaluate, slope=rule, cost_ns=cost_ns, role=role)


def _arithmetic(
    name: str,
    operation: Callable[[Value, Value], Value],
    role: roles.Role,
    slope: slopes.SlopeRule,
    result: Callable[[Type], Type] = lambda t: t,
) -> Scalar:
    """An operation on two numbers: as FLOAT when one is, else as integers that must fit."""

    def evaluate(left: Value, right: Value) -> Value:
        if isinstance(left, float) or isinstance(right, float):
            return operation(float(left), float(right))
        return whole(operation(left, right), f"{left} {name} {right}")

    return _operator(name, _numeric(name, result), evaluate, role, slope)


def _concatenate(left: str | bytes, right: str | bytes) -> str:
    return as_text(left) + as_text(right)


_NEGATIVE: Final = signature("-", NUMBER, returns=lambda args: signed(known(args[0], Type.INT)))
_COMPLEMENT: Final = signature("~", INTEGER, returns=lambda args: signed(known(args[0], Type.INT)))
_NOT: Final = signature("NOT", BOOLEAN, returns=Type.BOOL)
_LIKE: Final = signature("LIKE", TEXT, TEXT, returns=Type.BOOL)
_JOINED: Final = signature("||", TEXT, TEXT, returns=Type.STRING)
_IS_NULL: Final = signature("IS NULL", ANYTHING, returns=Type.BOOL)
_COALESCE: Final = signature(
    "COALESCE", ANYTHING, returns=lambda args: unified("COALESCE", args), repeated=True
)
_RATIO: Final = _numeric("/", lambda _: Type.FLOAT)
_NARROW: Final = signature("narrow", Want("a WIDE", lambda t: t is Type.WIDE), returns=Type.ULLONG)

_ALL: Final = (
    Scalar("and", _conditions("AND"), _and, strict=False, cost_ns=1, role=roles.Conjunction()),
    Scalar("or", _conditions("OR"), _or, strict=False, cost_ns=1, role=roles.Disjunction()),
    _operator("not", _NOT, operator.not_, roles.Negation(), cost_ns=1),
    _comparison("=", "="),
    _comparison("!=", "<>"),
    _comparison("<", "<"),
    _comparison("<=", "<="),
    _comparison(">", ">"),
    _comparison(">=", "=>"),
    _arithmetic("+", operator.add, roles.Addition((1, 1)), slopes.added),
    _arithmetic("-", operator.sub, roles.Addition((1, -1)), slopes.subtracted, signed),
    _operator("neg", _NEGATIVE, _neg, roles.Addition((-1,)), slopes.negated),
    _arithmetic("*", operator.mul, roles.Multiplication(), slopes.multiplied),
    _operator("/", _RATIO, _quotient, roles.Quotient(), slopes.divided_as_float, 5),
    _operator("div", _numeric("div"), _div, roles.FloorDivision(), slopes.divided, 5),
    _operator("%", _numeric("%"), _mod, roles.Remainder()),
    _operator("&", _bits("&"), operator.and_, roles.BitOperation("&"), slopes.masked),
    _operator("|", _bits("|"), operator.or_, roles.BitOperation("|"), slopes.filled),
    _operator("^", _bits("^"), operator.xor, roles.BitOperation("^")),
    _operator("~", _COMPLEMENT, operator.invert, roles.BitComplement(), slopes.negated),
    _operator("<<", _shift_type("<<"), _shift_left, roles.ShiftLeft(), slopes.shifted_left),
    _operator(">>", _shift_type(">>"), _shift_right, roles.ShiftRight(), slopes.shifted_right),
    _operator("narrow", _NARROW, _narrow, roles.Narrowing(), cost_ns=1),
    _operator("mask", _mask_type, _mask, roles.AddressMask(), cost_ns=5),
    _operator("like", _LIKE, _like, roles.TextPattern(), cost_ns=300),
    Scalar(
        "||", _JOINED, _concatenate, slope=slopes.folding(_concatenate), cost_ns=40,
        spark=lambda call: call.F.concat(*call.texts),
    ),
    Scalar(
        "in", _members, _in, strict=False, cost_ns=10, payload_ns=20, unified_from=0,
        takes_held=True, role=roles.Membership(),
    ),
    Scalar(
        "is_null", _IS_NULL, lambda a: a is None, strict=False, cost_ns=1, payload_ns=1,
        takes_held=True, role=roles.NullTest(),
    ),
    Scalar(
        "coalesce", _COALESCE, _coalesce, strict=False, cost_ns=2, unified_from=0,
        takes_held=True, role=roles.Coalescing(),
    ),
)  # fmt: skip

operators: Final[dict[str, Scalar]] = {scalar.name: scalar for scalar in _ALL}

_COMPARATORS: Final = {s.role: s for s in _ALL if isinstance(s.role, roles.Comparator)}


def comparison(role: roles.Comparator) -> Scalar:
    """The comparison that is TRUE for these outcomes."""
    return _COMPARATORS[role]
