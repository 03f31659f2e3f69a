"""The value of an expression for one tuple, in plain Python.

In: an expression and the names of the columns it stands over. Out: a function from a tuple to a
value. Functions bring their own meaning (`Scalar.evaluate`); this module adds names, constants,
CASE and CAST.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, assert_never

from terascope.functions.base import Scalar, Value
from terascope.functions.casts import cast_value
from terascope.plan.expr import Call, Case, Cast, Col, Expr, Lit, Param
from terascope.types import Type

Evaluator: TypeAlias = Callable[[Sequence[Value]], Value]
Parameters: TypeAlias = Mapping[str, Value]


def compile_expr(expr: Expr, names: tuple[str, ...], parameters: Parameters) -> Evaluator:
    """A function that evaluates `expr` over tuples whose columns are `names`."""
    match expr:
        case Col(name):
            return column(names.index(name))
        case Lit(value):
            return constant(value)
        case Param(name):
            return constant(parameters[name])
        case Call(function, args):
            return call(function, tuple(compile_expr(a, names, parameters) for a in args))
        case Case(branches, otherwise):
            return first_true(
                tuple(
                    (compile_expr(when, names, parameters), compile_expr(then, names, parameters))
                    for when, then in branches
                ),
                compile_expr(otherwise, names, parameters),
            )
        case Cast(operand, renames=True):
            return compile_expr(operand, names, parameters)
        case Cast(operand, to_type):
            return cast(compile_expr(operand, names, parameters), operand.type, to_type)
        case _:
            assert_never(expr)


def constant_value(expr: Expr, parameters: Parameters) -> Value:
    """The value of an expression that names no column."""
    return compile_expr(expr, (), parameters)(())


def column(place: int) -> Evaluator:
    return lambda row: row[place]


def constant(value: Value) -> Evaluator:
    return lambda _: value


def call(function: Scalar, args: tuple[Evaluator, ...]) -> Evaluator:
    return lambda row: function(*[arg(row) for arg in args])


def first_true(
    branches: tuple[tuple[Evaluator, Evaluator], ...], otherwise: Evaluator
) -> Evaluator:
    def evaluate(row: Sequence[Value]) -> Value:
        # Only the branch that is taken is evaluated: CASE guards what may fail.
        for when, then in branches:
            if when(row) is True:
                return then(row)
        return otherwise(row)

    return evaluate


def cast(operand: Evaluator, from_type: Type, to_type: Type) -> Evaluator:
    return lambda row: cast_value(operand(row), from_type, to_type)
