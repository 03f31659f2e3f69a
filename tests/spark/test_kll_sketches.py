"""KLL sketches travel between Spark's functions and states of approx_quantile, both ways."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from terascope.functions.registry import Functions
from terascope.sketches.base import packed_states
from terascope.sketches.greenwald_khanna import quantile_kind
from terascope.sketches.kll import quantiles_of, read_sketch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FIRST = np.zeros(1, np.int64)


def state_of(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bytes:
    high = quantile_kind(0.01, "kll").high()
    high.iterate(np.zeros(len(values), np.int64), [values])
    return bytes(high.pack(FIRST)[0].as_py())


@pytest.mark.parametrize("count", [1, 5, 3000])
def test_sketches_travel_both_ways(spark: SparkSession, count: int) -> None:
    from pyspark.sql import functions as F

    values = np.random.default_rng(count).normal(size=count)
    kll_bytes = Functions.builtin().scalars["kll_bytes"]
    state = state_of(values)
    ours = spark.createDataFrame([(bytearray(kll_bytes(state)),)], "sketch binary")
    read = ours.select(
        F.kll_sketch_get_n_double("sketch"),
        F.kll_sketch_get_quantile_double("sketch", F.lit(0.5)),
        F.kll_sketch_get_rank_double("sketch", F.lit(0.25)),
    ).first()
    assert read is not None
    assert read[0] == count
    held = quantiles_of(state)
    assert held.ranks(np.array([read[1]]))[0] == pytest.approx(count / 2, abs=0.03 * count + 1)
    assert read[2] == pytest.approx(held.ranks(np.array([0.25]))[0] / count, abs=0.03 + 1 / count)

    frame = spark.createDataFrame([(value,) for value in values.tolist()], "x double")
    theirs = frame.agg(F.kll_sketch_agg_double("x", 414)).first()
    assert theirs is not None
    taken = Functions.builtin().scalars["kll_from_bytes"](bytes(theirs[0]))
    assert quantiles_of(taken).count == count
    high = quantile_kind(0.01, "kll").high()
    high.merge(np.zeros(2, np.int64), packed_states([taken, state]))
    both = quantiles_of(high.pack(FIRST)[0].as_py())
    assert both.count == 2 * count
    exact = np.searchsorted(np.sort(values), 0.1, "right") * 2
    assert both.ranks(np.array([0.1]))[0] == pytest.approx(exact, abs=0.03 * 2 * count + 1)


def test_bytes_of_spark_that_are_cut_are_refused(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    row = spark.range(500).agg(F.kll_sketch_agg_double(F.col("id").cast("double"))).first()
    assert row is not None
    sketch = bytes(row[0])
    assert read_sketch(sketch).n == 500
    for bad in (sketch[:-3], sketch[:5], struct.pack("<q", 7)):
        with pytest.raises(ValueError, match="damaged"):
            read_sketch(bad)
