"""Expressions as generated statements (dissertation 3.4.3): one text for machine code and numpy.

In: expressions over columns of a source. Out: Python statements that compute them from lanes. The
statements use only what means the same for a number and for an array, so that the text in a loop
over tuples is compiled by numba and the text without the loop is run by numpy: both paths give
the same answers by construction.

A value is a pair (value, valid). Text and addresses are seen through their dictionary: an
expression of one such column and constants is computed once for each different value and becomes a
lane of its own (`Source.LOOKUP`); tests of payload bytes are lanes, too (`Source.BYTES`).
`unsupported` says why an expression has no such form; it is then evaluated above.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from terascope.functions.operators import operators
from terascope.low.payload_tests import is_payload_test
from terascope.plan.expr import Call, Case, Cast, Col, Expr, Lit, Param, walk
from terascope.types import INT_MAX, INT_MIN, Type


class Unsupported(Exception):
    """An expression the kernels do not know; the message says what of it."""


class Source(enum.Enum):
    """Where the values of a lane come from."""

    NUMBER = "number"
    """A column of numbers or BOOLs."""
    LOOKUP = "lookup"
    """An expression of one column of text or addresses, by its dictionary."""
    BYTES = "bytes"
    """A test of payload bytes."""


@dataclass(frozen=True)
class Input:
    """A lane the statements read."""

    source: Source
    expr: Expr


@dataclass(frozen=True)
class Term:
    """A computed value: texts for it and for its validity; None for always valid."""

    value: str
    valid: str | None
    type: Type


def is_coded(type: Type) -> bool:
    """Whether values are held as codes of a dictionary."""
    return type is Type.STRING or type.is_address


def is_number(type: Type) -> bool:
    return type.is_numeric or type is Type.BOOL


def unsupported(expr: Expr) -> str | None:
    """Why the kernels cannot compute an expression; None when they can."""
    try:
        Writer().anything(expr)
    except Unsupported as why:
        return str(why)
    return None


def can_overflow(expr: Expr) -> bool:
    """Whether computing it may meet an integer overflow."""
    return any(
        isinstance(e, Call)
        and e.function.name in ("+", "-", "*", "neg", "<<", "div", "abs")
        and e.type.is_integer
        and not harmless(e)
        for e in walk(expr)
    )


def harmless(expr: Call) -> bool:
    """Division by a constant that is not -1."""
    match expr:
        case Call(function, (_, Lit(value=int(value)))) if function.name == "div":
            return value != -1
    return False


Recipe: TypeAlias = Callable[["Writer", Call, "str | None"], Term]


@dataclass
class Writer:
    """Collects the statements of a kernel; equal expressions are computed once."""

    lines: list[str] = field(default_factory=list)
    inputs: dict[Input, int] = field(default_factory=dict)
    _flags: dict[Expr, list[str]] = field(default_factory=dict)
    """By expression, the names of conditions: an integer overflow happened here."""
    _inside: list[Expr] = field(default_factory=list)
    _known: dict[tuple[Expr, str | None], Term] = field(default_factory=dict)
    _names: int = 0

    # ---- names and statements

    def assign(self, text: str) -> str:
        name = f"t{self._names}"
        self._names += 1
        self.lines.append(f"{name} = {text}")
        return name

    def load(self, source: Source, expr: Expr) -> Term:
        """Read a lane: a0, a1, ... with validity m0, m1, ..."""
        key = Input(source, expr)
        known = self._known.get((expr, None))
        if key in self.inputs and known is not None:
            return known
        place = self.inputs.setdefault(key, len(self.inputs))
        term = Term(self.assign(f"a{place}@"), self.assign(f"m{place}@ != 0"), expr.type)
        self._known[expr, None] = term
        return term

    # ---- expressions

    def anything(self, expr: Expr) -> Term | None:
        """A number, or None for text and addresses that are a dictionary's own or derived ones."""
        if is_coded(expr.type):
            if not depends_on_one_coded(expr):
                raise Unsupported(f"{expr.type.value} computed from several columns")
            return None
        if isinstance(expr, Col) and expr.type is Type.BINARY:
            return None
        if not is_number(expr.type):
            raise Unsupported(f"{expr.type.value} values")
        return self.term(expr)

    def term(self, expr: Expr, guard: str | None = None) -> Term:
        """A number or BOOL. Where `guard` is FALSE nobody asks for the value."""
        known = self._known.get((expr, guard)) or self._known.get((expr, None))
        if known is not None:
            return known
        self._inside.append(expr)
        made = self._term(expr, guard)
        self._inside.pop()
        self._known[expr, guard] = made
        return made

    def overflows(self, expr: Expr) -> str:
        """The condition that computing the expression met an integer overflow."""
        return " | ".join(name for part in walk(expr) for name in self._flags.get(part, ()))

    def _term(self, expr: Expr, guard: str | None) -> Term:
        match expr:
            case Lit(value, type):
                return literal(value, type)
            case Param(name):
                raise Unsupported(f"parameter ${name}")
            case Col(name, type) if is_number(type):
                return self.load(Source.NUMBER, expr)
            case Col(name, type):
                raise Unsupported(f"{type.value} {name} as a number")
        if is_payload_test(expr):
            return self.load(Source.BYTES, expr)
        if any(is_coded(e.type) or e.type is Type.BINARY for e in walk(expr)):
            if depends_on_one_coded(expr) and is_number(expr.type):
                return self.load(Source.LOOKUP, expr)
            shared = self.same_dictionary(expr)
            if shared is not None:
                return shared
        match expr:
            case Call(function):
                recipe = RECIPES.get(function.name)
                if recipe is None or function.user_defined:
                    raise Unsupported(f"function {function.name}")
                return recipe(self, expr, guard)
            case Case():
                return self.case(expr, guard)
            case Cast(operand, type):
                return convert(self, self.term(operand, guard), type)
        raise Unsupported(f"{expr.type.value} value")

    def same_dictionary(self, expr: Expr) -> Term | None:
        """Two addresses are equal when their codes are: all of them share a dictionary."""
        match expr:
            case Call(function, (Col() as a, Col() as b)) if function.name in ("=", "!="):
                if a.type.is_address and b.type.is_address:
                    left, right = self.load_code(a), self.load_code(b)
                    return self.made(
                        f"{left.value} {'==' if function.name == '=' else '!='} {right.value}",
                        both(left.valid, right.valid),
                        Type.BOOL,
                    )
        return None

    def load_code(self, column: Col) -> Term:
        return self.load(Source.LOOKUP, column)

    def made(self, text: str, valid: str | None, type: Type) -> Term:
        return Term(self.assign(text), valid, type)

    def flag(self, condition: str, valid: str | None, guard: str | None) -> None:
        """Note an overflow, where somebody asks for the value."""
        parts = [f"({condition})", *(p for p in (valid, guard) if p is not None)]
        self._flags.setdefault(self._inside[-1], []).append(self.assign(" & ".join(parts)))

    def case(self, expr: Case, guard: str | None) -> Term:
        """From the last branch to the first, each guarded by the conditions before it."""
        free = guard
        taken: list[tuple[str, Term]] = []
        for when, then in expr.branches:
            test = self.term(when, free)
            true = self.assign(is_true(test))
            chosen = self.assign(f"{true} & {free}") if free else true
            taken.append((true, convert(self, self.term(then, chosen), expr.type)))
            not_true = f"({true} == False)"
            free = self.assign(f"{not_true} & {free}" if free else not_true)
        result = convert(self, self.term(expr.otherwise, free), expr.type)
        for true, term in reversed(taken):
            result = self.pick(true, term, result)
        return result

    def pick(self, condition: str, yes: Term, no: Term) -> Term:
        valid = None
        if yes.valid is not None or no.valid is not None:
            valid = self.assign(f"pick({condition}, {yes.valid or 'True'}, {no.valid or 'True'})")
        return self.made(f"pick({condition}, {yes.value}, {no.value})", valid, yes.type)


def depends_on_one_coded(expr: Expr) -> bool:
    """Whether an expression is of one dictionary column and constants, and may be evaluated by
    itself: once for each different value.
    """
    columns = {e for e in walk(expr) if isinstance(e, Col)}
    if len(columns) != 1 or any(isinstance(e, Param) for e in walk(expr)):
        return False
    (column,) = columns
    partial = any(isinstance(e, Call) and e.function.partial for e in walk(expr))
    return is_coded(column.type) and expr.type is not Type.BINARY and not partial


# ---- validity and literals -----------------------------------------------------------------------


def both(left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return left or right
    return left if left == right else f"({left} & {right})"


def is_true(term: Term) -> str:
    return term.value if term.valid is None else f"({term.value} & {term.valid})"


def literal(value: object, type: Type) -> Term:
    match value:
        case None:
            zero = "0.0" if type is Type.FLOAT else "False" if type is Type.BOOL else "0"
            return Term(zero, "False", type)
        case bool():
            return Term(str(value), None, Type.BOOL)
        case int():
            text = str(value) if value != INT_MIN else f"({-INT_MAX} - 1)"
            return Term(f"np.int64({text})", None, type)
        case float():
            if math.isnan(value):
                return Term("np.nan", None, type)
            if math.isinf(value):
                return Term("np.inf" if value > 0 else "(-np.inf)", None, type)
            return Term(repr(value), None, type)
        case _:
            raise Unsupported(f"{type.value} constant as a number")


def convert(w: Writer, term: Term, type: Type) -> Term:
    """A value as one of another type; NULL where there is none."""
    if term.type is type or (term.type.is_integer and type.is_integer):
        return Term(term.value, term.valid, type)
    if term.type is Type.NULL:
        return literal(None, type)
    if type is Type.FLOAT and is_number(term.type):
        return Term(f"np.float64({term.value})", term.valid, type)
    if type.is_integer and term.type is Type.BOOL:
        return Term(f"np.int64({term.value})", term.valid, type)
    if type is Type.BOOL and is_number(term.type):
        return w.made(f"{term.value} != 0", term.valid, type)
    if type.is_integer and term.type is Type.FLOAT:
        value = term.value
        low, high = f"({value} >= -9223372036854775808.0)", f"({value} < 9223372036854775808.0)"
        fits = w.assign(f"{low} & {high}")
        safe = w.assign(f"np.int64(pick({fits}, {value}, 0.0))")
        return Term(safe, both(term.valid, fits), type)
    raise Unsupported(f"a cast of {term.type.value} to {type.value}")


# ---- recipes -------------------------------------------------------------------------------------


def alike(w: Writer, call: Call, guard: str | None) -> tuple[Term, Term]:
    """Two numbers of one kind."""
    left, right = (w.term(a, guard) for a in call.args)
    if Type.FLOAT in (left.type, right.type):
        return convert(w, left, Type.FLOAT), convert(w, right, Type.FLOAT)
    if left.type is Type.BOOL and right.type is Type.BOOL:
        return convert(w, left, Type.INT), convert(w, right, Type.INT)
    if not all(t.type.is_integer or t.type is Type.NULL for t in (left, right)):
        raise Unsupported(f"{call.function.name} of {left.type.value} and {right.type.value}")
    return left, right


def equal_text(a: Term, b: Term) -> str:
    if a.type is not Type.FLOAT:
        return f"({a.value} == {b.value})"
    nans = f"(({a.value} != {a.value}) & ({b.value} != {b.value}))"
    return f"(({a.value} == {b.value}) | {nans})"


def less_text(a: Term, b: Term) -> str:
    """NaN is the largest FLOAT."""
    if a.type is not Type.FLOAT:
        return f"({a.value} < {b.value})"
    below_nan = f"(({a.value} == {a.value}) & ({b.value} != {b.value}))"
    return f"(({a.value} < {b.value}) | {below_nan})"


COMPARED: Final[Mapping[str, Callable[[Term, Term], str]]] = {
    "=": equal_text,
    "!=": lambda a, b: f"({equal_text(a, b)} == False)",
    "<": less_text,
    ">": lambda a, b: less_text(b, a),
    "<=": lambda a, b: f"({less_text(b, a)} == False)",
    ">=": lambda a, b: f"({less_text(a, b)} == False)",
}


def comparison(w: Writer, call: Call, guard: str | None) -> Term:
    a, b = alike(w, call, guard)
    return w.made(COMPARED[call.function.name](a, b), both(a.valid, b.valid), Type.BOOL)


def conjunction(w: Writer, call: Call, guard: str | None) -> Term:
    """AND with three values: FALSE decides, whatever is NULL."""
    return junction(w, call, guard, decides=False)


def disjunction(w: Writer, call: Call, guard: str | None) -> Term:
    return junction(w, call, guard, decides=True)


def junction(w: Writer, call: Call, guard: str | None, decides: bool) -> Term:
    terms = [convert(w, w.term(a, guard), Type.BOOL) for a in call.args]
    return joined(w, terms, decides)


def joined(w: Writer, terms: list[Term], decides: bool) -> Term:
    symbol = " | " if decides else " & "
    if all(t.valid is None for t in terms):
        return w.made(symbol.join(f"({t.value})" for t in terms), None, Type.BOOL)
    deciding = []
    for t in terms:
        own = t.value if decides else f"({t.value} == False)"
        deciding.append(own if t.valid is None else f"({own} & {t.valid})")
    decided = w.assign(" | ".join(deciding))
    every = None
    for t in terms:
        every = both(every, t.valid)
    value = decided if decides else f"({decided} == False)"
    return w.made(value, w.assign(f"{decided} | {every}"), Type.BOOL)


def negation(w: Writer, call: Call, guard: str | None) -> Term:
    term = convert(w, w.term(call.args[0], guard), Type.BOOL)
    return w.made(f"{term.value} == False", term.valid, Type.BOOL)


def is_null(w: Writer, call: Call, guard: str | None) -> Term:
    term = w.term(call.args[0], guard)
    return (
        Term("False", None, Type.BOOL)
        if term.valid is None
        else w.made(f"({term.valid}) == False", None, Type.BOOL)
    )


def membership(w: Writer, call: Call, guard: str | None) -> Term:
    first = call.args[0]
    equals = [
        comparison(w, Call(EQUALS, (first, item), Type.BOOL), guard) for item in call.args[1:]
    ]
    return joined(w, equals, decides=True)


def added(w: Writer, call: Call, guard: str | None) -> Term:
    a, b = alike(w, call, guard)
    valid, symbol = both(a.valid, b.valid), call.function.name
    result = w.made(f"{a.value} {symbol} {b.value}", valid, call.type)
    if a.type is not Type.FLOAT:
        x, y, r = a.value, b.value, result.value
        differs = f"({x} ^ {r}) & ({y} ^ {r})" if symbol == "+" else f"({x} ^ {y}) & ({x} ^ {r})"
        w.flag(f"({differs}) < 0", valid, guard)
    return result


def multiplied(w: Writer, call: Call, guard: str | None) -> Term:
    """The product as FLOAT tells an overflow, but near 2^63, where the sign does."""
    a, b = alike(w, call, guard)
    valid = both(a.valid, b.valid)
    result = w.made(f"{a.value} * {b.value}", valid, call.type)
    if a.type is not Type.FLOAT:
        size = w.assign(f"abs(np.float64({a.value}) * np.float64({b.value}))")
        sign = f"(({result.value} < 0) != (({a.value} < 0) != ({b.value} < 0)))"
        w.flag(f"({size} > 9.3e18) | (({size} > 9.1e18) & {sign})", valid, guard)
    return result


def floor_divided(w: Writer, call: Call, guard: str | None) -> Term:
    """`div` and `%`: towards minus infinity; by zero is NULL."""
    a, b = alike(w, call, guard)
    symbol = "//" if call.function.name == "div" else "%"
    if isinstance(call.args[1], Lit) and call.args[1].value:
        divisor, valid = b.value, both(a.valid, b.valid)
    else:
        nonzero = w.assign(f"{b.value} != 0")
        divisor, valid = w.assign(f"pick({nonzero}, {b.value}, 1)"), both(nonzero, a.valid)
        valid = both(valid, b.valid)
    if symbol == "//" and not harmless(call):
        smallest = f"({-INT_MAX} - 1)"
        w.flag(f"({a.value} == np.int64{smallest}) & ({divisor} == -1)", valid, guard)
    return w.made(f"{a.value} {symbol} {divisor}", valid, call.type)


def quotient(w: Writer, call: Call, guard: str | None) -> Term:
    a, b = (convert(w, w.term(x, guard), Type.FLOAT) for x in call.args)
    nonzero = w.assign(f"{b.value} != 0.0")
    divisor = w.assign(f"pick({nonzero}, {b.value}, 1.0)")
    valid = both(both(nonzero, a.valid), b.valid)
    return w.made(f"{a.value} / {divisor}", valid, Type.FLOAT)


def bits(w: Writer, call: Call, guard: str | None) -> Term:
    a, b = alike(w, call, guard)
    text = f"{a.value} {call.function.name} {b.value}"
    return w.made(text, both(a.valid, b.valid), call.type)


def inverted(w: Writer, call: Call, guard: str | None) -> Term:
    term = w.term(call.args[0], guard)
    return w.made(f"~{term.value}", term.valid, call.type)


def negative(w: Writer, call: Call, guard: str | None) -> Term:
    term = w.term(call.args[0], guard)
    if term.type is not Type.FLOAT:
        w.flag(f"{term.value} == np.int64({-INT_MAX} - 1)", term.valid, guard)
    return w.made(f"-({term.value})", term.valid, call.type)


def shifted(w: Writer, call: Call, guard: str | None) -> Term:
    a, b = alike(w, call, guard)
    possible = w.assign(f"({b.value} >= 0) & ({b.value} <= 63)")
    places = w.assign(f"pick({possible}, {b.value}, 0)")
    valid = both(both(possible, a.valid), b.valid)
    result = w.made(f"{a.value} {call.function.name} {places}", valid, call.type)
    if call.function.name == "<<":
        w.flag(f"({result.value} >> {places}) != {a.value}", valid, guard)
    return result


def coalesced(w: Writer, call: Call, guard: str | None) -> Term:
    terms = [convert(w, w.term(a, guard), call.type) for a in call.args]
    result = terms[-1]
    for term in reversed(terms[:-1]):
        result = term if term.valid is None else w.pick(term.valid, term, result)
    return result


def absolute(w: Writer, call: Call, guard: str | None) -> Term:
    term = w.term(call.args[0], guard)
    if term.type is not Type.FLOAT:
        w.flag(f"{term.value} == np.int64({-INT_MAX} - 1)", term.valid, guard)
    return w.made(f"abs({term.value})", term.valid, call.type)


EQUALS: Final = operators["="]

RECIPES: Final[Mapping[str, Recipe]] = {
    **dict.fromkeys(COMPARED, comparison),
    "and": conjunction,
    "or": disjunction,
    "not": negation,
    "is_null": is_null,
    "in": membership,
    "+": added,
    "-": added,
    "*": multiplied,
    "div": floor_divided,
    "%": floor_divided,
    "mod": floor_divided,
    "/": quotient,
    "&": bits,
    "|": bits,
    "^": bits,
    "~": inverted,
    "neg": negative,
    "<<": shifted,
    ">>": shifted,
    "coalesce": coalesced,
    "abs": absolute,
}
