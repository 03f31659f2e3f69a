"""A process may die at any moment: every row of a stream is there once, in every format.

Most crashes here are an exception nobody catches before the stream has failed: all that is in
memory is thrown away, and a new runner goes on from the checkpoint in the same Spark. Some are
real: workers that are killed, and a process that kills itself and leaves its JVM alone.
"""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import terascope.running as running_sets
from bench.crash.killing import Attempt, lose_commit
from bench.crash.queries import NAMES, make_data, open_set
from bench.crash.rows import Rows, batch_rows, differences, orphans
from bench.crash.run import FORMS, Form, delivered, started, stream_settings
from terascope.running import RunningSet
from terascope.spark.stream.runner import newest_batch
from terascope.streaming import batch as stream_batch
from terascope.streaming.state.crash import POINTS, VARIABLE, Point
from tests.settings import SOAK, Changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from terascope.streaming.heartbeat import BatchReport

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATIENCE = 300.0
PACKETS = 6000
"""Of both captures."""

ORDERS: dict[Form, tuple[Point, ...]] = {
    "parquet": POINTS,
    "csv": ("manifest", "manifest", "state"),
    "ndjson": ("cleaned", "stored", "manifests"),
    "callback": ("manifest", "cleaned"),
}
"""Each crash is the next time its point is reached: in the same batch or the next one."""


class CrashError(Exception):
    """The process is gone."""


class Crashes:
    """Crashes that are to come, one after the other, instead of `crash_here`."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.waiting = list(points)
        self.happened: list[Point] = []

    def __call__(self, point: Point) -> None:
        if self.waiting and self.waiting[0] == point:
            self.happened.append(self.waiting.pop(0))
            raise CrashError(point)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traffic")
    make_data(folder)
    return folder


@pytest.fixture(scope="module")
def wanted(data: Path, spark: SparkSession) -> Rows:
    session, queries = open_set(data, spark)
    with session:
        rows = batch_rows(queries)
    assert all(rows[name].total() > 20 for name in NAMES)
    return rows


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_sets, "FIRST_WAIT", 0.0)


class Streams:
    """The set as a stream in the folder of a test, from its checkpoint if there is one."""

    def __init__(self, data: Path, spark: SparkSession, folder: Path, form: Form) -> None:
        self.folder, self.form = folder, form
        self.checkpoint = folder / "checkpoint"
        self._session, self._queries = open_set(data, spark)
        self.batches: list[int] = []
        self.all_read = threading.Event()

    def start(self, lose_commits: bool = False, settings: Changes | None = None) -> RunningSet:
        def failed(text: str) -> None:
            if lose_commits:
                lose_commit(self.checkpoint)

        return started(self._queries, self.folder, self.form, self._watch, failed, settings)

    def rows(self) -> Rows:
        return delivered(self.folder, self.form)

    def _watch(self, report: BatchReport) -> None:
        self.batches.append(report.batch)
        if sum(seen.tuples for seen in report.state.seen.values()) == PACKETS:
            self.all_read.set()

    def finish(self, lose_commits: bool = False) -> RunningSet:
        with self.start(lose_commits) as running:
            assert running.wait(PATIENCE)
        return running


@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", FORMS if SOAK else ("parquet",))
def test_a_crash_at_every_point_of_a_batch(
    form: Form,
    data: Path,
    spark: SparkSession,
    wanted: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crashes = Crashes(ORDERS[form])
    monkeypatch.setattr(stream_batch, "crash_here", crashes)
    streams = Streams(data, spark, tmp_path, form)
    running = streams.finish(lose_commits=form == "ndjson")
    assert crashes.happened == list(ORDERS[form])
    assert running.status().run.restarts == len(crashes.happened)
    assert differences(wanted, streams.rows()) == []
    if form != "callback":
        assert not orphans(tmp_path / "output")


@pytest.mark.soak  # tests/properties/test_late_kills.py loses commits without Spark
@pytest.mark.timeout(600)
def test_a_batch_that_spark_forgets_is_not_delivered_again(
    data: Path,
    spark: SparkSession,
    wanted: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = Streams(data, spark, tmp_path, "csv")
    with streams.start(settings={**stream_settings(), "until_idle": False, "heartbeat": 0}):
        assert streams.all_read.wait(PATIENCE)
    last = streams.batches[-1]
    while (streams.checkpoint / "commits" / str(last)).exists():
        lose_commit(streams.checkpoint)
    assert newest_batch(streams.checkpoint) == last, "that one is run again"
    crashes = Crashes(("stored",))
    monkeypatch.setattr(stream_batch, "crash_here", crashes)
    streams.finish()
    assert crashes.happened == ["stored"]
    assert streams.batches[-1] > last
    assert differences(wanted, streams.rows()) == []
    assert lose_commit(streams.checkpoint) is not None
    streams.finish()
    assert differences(wanted, streams.rows()) == []


@pytest.mark.timeout(900)
def test_processes_that_are_killed(
    data: Path, spark: SparkSession, wanted: Rows, tmp_path: Path
) -> None:
    """All workers are killed, which a run survives; later it kills itself, half way through the
    manifests of a batch, and leaves its JVM alone. This process goes on.
    """
    point = f"manifest:{3 * len(NAMES) + 2}"
    with Attempt(data, tmp_path, "csv", {VARIABLE: point}) as first:
        assert first.after(1)
        assert first.kill("workers", random.Random(1)) is not None
        assert first.code() == -signal.SIGKILL
    assert [line for line in first.said if line.startswith("batch 0")]
    assert [line for line in first.said if "starts again" in line]
    streams = Streams(data, spark, tmp_path, "csv")
    streams.finish()
    assert differences(wanted, streams.rows()) == []
