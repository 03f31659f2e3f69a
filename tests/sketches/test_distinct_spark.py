"""Distinct states and Spark's own sketches: each reads what the other made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from terascope.sketches.base import packed_states
from terascope.sketches.distinct import distinct_estimate, sketch_bytes, state_of_sketch
from terascope.sketches.hll import HLL_KIND
from terascope.sketches.theta import THETA_KIND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("name", "kind"), [("hll", HLL_KIND), ("theta", THETA_KIND)])
@pytest.mark.parametrize("size", [5, 100, 20000])
def test_interchange(spark: SparkSession, name: str, kind: Any, size: int) -> None:
    column = kind.low()
    column.iterate(np.zeros(size, np.int64), [np.arange(size)])
    ours = column.pack(np.zeros(1, np.int64))[0].as_py()
    half = f"range({size // 2}, {size // 2 * 3})"
    made = spark.sql(f"SELECT {name}_sketch_agg(id) AS sketch FROM {half}")
    union = f"{name}_union(sketch, unhex('{sketch_bytes(ours).hex()}'))"
    both = made.selectExpr("sketch", f"{name}_sketch_estimate({union}) AS estimate").first()
    assert both is not None
    wanted = len(set(range(size)) | set(range(size // 2, size // 2 * 3)))
    assert both["estimate"] == pytest.approx(wanted, rel=0.05)
    high = kind.high()
    theirs = state_of_sketch(bytes(both["sketch"]))
    high.merge(np.zeros(2, np.int64), packed_states([ours, theirs]))
    merged = high.pack(np.zeros(1, np.int64))[0].as_py()
    assert distinct_estimate(merged) == pytest.approx(wanted, rel=0.05)
