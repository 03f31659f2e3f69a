from __future__ import annotations

import pytest

from terascope.functions.base import ValueMistake
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Cast, Param
from terascope.plan.plan import Parameter
from terascope.plan.rel import Filter, Project
from terascope.reference.interpreter import evaluate
from terascope.types import INT_MAX, Type
from tests.oracle.agreement import agreed, rows_of
from tests.oracle.build import call, case, col, ints, lit, named, plan, records
from tests.reference.memory_sources import MemorySources

T = ints("t", names="x y")


def test_a_column_is_found_by_its_name() -> None:
    assert compile_expr(col("y"), ("x", "y"), {})((1, 2)) == 2


def test_a_parameter_has_its_value() -> None:
    above = Filter(T, call(">", col("x"), Param("limit", Type.INT)))
    both = plan([Parameter("limit", Type.INT, 5)], out=above)
    rows = agreed(both, MemorySources({"t": records("x y", (5, 0), (6, 0))}))
    assert rows["out"].tuples == [(6, 0)]


def test_a_filter_keeps_true_only() -> None:
    tables = {"t": records("x y", (1, 0), (2, 0), (None, 0))}
    assert rows_of(Filter(T, call("=", col("x"), 1)), tables) == [(1, 0)]
    assert rows_of(Filter(T, call("not", call("=", col("x"), 1))), tables) == [(2, 0)]
    assert rows_of(Filter(T, call("is_null", col("x"))), tables) == [(None, 0)]


def test_case_takes_the_first_true_branch() -> None:
    size = case(
        (call(">", col("x"), 100), "large"), (call(">", col("x"), 10), "middle"), otherwise="small"
    )
    tables = {"t": records("x y", (200, 0), (20, 0), (2, 0), (None, 0))}
    given = rows_of(Project(T, named(size=size)), tables)
    assert given == [("large",), ("middle",), ("small",), ("small",)]


def test_case_does_not_evaluate_the_branches_it_does_not_take() -> None:
    guarded = case((call("<", col("x"), 10), call("+", col("x"), 1)), otherwise=0)
    rel = Project(T, named(z=guarded))
    assert rows_of(rel, {"t": records("x y", (INT_MAX, 0), (1, 0))}) == [(0,), (2,)]


def test_overflow_stops_the_run() -> None:
    rel = Project(T, named(z=call("+", col("x"), 1)))
    with pytest.raises(ValueMistake, match="integer overflow"):
        evaluate(plan(out=rel), MemorySources({"t": records("x y", (INT_MAX, 0))}))


def test_cast() -> None:
    rel = Project(
        T,
        named(
            f=Cast(col("x"), Type.FLOAT),
            s=Cast(col("x"), Type.STRING),
            b=Cast(col("x"), Type.BOOL),
            i=Cast(call("/", col("x"), col("y")), Type.INT),
            n=Cast(lit("12 apples"), Type.INT),
            a=Cast(lit("10.0.0.1"), Type.IP),
        ),
    )
    tables = {"t": records("x y", (-7, 2), (0, 0))}
    assert rows_of(rel, tables) == [
        (-7.0, "-7", True, -3, None, b"\x04\x0a\x00\x00\x01"),
        (0.0, "0", False, None, None, b"\x04\x0a\x00\x00\x01"),
    ]


def test_integer_arithmetic() -> None:
    rel = Project(
        T,
        named(
            div=call("div", col("x"), col("y")),
            mod=call("%", col("x"), col("y")),
            quotient=call("/", col("x"), col("y")),
            left=call("<<", col("x"), 2),
            right=call(">>", col("x"), 1),
            none=call("<<", col("x"), 64),
        ),
    )
    tables = {"t": records("x y", (-7, 2), (7, -2), (7, 0))}
    assert rows_of(rel, tables) == [
        (-4, -1, -3.5, 28, 3, None),
        (-4, 1, -3.5, -28, -4, None),
        (None, None, None, 28, 3, None),
    ]


def test_three_valued_logic() -> None:
    p, q = call(">", col("x"), 0), call(">", col("y"), 0)
    rel = Project(
        T,
        named(
            conj=call("and", p, q), disj=call("or", p, q), member=call("in", col("x"), 5, col("y"))
        ),
    )
    tables = {"t": records("x y", (1, None), (-1, None), (None, None), (5, None))}
    assert rows_of(rel, tables) == [
        (False, None, None),
        (None, True, True),
        (None, True, None),
        (None, None, None),
    ]
