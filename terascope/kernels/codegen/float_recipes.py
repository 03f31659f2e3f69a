"""Recipes of the digits of FLOATs (terascope.functions.exact_floats), and of the sums they make.

In: a call. Out: its statements. A digit is cut off what the higher digits left of a value; all of
these steps are exact. The digits of a value beyond the ordinary range are made elsewhere
(terascope.execute.grouping.set_apart): here they are anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from terascope.functions.aggregates.float_sums import FLOAT_DIGIT, FLOAT_TOTAL
from terascope.functions.base import Scalar
from terascope.functions.exact_floats import DIGITS, LIMIT, WEIGHTS
from terascope.functions.signatures import INTEGER, NUMBER, signature
from terascope.kernels.codegen.statements import Recipe, Statements, convert
from terascope.kernels.codegen.terms import Term, Unsupported, both
from terascope.plan.expr import Call, Lit
from terascope.types import Type


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
