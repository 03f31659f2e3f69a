"""Medians, sizes of sets and distinct counts of columns of states: the same as one by one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from terascope.functions.aggregates.counting import CountDistinct, CountDups
from terascope.functions.aggregates.distinct import (
    ApproxCountDistinct,
    ApproxCountDups,
    DistinctState,
)
from terascope.functions.aggregates.in_order import Median, Percentile, Quantile
from terascope.functions.base import ValueMistake
from terascope.functions.registry import Functions
from terascope.sketches.distinct import KINDS, distinct_estimate
from terascope.sketches.values import list_kind, set_kind
from terascope.types import Type
from tests.sketches.state_laws import argument, damaged, same_column, same_outcome
from tests.sketches.test_exact_states import values

SIZES = np.array([0, 1, 1, 2, 3, 5, 8, 13, 70, 400, 3000])
DISTINCT_OF = Functions.builtin().scalar("distinct_of")
ORDERS: list[tuple[Any, tuple[Any, ...]]] = [
    (Median(), ()),
    (Percentile(), (0,)),
    (Percentile(), (95,)),
    (Percentile(), (100.0,)),
    (Quantile(), (0.3,)),
]


def states(kind: Any, type_: Type, held: list[Any]) -> list[bytes]:
    """States of groups of several sizes, of which the first is empty."""
    column = kind.low()
    column.iterate(np.repeat(np.arange(len(SIZES)), SIZES), [argument(type_, held)])
    return [bytes(state) for state in column.pack(np.arange(len(SIZES))).to_pylist()]


def drawn(type_: Type, case: str = "any") -> list[Any]:
    rng = np.random.default_rng(1)
    count = int(SIZES.sum())
    if case == "any":
        return values(type_, count, rng)
    if case == "special":
        special = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324, -1.5]
        return [special[k] for k in rng.integers(0, len(special), count)]
    width = {"bytes": 200, "lengths": 1500, "long": 2**31}[case]
    return [int(x) for x in rng.integers(-width // 2, width // 2, count)]


@pytest.mark.parametrize(
    ("type_", "case"),
    [
        (Type.INT, "any"), (Type.INT, "bytes"), (Type.INT, "lengths"), (Type.INT, "long"),
        (Type.FLOAT, "any"), (Type.FLOAT, "special"), (Type.WIDE, "any"),
    ],
    ids=str,
)  # fmt: skip
def test_order_statistics(type_: Type, case: str) -> None:
    held = states(list_kind(type_), type_, drawn(type_, case))
    for aggregate, parameters in ORDERS:
        one = partial(finished, aggregate, parameters)
        same_column(held, one, partial(finished_column, aggregate, parameters))


def finished(aggregate: Any, parameters: tuple[Any, ...], state: bytes | None) -> Any:
    return aggregate.finish_state(state, *parameters)


def finished_column(aggregate: Any, parameters: tuple[Any, ...], packed: pa.Array) -> Any:
    return aggregate.finish_states(packed, *parameters)


def test_order_statistics_of_integers_and_floats_have_no_column() -> None:
    mixed = [states(list_kind(t), t, drawn(t))[4] for t in (Type.INT, Type.FLOAT)]
    assert Median().finish_states(pa.array(mixed, pa.binary())) is None
    with pytest.raises(ValueMistake, match="between 0 and 100"):
        Percentile().finish_states(pa.array(mixed, pa.binary()), 101)


@pytest.mark.parametrize(
    "type_", [Type.INT, Type.FLOAT, Type.STRING, Type.IP], ids=lambda t: t.name
)
def test_sizes_of_sets(type_: Type) -> None:
    held = states(set_kind(type_), type_, drawn(type_))
    for aggregate in (CountDistinct(), CountDups()):
        same_column(held, aggregate.finish_state, aggregate.finish_states)


def one_distinct(state: bytes | None) -> Any:
    assert DISTINCT_OF is not None
    return DISTINCT_OF(state)


def distinct_column(packed: pa.Array) -> Any:
    assert DISTINCT_OF is not None
    assert DISTINCT_OF.columns is not None
    return DISTINCT_OF.columns(packed)


@pytest.mark.parametrize("strategy", KINDS)
@pytest.mark.parametrize("type_", [Type.INT, Type.STRING], ids=lambda t: t.name)
def test_distinct_counts(type_: Type, strategy: str) -> None:
    held = states(KINDS[strategy], type_, drawn(type_))
    for aggregate in (ApproxCountDistinct(), ApproxCountDups()):
        same_column(held, aggregate.finish_state, aggregate.finish_states)
    same_column(held, one_distinct, distinct_column)
    if strategy == "theta":
        same_column(held, DistinctState().finish_state, DistinctState().finish_states)


def test_theta_sketches_that_gave_hashes_up() -> None:
    column = KINDS["theta"].low()
    column.iterate(np.zeros(30_000, np.int64), [np.arange(30_000)])
    held = [bytes(column.pack(np.zeros(1, np.int64))[0].as_py())]
    assert distinct_estimate(held[0]) != 30_000
    same_column(held, one_distinct, distinct_column)


def test_damaged_states_are_refused_as_single_ones_are() -> None:
    rng = np.random.default_rng(2)
    cases: list[tuple[Any, Any, Any]] = [
        (list_kind(Type.INT), Median().finish_state, Median().finish_states),
        (set_kind(Type.INT), CountDups().finish_state, CountDups().finish_states),
        *((kind, one_distinct, distinct_column) for kind in KINDS.values()),
    ]
    for kind, one, whole in cases:
        held = states(kind, Type.INT, drawn(Type.INT))
        for state in (held[1], held[6], held[-1]):
            for wrong in damaged(state, rng, 60):
                same_outcome(state, wrong, one, whole)
