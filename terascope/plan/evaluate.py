"""The value of an expression for one tuple, in plain Python.

In: an expression and the names of the columns it stands over. Out: a function from a tuple to a
value. Functions bring their own meaning (`Scalar.evaluate`); this module adds names, constants,
CASE and CAST.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, assert_never

from terascope.functions.base import Value
from terascope.functions.casts import cast_value
from terascope.plan.expr import Call, Case, Cast, Col, Expr, Lit, Param

Evaluator: TypeAlias = Callable[[Sequence[Value]], Value]
Parameters: TypeAlias = Mapping[str, Value]


def compile_expr(expr: Expr, names: tuple[str, ...], parameters: Parameters) -> Evaluator:
    """A function that evaluates `expr` over tuples whose columns are `names`."""

    def compiled(part: Expr) -> Evaluator:
        return compile_expr(part, names, parameters)

    match expr:
        case Col(name):
            place = names.index(name)
            return lambda row: row[place]
        case Lit(value):
            return lambda _: value
        case Param(name):
            given = parameters[name]
            return lambda _: given
        case Call(function, args):
            parts = tuple(map(compiled, args))
            return lambda row: function(*[part(row) for part in parts])
        case Case(branches, otherwise):
            pairs = [(compiled(when), compiled(then)) for when, then in branches]
            last = compiled(otherwise)

            def first_true(row: Sequence[Value]) -> Value:
                # Only the branch that is taken is evaluated: CASE guards what may fail.
                for when, then in pairs:
                    if when(row) is True:
                        return then(row)
                return last(row)

            return first_true
        case Cast(operand, renames=True):
            return compiled(operand)
        case Cast(operand, to_type):
            value_of, from_type = compiled(operand), operand.type
            return lambda row: cast_value(value_of(row), from_type, to_type)
        case _:
            assert_never(expr)


def constant_value(expr: Expr, parameters: Parameters) -> Value:
    """The value of an expression that names no column."""
    return compile_expr(expr, (), parameters)(())
