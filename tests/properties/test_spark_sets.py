"""Spark gives the rows of the reference, in the same order, whatever the number of partitions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from terascope.reference.interpreter import evaluate
from tests.agreement import INTERPRETED, assert_same_answers, delivered, spark_answers
from tests.properties.engines import make_case
from tests.reference.connector_sources import ConnectorSources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(100, 100 + int(os.environ.get("TERASCOPE_SPARK_SEEDS", "1")))


@pytest.mark.spark
@pytest.mark.parametrize("seed", SEEDS[::4], ids=lambda s: f"seed-{s}")
def test_a_dataframe_beside_files_agrees_with_the_reference(
    seed: int, tmp_path: Path, spark: SparkSession
) -> None:
    from terascope.spark.dataframes import bound_dataframe

    case = make_case(1000 + seed, tmp_path, queries=14, rows=70)
    plan, interfaces = case.compiled.optimized, case.compiled.bindings.interfaces
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    (name, *_) = interfaces
    frame = spark.read.parquet(interfaces[name].location)
    mixed = {**interfaces, name: bound_dataframe(name, frame)}
    partitions = 1 if seed % 8 else 3
    found = spark_answers(plan, mixed, spark, partitions, 1, INTERPRETED)
    assert_same_answers(expected, found)


@pytest.mark.spark
@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_spark_agrees_with_the_reference(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    case = make_case(seed, tmp_path, queries=14, rows=70)
    plan, interfaces = case.compiled.optimized, case.compiled.bindings.interfaces
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    partitions, split_bytes = (1, 1 << 30) if seed % 2 else (3, 1)
    assert_same_answers(expected, spark_answers(plan, interfaces, spark, partitions, split_bytes))
    written = spark_answers(
        plan, interfaces, spark, partitions, split_bytes, folder=tmp_path / "parts"
    )
    assert_same_answers(expected, written)
