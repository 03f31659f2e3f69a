"""Time does not grow faster than what a set has to do."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.shapes.axes import (
    BATCH_AXES,
    MOST_POWER,
    STREAM_AXES,
    TABLE,
    Axis,
    measured,
    power,
    table,
)
from bench.shapes.captures import missing
from bench.shapes.plain import run_set
from bench.shapes.streaming import run_stream

if TYPE_CHECKING:
    from terascope.spark.session import SparkSession

pytestmark = pytest.mark.bench

RUNS = 1
TRIES = 10
TESTED_STREAMS = 1
"""A stream axis takes most of a minute; the others are run by the bench."""


@pytest.mark.parametrize("axis", BATCH_AXES, ids=lambda axis: axis.name)
def test_time_grows_no_faster_than_the_size(axis: Axis, tmp_path: Path) -> None:
    check(axis, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("axis", STREAM_AXES[:TESTED_STREAMS], ids=lambda axis: axis.name)
def test_time_of_a_stream_grows_no_faster_than_the_size(
    axis: Axis, tmp_path: Path, spark: SparkSession
) -> None:
    check(axis, tmp_path, spark)


def check(axis: Axis, folder: Path, spark: SparkSession | None = None) -> None:
    """A busy machine can make any run slow, and no run quick: the best of each size counts."""
    if axis.real and (reason := missing()):
        pytest.skip(reason)
    best = [math.inf] * len(axis.small)
    for _ in range(TRIES):
        seconds = measured(axis, axis.small, folder, RUNS, spark)
        best = [min(pair) for pair in zip(best, seconds, strict=True)]
        if power(axis.small, best) <= MOST_POWER:
            return
    pytest.fail(f"{axis.name}: power {power(axis.small, best)}, {best} s at {axis.small}")


@pytest.mark.parametrize("sizes", [(10, 40, 160), (60, 600, 3000)])
@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("fixed", [0.0, 50.0])
def test_a_power_is_found_beside_a_fixed_cost(
    sizes: tuple[int, int, int], exponent: float, fixed: float
) -> None:
    seconds = [fixed + size**exponent for size in sizes]
    if seconds[2] >= 2 * seconds[0]:
        assert power(sizes, seconds) == pytest.approx(exponent, abs=1e-3)
    else:
        assert power(sizes, seconds) < exponent


def test_noise_is_no_growth() -> None:
    assert power((10, 40, 160), (1.0, 1.0, 1.2)) <= MOST_POWER


@pytest.mark.spark
def test_a_stream_is_cut_into_micro_batches_and_gives_all_rows(
    tmp_path: Path, spark: SparkSession
) -> None:
    numbers = np.arange(4_000)
    bound = table(tmp_path / "t.parquet", numbers // 10, numbers % 5)
    ran = run_stream(ONE_QUERY, bound, 3, spark)
    assert ran.rows == run_set(ONE_QUERY, [bound]).rows == 7 * 5
    assert ran.seconds > 0


ONE_QUERY = TABLE + "QUERY q: SELECT tb, k, COUNT(*) AS n FROM T GROUP BY time/60 AS tb, k;"


@pytest.mark.parametrize(
    ("rows", "groups"), [(300_000, 300_000), (300_000, 1), (0, 0)], ids=["many", "one", "none"]
)
def test_every_group_is_there_in_little_memory(rows: int, groups: int, tmp_path: Path) -> None:
    keys = np.random.default_rng(2).permutation(rows) % max(1, groups)
    bound = table(tmp_path / "t.parquet", np.full(rows, 600), keys)
    assert run_set(ONE_QUERY, [bound], memory_bytes=24 << 20).rows == groups
