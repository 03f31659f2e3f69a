"""One percentile and one heavy-hitter query by source, in the words of each engine.

All engines count packets: none of the others weighs identifiers. Errors are alike as far as engines
let one say: a rank error of 1%, and as many counters for heavy hitters as an engine keeps by
itself.
"""

from __future__ import annotations

from typing import Final

from bench.holistic.gsql_costs import gsql_of

SUM, PERCENTILE, HITTERS = "sum", "percentile", "hitters"
QUESTIONS: Final = (SUM, PERCENTILE, HITTERS)
PERCENT: Final = 50
TOP: Final = 5
TABLE: Final = "packets"
KLL_K: Final = 200
"""Of Spark and DataSketches by default: 1.3% with 99% confidence for one rank."""
MAP_LOG: Final = 12
"""Logarithm of the counters of a frequent-items sketch: 4,096."""

GSQL: Final = {
    SUM: gsql_of("SUM(len) AS value"),
    PERCENTILE: gsql_of(f"approx_percentile(len, {PERCENT}) AS value"),
    HITTERS: gsql_of(f"heavy_hitters(destIP, {TOP}) AS value"),
}


def sql_of(value: str) -> str:
    return f"SELECT tb, srcIP, {value} AS value FROM {TABLE} GROUP BY tb, srcIP"


SPARK: Final = {
    SUM: sql_of("sum(len)"),
    PERCENTILE: sql_of(f"percentile_approx(len, {PERCENT / 100}, 100)"),
    HITTERS: sql_of(f"approx_top_k(destIP, {TOP})"),
}
SPARK_KLL: Final = {
    PERCENTILE: sql_of(
        f"kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(len, {KLL_K}), {PERCENT / 100})"
    ),
}
DUCKDB: Final = {
    SUM: sql_of("sum(len)"),
    PERCENTILE: sql_of(f"approx_quantile(len, {PERCENT / 100})"),
    HITTERS: sql_of(f"approx_top_k(destIP, {TOP})"),
}
