"""Predicates at the source: which tuples of a column batch can matter to anybody.

In: an expression over the columns of a source, one that `analysis.at_source` says can be evaluated
here. Out: for a batch, the tuples for which it is TRUE. The queries keep their own filters above,
so where an integer overflow makes the value of a batch unknowable all its tuples stay, and the
query that meets the overflow reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import arrow_type
from terascope.functions.members import Members
from terascope.plan.expr import Call, Col, Expr, Lit

Datum: TypeAlias = Any
"""An Arrow array, or an Arrow scalar for a constant."""

COMPARISONS: Final[Mapping[str, Callable[[Datum, Datum], Datum]]] = {
    "=": lambda a, b: equal(a, b),
    "!=": lambda a, b: pc.invert(equal(a, b)),
    "<": lambda a, b: less(a, b),
    "<=": lambda a, b: pc.invert(less(b, a)),
    ">": lambda a, b: less(b, a),
    ">=": lambda a, b: pc.invert(less(a, b)),
}
ARITHMETIC: Final[Mapping[str, Callable[[Datum, Datum], Datum]]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
BITS: Final[Mapping[str, Callable[[Datum, Datum], Datum]]] = {
    "&": pc.bit_wise_and,
    "|": pc.bit_wise_or,
    "^": pc.bit_wise_xor,
}


def keep(batch: pa.RecordBatch, predicate: Expr) -> pa.RecordBatch:
    """The tuples of a batch for which the predicate is TRUE; all where that cannot be said."""
    try:
        mask = value(predicate, batch)
    except pa.ArrowInvalid:
        return batch
    if isinstance(mask, pa.Scalar):
        return batch if mask.as_py() else batch.slice(0, 0)
    return batch.filter(mask)


def value(expr: Expr, batch: pa.RecordBatch) -> Datum:
    match expr:
        case Col(name):
            return batch.column(name)
        case Lit(held, type):
            return pa.scalar(held, arrow_type(type))
        case Call(function, args):
            held = [a for a in args if not is_list(a)]
            return call(function.name, args, [value(a, batch) for a in held])
        case _:
            raise pa.ArrowInvalid("not evaluated at the source")


def call(name: str, args: tuple[Expr, ...], values: list[Datum]) -> Datum:
    match name:
        case "and":
            return fold(pc.and_kleene, values)
        case "or":
            return fold(pc.or_kleene, values)
        case "not":
            return pc.invert(values[0])
        case "is_null":
            return pc.is_null(values[0])
        case "in":
            return member(values[0], values[1:])
        case "in_list":
            return listed(values[0], args[1])
        case "div":
            return floor_divide(values[0], args[1])
        case "%":
            quotient = floor_divide(values[0], args[1])
            return pc.subtract(values[0], pc.multiply(quotient, values[1]))
    if name in COMPARISONS:
        return COMPARISONS[name](*alike(*values))
    if name in ARITHMETIC:
        return ARITHMETIC[name](*values)
    return BITS[name](*values)


def fold(function: Callable[[Datum, Datum], Datum], values: list[Datum]) -> Datum:
    result = values[0]
    for other in values[1:]:
        result = function(result, other)
    return result


def alike(left: Datum, right: Datum) -> tuple[Datum, Datum]:
    """Two values of one Arrow type: text compares as bytes, an integer with a FLOAT as FLOAT."""
    for common in (pa.binary(), pa.float64()):
        if common in (left.type, right.type) and left.type != right.type:
            return pc.cast(left, common, safe=False), pc.cast(right, common, safe=False)
    return left, right


def member(tested: Datum, items: list[Datum]) -> Datum:
    """IN, with SQL's three values: NULL unless found, when there is a NULL among the items."""
    return fold(pc.or_kleene, [equal(*alike(tested, item)) for item in items])


def is_list(expr: Expr) -> bool:
    return isinstance(expr, Lit) and isinstance(expr.value, Members)


def listed(tested: Datum, members: Expr) -> Datum:
    """The same of many constants: Arrow, too, takes NaN for equal to itself here."""
    assert isinstance(members, Lit)
    values = pa.array(members.value.values, arrow_type(members.type))
    if tested.type == pa.float64():
        tested, values = pc.add(tested, 0.0), pc.add(values, 0.0)  # -0.0 becomes 0.0
    found = pc.is_in(tested, value_set=values.cast(tested.type))
    unknown = pc.is_null(tested)
    if members.value.has_null:
        unknown = pc.or_(unknown, pc.invert(found))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def equal(left: Datum, right: Datum) -> Datum:
    """Arrow compares FLOATs as IEEE does; in GSQL, NaN equals itself (functions.values)."""
    if left.type != pa.float64():
        return pc.equal(left, right)
    return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))


def less(left: Datum, right: Datum) -> Datum:
    """NaN is the largest FLOAT."""
    if left.type != pa.float64():
        return pc.less(left, right)
    below_nan = pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right))
    return pc.or_(pc.less(left, right), below_nan)


def floor_divide(dividend: Datum, divisor: Expr) -> Datum:
    """Division by a positive constant that rounds to minus infinity; Arrow's rounds to zero."""
    if not isinstance(divisor, Lit):
        raise pa.ArrowInvalid("the divisor is no constant")
    by = pa.scalar(divisor.value, pa.int64())
    truncated = pc.divide(dividend, by)
    remainder = pc.subtract(dividend, pc.multiply(truncated, by))
    return pc.subtract(truncated, pc.cast(pc.less(remainder, 0), pa.int64()))
