"""Every operator and scalar function means in Spark what it means in Python, on edge values."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from terascope.connectors.base import arrow_type
from terascope.functions.base import Scalar, TypeMistake, Value, ValueMistake
from terascope.functions.casts import check_cast
from terascope.functions.registry import Functions
from terascope.functions.user import scalar
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Call, Case, Cast, Col, Expr, Lit, Param
from terascope.plan.rel import Field
from terascope.spark.catalyst.expressions import Translator
from terascope.spark.catalyst.frame import Frame, place, schema_of
from terascope.spark.mistakes import translating
from terascope.types import INT_MAX, INT_MIN, Type, parse_ip, unify

pytestmark = pytest.mark.spark

EDGES: dict[Type, list[Value]] = {
    Type.BOOL: [None, True, False],
    Type.LLONG: [
        None,
        0,
        1,
        -1,
        2,
        -7,
        7,
        31,
        63,
        64,
        1000,
        INT_MAX,
        INT_MIN,
        0xFFFFFF00,
        2**53 + 1,
    ],
    Type.FLOAT: [
        None,
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -2.5,
        1e-5,
        1e7,
        123456.789,
        1e19,
        -1e19,
        2.0**53,
        math.nan,
        math.inf,
        -math.inf,
    ],
    Type.STRING: [
        None,
        "",
        "a",
        "abc",
        "ABC",
        " 12 ",
        "-7",
        "1.5e3",
        "1e999",
        "+3",
        "true",
        "0",
        "x%y_z\\",
        "%b_",
        "a\nb",
        "é€𝄞x",
        "10.0.0.1",
        "2001:db8::1",
        "34|45|x|7",
        "[a-c]+",
        "|",
    ],
    Type.BINARY: [None, b"", b"abc", b"\x00\xff\x80", b" 12", "é".encode(), b"a"],
    Type.IP: [
        None,
        *map(parse_ip, ("0.0.0.0", "10.1.2.3", "172.31.255.255", "192.168.0.1", "255.255.255.255")),
        *map(parse_ip, ("::", "fc00::1", "2001:db8:85a3::8a2e:370:7334")),
    ],
}
CONSTANTS: dict[Type, list[Value]] = {
    Type.BOOL: [True, None],
    Type.LLONG: [0, 3, -2, 64, 0xFFFF0000],
    Type.FLOAT: [0.0, -2.5],
    Type.STRING: ["a", "%b_", "10.0.0.0/8"],
    Type.BINARY: [b"a", b"\x80"],
    Type.IP: [parse_ip("10.1.2.3")],
}
ROWS, COPIES, WIDTH, CHOICE = 64, 3, 50, 12
FIELDS = (
    Field("row", Type.LLONG),
    *(Field(f"{t.value}.{i}", t) for t in EDGES for i in range(COPIES)),
)
NAMES = tuple(f.name for f in FIELDS)
FUNCTIONS = Functions.builtin()


def edge_rows() -> list[tuple[Value, ...]]:
    """Combinations of edge values; each type's first copies pair every value with every other
    often enough.
    """
    dice = random.Random(7)
    return [
        (i, *(dice.choice(EDGES[t]) for t in EDGES for _ in range(COPIES))) for i in range(ROWS)
    ]


ROW_VALUES = edge_rows()


@pytest.fixture(scope="module")
def edges(spark: SparkSession) -> Frame:
    table = pa.table(
        {
            place(i): pa.array(column, arrow_type(f.type))
            for i, (f, column) in enumerate(zip(FIELDS, zip(*ROW_VALUES, strict=True), strict=True))
        }
    )
    return Frame(spark.createDataFrame(table, schema_of(FIELDS)).cache(), FIELDS)


def same(left: Value, right: Value) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right or math.isclose(left, right, rel_tol=1e-9)
    return type(left) is type(right) and bool(left == right)


def expected(expr: Expr) -> list[tuple[bool, Value]]:
    """For each row whether there is a value, and the value."""
    evaluate = compile_expr(expr, NAMES, {"threshold": 3})
    given: list[tuple[bool, Value]] = []
    for row in ROW_VALUES:
        try:
            given.append((True, evaluate(row)))
        except ValueMistake:
            given.append((False, None))
    return given


def check(edges: Frame, exprs: Sequence[Expr]) -> None:
    """Compare rows that have a value; where Python overflows, Spark is not asked."""
    for at in range(0, len(exprs), WIDTH):
        part = exprs[at : at + WIDTH]
        wanted = [expected(expr) for expr in part]
        translator = Translator(edges.columns, {"threshold": 3})
        columns = []
        for i, (expr, values) in enumerate(zip(part, wanted, strict=True)):
            good = [row for row, (has_value, _) in enumerate(values) if has_value]
            column = guarded(translator, expr, good, len(values))
            columns.append(column.alias(f"e{i}"))
        rows = edges.df.select("c0", *columns).collect()
        got = {row[0]: row[1:] for row in rows}
        wrong = [
            f"{show(expr)} of {[ROW_VALUES[r][NAMES.index(n)] for n in names_in(expr)]}: "
            f"{got[r][i]!r}, not {value!r}"
            for i, (expr, values) in enumerate(zip(part, wanted, strict=True))
            for r, (has_value, value) in enumerate(values)
            if has_value and not same(held(got[r][i]), value)
        ]
        assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:25])


def guarded(translator: Translator, expr: Expr, good: list[int], all_rows: int) -> Any:
    if len(good) == all_rows:
        return translator.column(expr)
    row = Col("row", Type.LLONG)
    chosen = Call(FUNCTIONS.scalars["in"], (row, *(Lit(g, Type.LLONG) for g in good)), Type.BOOL)
    return translator.column(Case(((chosen, expr),), Lit(None, expr.type), expr.type))


def held(value: Any) -> Value:
    return bytes(value) if isinstance(value, bytearray) else value


def names_in(expr: Expr) -> list[str]:
    match expr:
        case Col(name):
            return [name]
        case Call(_, args):
            return [n for a in args for n in names_in(a)]
        case Cast(operand):
            return names_in(operand)
        case _:
            return []


def show(expr: Expr) -> str:
    match expr:
        case Col(name):
            return name
        case Lit(value):
            return repr(value)
        case Call(function, args):
            return f"{function.name}({', '.join(map(show, args))})"
        case Cast(operand, target):
            return f"cast({show(operand)} as {target.value})"
        case _:
            return type(expr).__name__


def calls(function: Scalar) -> Iterator[Call]:
    """Calls over all types the function takes: of columns, and with constants behind the first."""
    for arity in (1, 2, 3):
        for types in itertools.product(EDGES, repeat=arity):
            try:
                result = function.type_rule(types)
            except (TypeMistake, ValueError):
                continue
            columns = [Col(f"{t.value}.{i}", t) for i, t in enumerate(types)]
            yield bound(function, columns, result)
            for place_of_constant in range(arity if arity > 1 else 0):
                for constant in CONSTANTS[types[place_of_constant]]:
                    args: list[Expr] = list(columns)
                    args[place_of_constant] = Lit(constant, types[place_of_constant])
                    yield bound(function, args, result)


def bound(function: Scalar, args: Sequence[Expr], result: Type) -> Call:
    """The call as the binder makes it: arguments that must be of one type are cast to it."""
    start = function.unified_from
    if start is None:
        return Call(function, tuple(args), result)
    common = reduce(lambda a, b: unify(a, b) or a, (a.type for a in args[start:]))
    alike = (a if a.type is common else Cast(a, common) for a in args[start:])
    return Call(function, (*args[:start], *alike), result)


def taken(function: Scalar) -> list[Expr]:
    """Those calls that have a value somewhere; of many, a choice that is always the same."""
    found = [c for c in calls(function) if any(has_value for has_value, _ in expected(c))]
    return list(random.Random(function.name).sample(found, min(len(found), CHOICE)))


BY_NAME = {f.name: f for f in FUNCTIONS.scalars.values()}
GROUPS = {
    "logic": ["and", "or", "not", "is_null", "coalesce", "in", "if", "nullif", "non_temporal"],
    "comparison": ["=", "!=", "<", "<=", ">", ">=", "eq", "geq", "ge", "leq", "le"],
    "arithmetic": ["+", "-", "*", "/", "div", "%", "neg", "&", "|", "^", "~", "<<", ">>", "mod"],
}
GROUPS["others"] = [n for n in BY_NAME if not any(n in names for names in GROUPS.values())]


@pytest.mark.parametrize("group", GROUPS)
def test_functions_mean_the_same_as_in_python(edges: Frame, group: str) -> None:
    check(edges, [call for name in GROUPS[group] for call in taken(BY_NAME[name])])


def test_casts_mean_the_same_as_in_python(edges: Frame) -> None:
    pairs = [(a, b) for a in EDGES for b in EDGES if a is not b]
    exprs: list[Expr] = []
    for source, target in pairs:
        try:
            check_cast(source, target)
        except TypeMistake:
            continue
        exprs += [Cast(Col(f"{source.value}.{i}", source), target) for i in range(COPIES)]
    check(edges, exprs)


def column(type: Type, copy: int = 0) -> Col:
    return Col(f"{type.value}.{copy}", type)


def call(name: str, *args: Expr) -> Call:
    function = BY_NAME[name]
    return Call(function, args, function.type_rule(tuple(a.type for a in args)))


def test_case_takes_the_first_true_branch_and_guards_what_fails(edges: Frame) -> None:
    small = call("<", column(Type.LLONG), Lit(1000, Type.LLONG))
    large = call(">", column(Type.LLONG), Lit(-1000, Type.LLONG))
    doubled = call("*", column(Type.LLONG), Lit(2, Type.LLONG))
    both = call("and", small, large)
    check(
        edges,
        [Case(((both, doubled), (small, column(Type.LLONG))), Lit(None, Type.NULL), Type.LLONG)],
    )


def test_case_guards_a_python_function(edges: Frame) -> None:
    @scalar(takes=("LLONG",), returns="LLONG")
    def only_positive(x: int) -> int:
        if x <= 0:
            raise ValueMistake("not positive")
        return x

    use = Call(only_positive, (column(Type.LLONG),), Type.LLONG)
    positive = call(">", column(Type.LLONG), Lit(0, Type.LLONG))
    check(edges, [Case(((positive, use),), Lit(-1, Type.LLONG), Type.LLONG)])


def test_user_defined_scalars_see_nulls_only_when_they_ask(edges: Frame) -> None:
    @scalar(takes=("STRING", "LLONG"), returns="STRING")
    def strict(text: str, count: int) -> str:
        return f"{text}/{count % 3}"

    @scalar(takes=("ANY",), returns="BOOL", strict=False)
    def lax(value: Value) -> bool:
        return value is None

    check(
        edges,
        [
            Call(strict, (column(Type.STRING), column(Type.LLONG)), Type.STRING),
            Call(strict, (column(Type.STRING), Lit(5, Type.LLONG)), Type.STRING),
            Call(lax, (column(Type.IP),), Type.BOOL),
        ],
    )


def test_parameters_and_constant_expressions(edges: Frame) -> None:
    threshold = Param("threshold", Type.LLONG)
    check(
        edges,
        [
            call(">", column(Type.LLONG), call("+", threshold, Lit(4, Type.LLONG))),
            call("*", threshold, threshold),
        ],
    )


@pytest.mark.parametrize(
    ("operator", "left", "right", "message"),
    [
        ("+", INT_MAX, 1, "integer overflow in +"),
        ("-", INT_MIN, 1, "integer overflow in -"),
        ("*", INT_MAX, 2, "integer overflow in *"),
        ("<<", 1, 63, "integer overflow in 1 << 63"),
        ("div", INT_MIN, -1, "integer overflow in an expression"),
    ],
)
def test_overflow_is_one_clear_line(
    spark: SparkSession, operator: str, left: int, right: int, message: str
) -> None:
    fields = (Field("a", Type.LLONG), Field("b", Type.LLONG))
    frame = Frame(spark.createDataFrame([(left, right)], schema_of(fields)), fields)
    expr = call(operator, Col("a", Type.LLONG), Col("b", Type.LLONG))
    with pytest.raises(ValueMistake) as raised, translating():
        rows_of(frame.df.select(Translator(frame.columns, {}).column(expr)))
    assert str(raised.value).startswith(f"{message}: integers are signed 64-bit numbers;")


def test_a_failing_python_function_is_one_clear_line(edges: Frame) -> None:
    @scalar(takes=("LLONG",), returns="LLONG")
    def broken(x: int) -> int:
        return x // 0

    expr = Call(broken, (column(Type.LLONG),), Type.LLONG)
    with pytest.raises(ValueMistake) as raised, translating():
        rows_of(edges.df.select(Translator(edges.columns, {}).column(expr)))
    assert str(raised.value).startswith("function broken: ZeroDivisionError")
    assert "\n" not in str(raised.value)


def rows_of(df: DataFrame) -> list[Any]:
    return df.filter(F.lit(True)).collect()
