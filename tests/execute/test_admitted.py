"""A predicate at the source admits the tuples for which it is TRUE, and no others."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from terascope.bind.catalog import Catalog
from terascope.bind.context import BindContext
from terascope.bind.expressions import ExprBinder
from terascope.bind.scope import Scope, ScopeInput
from terascope.connectors.base import arrow_type
from terascope.execute.rows.steps import admitted
from terascope.functions.registry import Functions
from terascope.kernels.codegen.expressions import unsupported
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Expr
from terascope.plan.rel import Field
from terascope.types import Type, parse_ip
from tests.syntax.corpus import parse_expression

TYPES = {
    "a": Type.INT,
    "b": Type.INT,
    "f": Type.FLOAT,
    "s": Type.STRING,
    "ip": Type.IP,
    "t": Type.BOOL,
}
POOLS: dict[str, list[object]] = {
    "a": [None, -7, -1, 0, 1, 6, 2**40],
    "b": [None, -2, 0, 3, 2**40],
    "f": [None, float("nan"), -0.0, 0.0, 1.5],
    "s": [None, "", "get", "post"],
    "ip": [None, parse_ip("10.0.0.1"), parse_ip("2001:db8::1")],
    "t": [None, True, False],
}
NAMES = tuple(TYPES)


def bound(text: str) -> Expr:
    columns = tuple((n, Field(n, t)) for n, t in TYPES.items())
    context = BindContext(Catalog(open_world=True), Functions.builtin(), {})
    return ExprBinder(context, Scope((ScopeInput("x", columns),))).expr(parse_expression(text))


@pytest.mark.parametrize(
    "text",
    [
        "a > 0", "a >= b", "a != b", "NOT a = b", "a + b > 3", "a * 2 < b", "a - b = 1",
        "a / 2 = -1", "a % 3 = 2", "a & 6 = 6", "(a | 1) = 7", "(a ^ b) > 0", "a IS NULL",
        "a IN (1, 6)", "s IN ('get', 'put')", "s = 'get' OR f > 0.5", "ip = 10.0.0.1",
        "ip != 10.0.0.1 AND t", "t OR a > 0", "NOT t", "f = f", "f > 1.0", "f <= 1.5", "f >= 0.0",
        "(a > 0 AND b IS NULL) OR (s != '' AND t)", "ip > 10.0.0.0", "f != 0.0",
        "s LIKE 'g%'", "str_length(s) > 2", "a / b > 1",
    ],
)  # fmt: skip
def test_a_batch_keeps_what_the_reference_keeps(text: str) -> None:
    predicate = bound(text)
    assert unsupported(predicate) is None, text
    rng = random.Random(text)
    rows = [tuple(rng.choice(POOLS[n]) for n in NAMES) for _ in range(400)]
    columns = [pa.array([r[i] for r in rows], arrow_type(TYPES[n])) for i, n in enumerate(NAMES)]
    places = pa.array(range(len(rows)), pa.int64())
    batch = pa.RecordBatch.from_arrays([*columns, places], [*NAMES, "place"])
    meaning = compile_expr(predicate, NAMES, {})
    expected = [i for i, row in enumerate(rows) if meaning(row) is True]
    assert admitted(batch, predicate).column("place").to_pylist() == expected


def test_an_overflow_keeps_the_batch_for_the_query_to_tell() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [2**62, 1], "b": [2**62, 1]})
    assert admitted(batch, bound("a + b > 100")).num_rows == 2
