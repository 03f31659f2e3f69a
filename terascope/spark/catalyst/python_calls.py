"""Functions that only Python knows, inside Spark: user-defined scalars and the exotic ones.

In: an expression's meaning as a Python function of plain values, and its argument Columns. Out: a
Column that an Arrow UDF computes. Constants stay in the function; they are not sent with each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import Column

from terascope.connectors.base import arrow_type
from terascope.functions.base import Scalar, Value
from terascope.functions.casts import cast_value
from terascope.plan.evaluate import Parameters, compile_expr
from terascope.plan.expr import Expr, columns_of
from terascope.spark.catalyst.arrow_functions import arrow_function
from terascope.spark.catalyst.operands import Operand
from terascope.spark.mistakes import telling
from terascope.types import Type


def call_python(function: Scalar, operands: Sequence[Operand], type: Type) -> Column:
    """The function called once per row with the arguments that are not constant."""
    varying = [i for i, o in enumerate(operands) if not o.constant]
    fixed = [o.value if o.constant else None for o in operands]

    def evaluate(row: Sequence[Value]) -> Value:
        args = list(fixed)
        for place, value in zip(varying, row, strict=True):
            args[place] = value
        return function(*args)

    columns = [operands[i].column for i in varying]
    return row_function(evaluate, columns, type, f"function {function.name}")


def cast_python(operand: Operand, type: Type) -> Column:
    source = operand.type

    def evaluate(row: Sequence[Value]) -> Value:
        return cast_value(row[0], source, type)

    return row_function(evaluate, [operand.column], type, f"CAST AS {type.label}")


def evaluate_python(expr: Expr, scope: Callable[[str], Column], parameters: Parameters) -> Column:
    """A whole expression in Python: a CASE that guards a Python function must not call it for the
    rows that take another branch, but Spark calls UDFs for every row.
    """
    names = tuple(sorted(columns_of(expr)))
    evaluate = compile_expr(expr, names, parameters)
    return row_function(evaluate, [scope(n) for n in names], expr.type, "CASE")


def row_function(
    evaluate: Callable[[Sequence[Value]], Value],
    columns: Sequence[Column],
    type: Type,
    where: str,
) -> Column:
    result_type = arrow_type(type)

    def on_arrays(*arrays: pa.Array) -> pa.Array:
        with telling(where):
            rows = zip(*(array.to_pylist() for array in arrays), strict=True)
            return pa.array([evaluate(row) for row in rows], result_type)

    return arrow_function(on_arrays, type)(*columns)
