"""Time does not grow faster than what a set has to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.shapes.axes import AXES, MOST_POWER, TABLE, Axis, measured, power, table
from bench.shapes.captures import missing
from bench.shapes.plain import run_set

RUNS = 1
TRIES = 3


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_time_grows_no_faster_than_the_size(axis: Axis, tmp_path: Path) -> None:
    """A busy machine can make any run slow, and no run quick: the best of a few tries counts."""
    if axis.real and (reason := missing()):
        pytest.skip(reason)
    found = []
    for _ in range(TRIES):
        seconds = measured(axis, axis.small, tmp_path, RUNS)
        found.append(power(axis.small, seconds))
        if found[-1] <= MOST_POWER:
            return
    pytest.fail(f"{axis.name}: powers {found}, {seconds} s at {axis.small}")


def test_a_square_is_found() -> None:
    assert power((10, 40, 160), (1.0, 16.0, 256.0)) == pytest.approx(2.0)
    assert power((10, 40, 160), (1.0, 4.0, 16.0)) <= MOST_POWER


ONE_QUERY = TABLE + "QUERY q: SELECT tb, k, COUNT(*) AS n FROM T GROUP BY time/60 AS tb, k;"


@pytest.mark.parametrize(
    ("rows", "groups"), [(300_000, 300_000), (300_000, 1), (0, 0)], ids=["many", "one", "none"]
)
def test_every_group_is_there_in_little_memory(rows: int, groups: int, tmp_path: Path) -> None:
    keys = np.random.default_rng(2).permutation(rows) % max(1, groups)
    bound = table(tmp_path / "t.parquet", np.full(rows, 600), keys)
    assert run_set(ONE_QUERY, [bound], memory_bytes=24 << 20).rows == groups
