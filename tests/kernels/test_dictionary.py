"""Dictionaries that grow: codes stay as they were, and every value is found again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from terascope.kernels.columns.dictionary import (
    FIRST_ROOM,
    Dictionary,
    dictionary_for,
    enlarged,
    refill,
)
from terascope.types import Type

MANY = 20 * FIRST_ROOM
NUMBERS = np.random.default_rng(5).permutation(MANY).astype(np.int64) * 7_919
COLUMNS = {
    Type.LLONG: pa.array(NUMBERS - 5 * MANY),
    Type.FLOAT: pa.array(NUMBERS / 8.0),
    Type.STRING: pa.array([f"name {number}" for number in NUMBERS]).cast(pa.string()),
}


@pytest.mark.parametrize("type", COLUMNS, ids=lambda type: type.name)
def test_codes_outlive_growth(type: Type) -> None:
    """The table grows several times while the values come piece by piece."""
    values, dictionary = COLUMNS[type], dictionary_for(type)
    codes = np.concatenate([encoded(dictionary, values, at) for at in range(0, MANY, 1000)])
    assert codes.tolist() == list(range(1, MANY + 1))
    assert dictionary.encode(values).tolist() == codes.tolist()
    assert dictionary.values(codes).to_pylist() == values.to_pylist()


def encoded(dictionary: Dictionary, values: pa.Array, start: int) -> np.ndarray:
    return dictionary.encode(values.slice(start, 1000))


def test_a_table_is_enlarged_row_by_row_from_front_to_back() -> None:
    """Rows that follow each other in the smaller table go to places that follow each other in
    either half of the larger one: growth passes through memory in order, whatever its size.
    """
    rows = 1 << 12
    table = np.zeros((rows, 2), np.int64)
    first = np.zeros((rows // 2, 2), np.int64)
    first[:, 0] = NUMBERS[: rows // 2] + 1
    first[:, 1] = np.arange(1, rows // 2 + 1)
    refill(first, table)
    larger = enlarged(table)
    assert len(larger) == 2 * rows
    assert sorted(larger[larger[:, 1] > 0].tolist()) == sorted(first.tolist())
    place = {int(code): at for at, code in enumerate(larger[:, 1]) if code}
    before = {int(code): at for at, code in enumerate(table[:, 1]) if code}
    shifts = [abs(place[code] % rows - at) for code, at in before.items()]
    assert np.median(shifts) <= 2, "rows keep their place, give or take collisions"


REPEATED = {
    "one value": ["eth0"] * 40,
    "empty": [""] * 40,
    "ends equal, middle not": ["eth0", "eth1", *["eth0"] * 30],
    "same bytes, other ends": ["aa", "a", "aaa", "aa"],
    "with NULLs": ["eth0", None, "eth0", "eth0"],
}


@pytest.mark.parametrize("values", REPEATED.values(), ids=REPEATED)
def test_a_value_that_is_repeated_is_encoded_once(values: list[str | None]) -> None:
    dictionary, column = dictionary_for(Type.STRING), pa.array(["x", *values, "y"], pa.string())
    for _ in range(2):
        codes = dictionary.encode(column[1:-1])
        assert dictionary.values(codes).to_pylist() == values
    assert len(dictionary) == 1 + len({value for value in values if value is not None})
