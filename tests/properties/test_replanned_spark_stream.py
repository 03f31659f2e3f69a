"""A stream on Spark whose tables, trees and windows change while it runs gives the rows of a batch.

With `--log-cli-level=INFO` pytest shows how long the stream paused for other windows.
"""

from __future__ import annotations

import logging
import random
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from terascope.running import RunningSet, open_running
from terascope.streaming.replan import replanning
from tests.agreement import INTERPRETED, configured
from tests.oracle.compare import assert_same_rows
from tests.properties.spark_streams import PATIENCE, restarted
from tests.properties.stream_results import rows_of
from tests.properties.swapped_skew import SAMPLED, SET, swapped_set
from tests.properties.test_recomposed_windows import (
    AT_ONCE,
    assert_answers,
    expected,
    jumping_set,
)
from tests.settings import Changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from terascope.streaming.heartbeat import BatchReport

RIVALS = "".join(
    f"QUERY {name}: SELECT tb, a, b, {value} AS x FROM [links].S WHERE {condition}"
    " GROUP BY ts/100 AS tb, a, b;\n"
    for name, value, condition in [
        ("neg", "COUNT(*)", "v < 8"),
        ("pos", "SUM(v)", "v > -9"),
        ("abs", "MAX(v)", "v <> 0"),
    ]
)
log = logging.getLogger(__name__)
ONE_PARTITION = {**INTERPRETED, "spark.sql.shuffle.partitions": "1"}


@pytest.mark.spark
def test_tables_and_trees_change_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    trees = {"share_trees": "operations", "tree_memory": 1 << 20, "tree_leaves": "free"}
    made = swapped_set(tmp_path, trees, text=SET + RIVALS)
    settings: Changes = {
        "speed": "max",
        "until_idle": True,
        "trigger": 0,
        "batch_bytes": 20_000,
        "tasks": 2,
        "port": None,
        **SAMPLED,
        "replan_slices": 1,
    }
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
            made.compiled.with_settings(**settings),
            tmp_path / "state",
            tmp_path / "out",
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


@pytest.mark.spark
@pytest.mark.soak  # tests/properties/test_recomposed_windows.py changes windows without Spark
def test_windows_change_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    made = jumping_set(tmp_path, random.Random(0))
    settings: Changes = {
        "speed": "max",
        "until_idle": True,
        "trigger": 0,
        "batch_bytes": 2_000,
        "tasks": 2,
        "port": None,
        **AT_ONCE,
    }
    done: list[float] = []
    pauses: list[tuple[float, int]] = []
    recompose = RunningSet._recompose_windows

    def timed(running: RunningSet) -> None:
        before = running.runner
        recompose(running)
        if running.runner is not before:
            pauses.append((time.monotonic(), len(done)))

    with (
        patch.object(RunningSet, "_recompose_windows", timed),
        configured(spark, ONE_PARTITION),
        open_running(
            lambda: spark,
            made.with_settings(**settings),
            tmp_path / "state",
            tmp_path / "out",
            watch=lambda report: done.append(time.monotonic()),
            say=restarted,
        ) as running,
    ):
        assert running.wait(PATIENCE), "the stream hangs"
        (told,) = running.status().windows
    assert pauses, "windows were composed anew"
    assert len(told.clusters) == 2, "apart when few come again"
    for _, before in pauses:
        gap = done[before] - done[before - 1]
        log.info("%.2f s between the batches before and after a change of windows", gap)
    batches = sorted(after - before for before, after in pairwise(done))
    log.info("%.2f s between others", batches[len(batches) // 2])
    assert_answers(expected(made), tmp_path / "out")
