"""The text of a kernel while it is written: values with their validity, and statements.

In: types, constants, expressions. Out: a `Term`, the text of a value and of whether it is one (not
NULL); an `Input`, a vector that statements read; lines of Python that give each step a name:
reading a vector, choosing one of two values, converting to another type, noting an integer
overflow. `terascope.kernels.codegen.expressions` adds how an expression becomes a term; recipes,
which need the terms of their arguments, see it only as `Statements`.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from terascope.plan.expr import Call, Expr, walk
from terascope.plan.hashing import hashed_once
from terascope.types import INT_MAX, INT_MIN, Type, value_range


class Unsupported(Exception):
    """An expression without a form in the kernels; the message names the part."""


class InputKind(enum.Enum):
    """The origin of the values of a vector."""

    NUMBER = "number"
    """A column of numbers or BOOLs."""
    LOOKUP = "lookup"
    """An expression of one column of text or addresses, by its dictionary."""
    BYTES = "bytes"
    """A test of payload bytes."""
    SLICES = "slices"
    """The slice that a column of times lies in."""
    MEMBERS = "members"
    """Whether a number is in a long list of constants."""


@hashed_once
@dataclass(frozen=True)
class Input:
    source: InputKind
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
    return type.is_numeric or type is Type.BOOL or type is Type.WIDE


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
            raise Unsupported(f"{type.label} constant as a number")


@dataclass
class Statements(ABC):
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

    def load(self, source: InputKind, expr: Expr) -> Term:
        """Read a vector: a0, a1, ... with validity m0, m1, ..."""
        key = Input(source, expr)
        known = self._known.get((expr, None))
        if key in self.inputs and known is not None:
            return known
        place = self.inputs.setdefault(key, len(self.inputs))
        term = Term(self.assign(f"a{place}@"), self.assign(f"m{place}@ != 0"), expr.type)
        self._known[expr, None] = term
        return term

    @abstractmethod
    def term(self, expr: Expr, guard: str | None = None) -> Term:
        """A number or BOOL. Where `guard` is FALSE the value is not used."""

    def made(self, text: str, valid: str | None, type: Type) -> Term:
        return Term(self.assign(text), valid, type)

    def pick(self, condition: str, yes: Term, no: Term) -> Term:
        valid = None
        if yes.valid is not None or no.valid is not None:
            valid = self.assign(f"pick({condition}, {yes.valid or 'True'}, {no.valid or 'True'})")
        return self.made(f"pick({condition}, {yes.value}, {no.value})", valid, yes.type)

    # ---- overflows

    def flag(self, condition: str, valid: str | None, guard: str | None) -> None:
        """Note an overflow, where the value is used."""
        parts = [f"({condition})", *(p for p in (valid, guard) if p is not None)]
        self._flags.setdefault(self._inside[-1], []).append(self.assign(" & ".join(parts)))

    def overflows(self, expr: Expr) -> str:
        """The condition that computing the expression met an integer overflow."""
        return " | ".join(name for part in walk(expr) for name in self._flags.get(part, ()))


Recipe: TypeAlias = Callable[[Statements, Call, "str | None"], Term]
"""Writes a call. Where the guard is FALSE the value is not used."""


def convert(w: Statements, term: Term, type: Type) -> Term:
    """A value as one of another type; NULL where there is none."""
    if term.type is type or (term.type.is_integer and type.is_integer):
        return Term(term.value, term.valid, type)
    if term.type is Type.NULL:
        return literal(None, type)
    if term.type is Type.WIDE:
        return from_wide(w, term, type)
    if type is Type.WIDE:
        return to_wide(w, term)
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
    raise Unsupported(f"a cast of {term.type.label} to {type.label}")


SMALLEST: Final = f"np.int64({-INT_MAX} - 1)"
"""The lowest bit pattern: with it, the exclusive or takes 2^63 off, or adds it."""


def from_wide(w: Statements, term: Term, type: Type) -> Term:
    """A WIDE as a number, a BOOL or a FLOAT; NULL where there is none."""
    held = term.value
    if type is Type.BOOL:
        return w.made(f"{held} != {SMALLEST}", term.valid, type)
    if type is Type.FLOAT:
        # Half of a large number, its last bit kept, is rounded as the number itself would be.
        large = w.assign(f"{held} >= 0")
        half = w.assign(f"((({held} >> 1) + {1 << 62}) | ({held} & 1))")
        small = w.assign(f"np.float64({held} ^ {SMALLEST})")
        return w.made(f"pick({large}, 2.0 * np.float64({half}), {small})", term.valid, type)
    if not type.is_integer:
        raise Unsupported(f"a cast of {term.type.label} to {type.label}")
    made = w.made(f"{held} ^ {SMALLEST}", None, type)
    fits = w.assign(f"{held} < 0")
    valid = both(term.valid, fits)
    return (
        within(w, Term(made.value, valid, type))
        if type is Type.UINT
        else Term(made.value, valid, type)
    )


def to_wide(w: Statements, term: Term) -> Term:
    """A number as a WIDE; NULL when it is negative, or no integer of 64 bits."""
    value = term.value
    if term.type is Type.FLOAT:
        fits = w.assign(f"({value} > -1.0) & ({value} < 18446744073709551616.0)")
        large = w.assign(f"{value} >= 9223372036854775808.0")
        less = f"pick({large}, {value} - 9223372036854775808.0, {value})"
        number = w.assign(f"np.int64(pick({fits}, {less}, 0.0))")
        made = w.assign(f"pick({large}, {number}, {number} ^ {SMALLEST})")
        return Term(made, both(term.valid, fits), Type.WIDE)
    if not is_number(term.type):
        raise Unsupported(f"a cast of {term.type.label} to {Type.WIDE.label}")
    number = f"np.int64({value})" if term.type is Type.BOOL else value
    fits = w.assign(f"{number} >= 0")
    return Term(w.assign(f"{number} ^ {SMALLEST}"), both(term.valid, fits), Type.WIDE)


def within(w: Statements, term: Term) -> Term:
    """An integer that is in the range of its unsigned type, or NULL."""
    least, most = value_range(term.type)
    fits = w.assign(f"({term.value} >= {least}) & ({term.value} <= {most})")
    return Term(term.value, both(term.valid, fits), term.type)


def alike(w: Statements, call: Call, guard: str | None) -> tuple[Term, Term]:
    """Two numbers of one kind."""
    left, right = (w.term(a, guard) for a in call.args)
    if Type.FLOAT in (left.type, right.type):
        return convert(w, left, Type.FLOAT), convert(w, right, Type.FLOAT)
    if left.type is Type.BOOL and right.type is Type.BOOL:
        return convert(w, left, Type.INT), convert(w, right, Type.INT)
    known = {t.type for t in (left, right)} - {Type.NULL}
    if known != {Type.WIDE} and not all(type.is_integer for type in known):
        raise Unsupported(f"{call.function.name} of {left.type.label} and {right.type.label}")
    return left, right
