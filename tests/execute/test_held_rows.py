"""Tuples that do not fit into the memory of a task come in portions: those with equal values of the
partitioning set together, in every stream.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from terascope.execute.held_payloads import HELD_BYTES
from terascope.execute.held_rows import MOST_PORTIONS, PORTION_SHARE, HeldRows
from terascope.execute.reports import Outgoing
from terascope.kernels.merge.payload import pack_tuples
from terascope.physical.delivery import Target
from terascope.plan.expr import Col, Expr
from terascope.plan.rel import Field
from terascope.types import Type

LEFT, RIGHT, OTHER = 0, 1, 2
STREAMS = {"left": LEFT, "right": RIGHT, "other": OTHER}
VALUES: Mapping[int, tuple[Expr, ...]] = {LEFT: (Col("x", Type.INT),), RIGHT: (Col("y", Type.INT),)}
FIELDS = (Field("x", Type.INT), Field("y", Type.INT))
TARGETS = {at: Target(name, FIELDS, None, inside=True) for name, at in STREAMS.items()}
ROWS = 3_000
TIMES = 5


def batch(seed: int) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    return pa.record_batch({"x": rng.integers(-50, 50, ROWS), "y": rng.integers(-50, 50, ROWS)})


def held(values: Mapping[int, tuple[Expr, ...]] | None, portion_bytes: int) -> HeldRows:
    made = HeldRows(TARGETS, frozenset(), values, PORTION_SHARE * portion_bytes)
    for seed in range(TIMES):
        for at in STREAMS.values():
            row = Outgoing(at, 0, "rows", pack_tuples(batch(3 * seed + at)))
            assert not list(made.keep([row]))
    return made


def sorted_rows(batches: list[pa.RecordBatch]) -> list[tuple[int, int]]:
    return sorted((x, y) for b in batches for x, y in zip(*b.to_pydict().values(), strict=True))


@pytest.mark.parametrize("in_memory", [HELD_BYTES, 0], ids=["in memory", "on disk"])
def test_equal_values_are_in_one_portion(in_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terascope.execute.held_payloads.HELD_BYTES", in_memory)
    portions = list(held(VALUES, 1 << 16).portions(STREAMS))
    assert len(portions) > 5
    found = [{name: portion.rows_of(name) for name in STREAMS} for portion in portions]
    where: dict[int, int] = {}
    for number, one in enumerate(found):
        for value in {*one["left"]["x"].to_pylist(), *one["right"]["y"].to_pylist()}:
            assert where.setdefault(value, number) == number, "a value in two portions"
    assert len(where) == 100
    assert len(set(where.values())) > 5
    for name, at in STREAMS.items():
        expected = sorted_rows([batch(3 * seed + at) for seed in range(TIMES)])
        assert sorted_rows([one[name] for one in found]) == expected
    sizes = [sum(rows.num_rows for rows in one.values()) for one in found]
    assert max(sizes) < 3 * sum(sizes) / len(sizes)


@pytest.mark.parametrize("values", [VALUES, None], ids=["small enough", "cannot be divided"])
def test_one_portion(values: Mapping[int, tuple[Expr, ...]] | None) -> None:
    (portion,) = held(values, 1 << 30 if values else 1).portions(STREAMS)
    assert portion.rows_of("left").num_rows == TIMES * ROWS


def test_there_are_not_too_many_portions() -> None:
    assert len(list(held(VALUES, 1).portions(STREAMS))) == MOST_PORTIONS


def test_streams_without_tuples_have_empty_portions() -> None:
    made = HeldRows(TARGETS, frozenset(), VALUES, 1)
    (portion,) = made.portions(STREAMS)
    assert [portion.rows_of(name).num_rows for name in STREAMS] == [0, 0, 0]
