from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.connectors.base import Column, arrow_type
from terascope.partitioning.placing import even_bounds, partition_numbers, value_hashes
from terascope.partitioning.sets import parse_set
from terascope.types import Type
from tests.partitioning.split_reading import hashed

COLUMNS = (
    Column("a", Type.IP),
    Column("s", Type.STRING),
    Column("n", Type.LLONG),
    Column("u", Type.UINT),
    Column("b", Type.BOOL),
    Column("f", Type.FLOAT),
)
SETS = (
    "a",
    "a & 0xFFFFFFF0",
    "a & 0xFF00FF00, s",
    "prefix(a, 24)",
    "prefix(a, 24, 64)",
    "prefix(a, 7, 3), n",
    "prefix(a, 32, 128)",
    "prefix(a, 0, 0), u",
    "prefix(a, 12, 61)",
    "prefix(a, u % 32, 5)",
    "s, n, u",
    "b, s",
    "u/16, f > 0.5",
    "n % 7",
)


def random_address(dice: random.Random) -> bytes:
    return b"\x04" + dice.randbytes(4) if dice.random() < 0.5 else b"\x06" + dice.randbytes(16)


def batch_of(dice: random.Random, rows: int) -> pa.RecordBatch:
    makers: dict[str, Any] = {
        "a": lambda: random_address(dice),
        "s": lambda: "é" * dice.randrange(9) + str(dice.randrange(9)),
        "n": lambda: dice.choice([0, -1, 2**62, dice.randrange(-(2**40), 2**40)]),
        "u": lambda: dice.randrange(2**32),
        "b": lambda: dice.random() < 0.5,
        "f": lambda: dice.choice([0.0, -0.0, dice.random()]),
    }
    arrays = [
        pa.array(
            [None if dice.random() < 0.1 else makers[c.name]() for _ in range(rows)],
            arrow_type(c.type),
        )
        for c in COLUMNS
    ]
    return pa.record_batch(arrays, names=[c.name for c in COLUMNS])


@pytest.mark.parametrize("by", SETS)
def test_hashes_are_those_of_the_definition(by: str) -> None:
    dice = random.Random(by)
    set = parse_set(by, COLUMNS)
    whole = batch_of(dice, 300)
    for batch in (whole, whole.slice(13, 101), whole.slice(299), whole.slice(5, 0)):
        wanted = [hashed(set, row) for row in batch.to_pylist()]
        assert value_hashes(set, batch).tolist() == wanted


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 3000), st.booleans(), st.integers(0, 1 << 30))
def test_numbers_are_those_of_a_search(count: int, even: bool, seed: int) -> None:
    dice = random.Random(seed)
    bounds = even_bounds(count)
    if not even:  # also ranges in which there is no hash
        inner = sorted(dice.choice([0, 1 << 40, dice.randrange(1 << 64)]) for _ in bounds[1:])
        bounds = (*inner, 1 << 64)
    near = [b + k for b in bounds for k in (-1, 0, 1)]
    hashes = [h % (1 << 64) for h in (*near, *(dice.randrange(1 << 64) for _ in range(100)))]
    wanted = [sum(b <= h for b in bounds[:-1]) for h in hashes[:500]]
    found = partition_numbers(np.array(hashes[:500], np.uint64), bounds)
    assert found.tolist() == wanted
