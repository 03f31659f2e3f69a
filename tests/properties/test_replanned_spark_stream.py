"""A stream on Spark whose tables and trees change while it runs gives the rows of a batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from terascope.physical.trees import TreeSettings
from terascope.running import StreamSettings, open_running
from terascope.stream import replanning
from tests.agreement import INTERPRETED, configured
from tests.oracle.compare import assert_same_rows
from tests.properties.spark_streams import PATIENCE, restarted
from tests.properties.stream_results import rows_of
from tests.properties.swapped_skew import SAMPLED, SET, swapped_set

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from terascope.stream.report import BatchReport

RIVALS = "".join(
    f"QUERY {name}: SELECT tb, a, b, {value} AS x FROM [links].S WHERE {condition}"
    " GROUP BY ts/100 AS tb, a, b;\n"
    for name, value, condition in [
        ("neg", "COUNT(*)", "v < 8"),
        ("pos", "SUM(v)", "v > -9"),
        ("abs", "MAX(v)", "v <> 0"),
    ]
)
ONE_PARTITION = {**INTERPRETED, "spark.sql.shuffle.partitions": "1"}


@pytest.mark.xdist_group("spark")
def test_tables_and_trees_change_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    trees = TreeSettings("operations", 1 << 20, leaves="free")
    made = swapped_set(tmp_path, trees, text=SET + RIVALS)
    settings = StreamSettings(
        speed="max",
        until_idle=True,
        trigger_seconds=0,
        batch_bytes=20_000,
        tasks=2,
        port=None,
        replanning=replace(SAMPLED, slices=1),
    )
    used: list[tuple[int, float]] = []

    def watch(report: BatchReport) -> None:
        for beat in report.beats:
            tuples, probes = beat.counters["tuples"], sum(beat.counters["probes"])
            used.extend([(beat.trees, probes / tuples)] if tuples else [])

    with (
        patch.object(replanning, "in_background", lambda work: work()),
        configured(spark, ONE_PARTITION),
        open_running(
            lambda: spark,
            made.compiled,
            tmp_path / "state",
            tmp_path / "out",
            settings=settings,
            watch=watch,
            say=restarted,
        ) as running,
    ):
        assert running.wait(PATIENCE), "the stream hangs"
        (told,) = running.status().trees
    assert used[0][0] == 0
    assert used[0][1] > 8.5, "six, and three that take most tuples"
    assert used[-1][0] > 1
    assert used[-1][1] < 6.5
    assert told.tree
    assert [sorted(names) for names in told.tables] == [["abs_low", "neg_low", "pos_low"]]
    assert told.probes_per_tuple is not None
    assert told.probes_per_tuple < 6.5
    for name, answer in made.expected().items():
        assert_same_rows(answer.rows, rows_of(tmp_path / "out" / name), answer.fields)
