"""The elements of the text of a kernel: values with their validity, and input vectors.

In: types and constants. Out: a `Term`, the text of a value and the text of its validity (not NULL);
an `Input`, a vector that statements read.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from terascope.plan.expr import Expr
from terascope.plan.hashing import hashed_once
from terascope.types import INT_MAX, INT_MIN, Type


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
    """A vector the statements read."""

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
