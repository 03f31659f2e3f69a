"""Sums, means and variances of FLOATs in Spark have the bits that the reference gives them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from terascope.config import Config
from terascope.diagnostic import Source
from terascope.functions.base import ValueMistake
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from terascope.spark.dataframes import bound_dataframe
from tests.agreement import CATALYST, INTERPRETED, WITHOUT_COMPILING, delivered, spark_answers
from tests.kernels.test_float_sums import PROTOCOL, as_bits, written
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMS = f"""{PROTOCOL}
QUERY sums:
SELECT tb, k, SUM(x) AS s, AVG(x) AS m, MIN(x) AS a, MAX(y) AS b
FROM src.p GROUP BY ts/10 AS tb, k;
QUERY distinct_too:
SELECT tb, SUM(x) AS s, COUNT(DISTINCT k) AS n FROM src.p GROUP BY ts/10 AS tb;
QUERY sliding:
SELECT wend, k, SUM(x) AS s FROM src.p [RANGE 30 SLIDE 10] GROUP BY wend, k;
"""
SPREAD = f"""{PROTOCOL}
QUERY spread:
SELECT tb, VARIANCE(x) AS v, POSAVG(x) AS p, SUM(DISTINCT x) AS q,
    VAR_POP(ts * 1000000000000000) AS vt
FROM src.p GROUP BY ts/10 AS tb;
"""


@pytest.mark.parametrize(
    ("text", "low", "split_bytes"),
    [
        pytest.param(SUMS, WITHOUT_COMPILING, 1, id="native"),
        pytest.param(SUMS, CATALYST, 1, id="catalyst"),
        pytest.param(SUMS, CATALYST, 1 << 30, id="catalyst-one-split"),
        pytest.param(SPREAD, CATALYST, 1, id="spread"),
    ],
)
def test_bits_of_the_reference(
    text: str, low: Config, split_bytes: int, spark: SparkSession, tmp_path: Path
) -> None:
    compiled = written(tmp_path, 3, 0.3, text)
    interfaces = dict(compiled.bindings.interfaces)
    plan = compiled.optimized
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    found = spark_answers(plan, interfaces, spark, 2, split_bytes, INTERPRETED, low)
    for name, answer in expected.items():
        assert as_bits(found[name].rows) == as_bits(answer.rows), name


ABOVE = f"""{PROTOCOL}
QUERY whole: SELECT tb, SUM(x) AS s, AVG(y) AS m, COUNT(*) AS n, MIN(k) AS a, MAX(ts) AS b
FROM src.p GROUP BY ts AS tb;
QUERY above: SELECT tc, SUM(s) AS s, AVG(m) AS m, SUM(n) AS n, COUNT(*) AS c, MIN(a) AS a
FROM whole GROUP BY tb/20 AS tc;
QUERY middle: SELECT tb, SUM(x) AS s, MEDIAN(x) AS m FROM src.p GROUP BY ts/20 AS tb;
"""


@pytest.mark.parametrize("text", [SUMS, ABOVE], ids=["sums", "above"])
def test_a_dataframe_gives_the_bits_of_the_reference(
    text: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Every group once, whatever ranges its values are of, and with NULLs among them."""
    compiled = written(tmp_path, 4, 0.2, text)
    plan, interfaces = compiled.optimized, dict(compiled.bindings.interfaces)
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    frame = spark.read.parquet(interfaces["src"].location).repartition(3)
    bound = {"src": bound_dataframe("src", frame)}
    found = spark_answers(plan, bound, spark, 2, 1 << 30, INTERPRETED, config_with())
    for name, answer in expected.items():
        assert as_bits(found[name].rows) == as_bits(answer.rows), name


def test_an_overflow_beside_a_sum_of_floats_names_what_was_written(spark: SparkSession) -> None:
    """One group, of FLOATs of two ranges: the overflow is met where its two rows are merged."""
    text = "PROTOCOL D (id UINT increasing, x INT, f FLOAT);"
    text += "QUERY q: SELECT tb, SUM(x) AS s, SUM(f) AS g FROM d.D GROUP BY id/10 AS tb;"
    text += "QUERY r: SELECT tb, SUM(s) AS s, SUM(g) AS g FROM q GROUP BY tb/9 AS tb;"
    frame = spark.range(4).selectExpr(
        "id", f"case id when 0 then {2**62} when 1 then {2**62 - 1} else 1 end AS x",
        "if(id = 0, 1.5D, 1e19D) AS f",
    )  # fmt: skip
    bound = {"d": bound_dataframe("d", frame)}
    plan = compile_set(Source(text, "set.gsql"), Bindings(bound)).optimized
    with pytest.raises(ValueMistake) as told:
        spark_answers(plan, bound, spark, 2, 1 << 30, INTERPRETED, config_with())
    assert str(told.value).startswith("integer overflow in SUM(x)")
