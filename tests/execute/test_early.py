"""Conditions that are asked of the rows of a table, each way it can be done."""

from __future__ import annotations

import numpy as np
import pytest

from terascope.execute.rows.steps import limits_of, passing_numbers, places_within
from terascope.functions.aggregates.folding import MAX_FLOAT
from terascope.functions.registry import Functions
from terascope.functions.slots import COUNT, SUM_INT
from terascope.kernels.merge.groups import Block, GroupFields
from terascope.kernels.tables.slots import Shape
from terascope.plan.expr import Call, Col, Expr, Lit
from terascope.plan.rel import Field
from terascope.types import INT_MAX, INT_MIN, Type

FIELDS = GroupFields(
    (Field("key", Type.LLONG),),
    (Field("tuples", Type.LLONG), Field("total", Type.LLONG), Field("mean", Type.FLOAT)),
    Shape(1, (COUNT, SUM_INT, MAX_FLOAT)),
)


def condition(name: str, comparison: str, value: int) -> Expr:
    function = Functions.builtin().scalar(comparison)
    assert function is not None
    return Call(function, (Col(name, Type.LLONG), Lit(value, Type.LLONG)), Type.BOOL)


@pytest.fixture
def block() -> Block:
    rng = np.random.default_rng(3)
    rows = rng.integers(-4, 4, (1000, FIELDS.shape.stride))
    rows[:, 0] = rng.choice([0b1101, 0b1001], 1000)  # some totals have seen no value
    rows[:20, 3] = [INT_MIN, INT_MAX] * 10
    return Block.of(7, rows)


@pytest.mark.parametrize("value", [INT_MIN, -1, 0, 2, INT_MAX])
@pytest.mark.parametrize("comparison", ["<", "<=", "=", ">=", ">"])
@pytest.mark.parametrize("name", ["tuples", "total"])
def test_limits_keep_what_the_condition_keeps(
    block: Block, name: str, comparison: str, value: int
) -> None:
    asked = condition(name, comparison, value)
    limits = limits_of(asked, FIELDS)
    assert limits is not None
    kept = passing_numbers(asked, block, FIELDS)
    assert kept is not None
    assert np.array_equal(places_within(block.rows, limits), np.flatnonzero(kept))


def test_other_conditions_have_no_limits() -> None:
    assert limits_of(condition("total", "!=", 3), FIELDS) is None
    assert limits_of(condition("key", ">", 3), FIELDS) is None
    assert limits_of(Col("tuples", Type.BOOL), FIELDS) is None
