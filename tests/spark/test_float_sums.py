"""Sums, means and variances of FLOATs in Spark have the bits that the reference gives them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from terascope.reference.interpreter import evaluate
from terascope.reference.sources import ConnectorSources
from tests.agreement import CATALYST, WITHOUT_COMPILING, delivered, spark_answers
from tests.low.test_float_sums import QUERIES, as_bits, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MORE = """
QUERY spread:
SELECT tb, k, VARIANCE(x) AS v, STDDEV(y) AS d, POSAVG(x) AS p, SUM(DISTINCT x) AS q,
    VAR_POP(k) AS vk, VAR_POP(ts * 1000000000000000) AS vt
FROM src.p GROUP BY ts/10 AS tb, k;
"""


@pytest.mark.parametrize("most", [0.0, 0.3])
def test_both_low_levels_give_the_bits_of_the_reference(
    most: float, spark: SparkSession, tmp_path: Path
) -> None:
    compiled = written(tmp_path, int(10 * most), most, QUERIES + MORE)
    interfaces = dict(compiled.bindings.interfaces)
    plan = compiled.optimized
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    for low in (CATALYST, WITHOUT_COMPILING):
        found = spark_answers(plan, interfaces, spark, 3, 1, None, low)
        for name, answer in expected.items():
            assert as_bits(found[name].rows) == as_bits(answer.rows), (low.backend, name)
