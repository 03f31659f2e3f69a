"""The experiments with streams, on next to nothing, in the Spark that all tests share."""

from __future__ import annotations

import io
import math
import os
import time
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from pyspark.sql import SparkSession
from rich.console import Console

from bench.experiment import Outcome, Prepared, Settings
from bench.peers.spark_streaming import SparkStreaming, closes, is_whole, simplest, windowed
from bench.set50 import SQL, sql_queries
from bench.streams import cpu, merge, rate, soak
from bench.streams.numbers import Interval, interval, second_half, slope
from bench.streams.streamed import Batched, Streamed
from bench.streams.sweep import OFF
from bench.streams.usage import cpu_seconds, memory_of
from bench.streams.watching import on_disk

pytestmark = pytest.mark.bench


def run_here(
    prepared: Prepared, spark: SparkSession, folder: Path, names: tuple[str, ...]
) -> dict[str, Outcome]:
    """One run of some contenders, without processes of their own; looked at, but not judged: the
    reference would have a process.
    """
    found: dict[str, Outcome] = {}
    for contender in prepared.contenders:
        if contender.name not in names:
            continue
        assert isinstance(contender, Streamed | Batched | SparkStreaming)
        output = folder / contender.name.replace(" ", "-")
        output.mkdir()
        began = time.perf_counter()
        figures = contender.on(spark).run(output)
        outcome = Outcome(contender.name, [time.perf_counter() - began], [figures])
        prepared.check.look(outcome, output)
        found[contender.name] = outcome
    return found


def concluded(prepared: Prepared, outcomes: dict[str, Outcome]) -> str:
    assert prepared.conclude is not None
    shown = io.StringIO()
    for part in prepared.conclude(list(outcomes.values())):
        Console(width=200, file=shown).print(part)
    return shown.getvalue()


def figure(outcome: Outcome, name: str) -> float:
    found = outcome.figure(name)
    assert found is not None
    return found


@pytest.mark.spark
def test_heartbeats_unblock_the_merge(spark: SparkSession, tmp_path: Path) -> None:
    settings = Settings(scale=0.002, data=tmp_path / "data", quick=True)
    prepared = merge.EXPERIMENT.prepare(settings, lambda line: None)
    found = run_here(prepared, spark, tmp_path, ("every 10 s", OFF))
    beating, blocked = found["every 10 s"], found[OFF]
    assert beating.rows == blocked.rows
    assert beating.figure("rows") == beating.rows
    assert figure(beating, "rows_before_end") > 0.5 * figure(beating, "rows")
    assert blocked.figure("rows_before_end") == 0
    assert figure(blocked, "held_mb") > 1.5 * figure(beating, "held_mb")
    assert beating.figure("late") == blocked.figure("late") == 0
    assert len(beating.series["batch_held_mb"]) == beating.figure("batches")
    assert "without heartbeats 0 rows came out before the trace ended" in concluded(prepared, found)
    assert prepared.draw is not None
    prepared.draw(Figure(), list(found.values()))


@pytest.mark.spark
def test_a_stream_beside_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    settings = Settings(scale=0.0003, data=tmp_path / "data", quick=True)
    prepared = rate.EXPERIMENT.prepare(settings, lambda line: None)
    found = run_here(prepared, spark, tmp_path, (rate.BATCH, rate.STREAM))
    batch, stream = found[rate.BATCH], found[rate.STREAM]
    assert batch.rows == stream.rows
    assert batch.figure("tuples") == stream.figure("tuples") == 3000
    text = concluded(prepared, found)
    assert "all of the source, once" in text
    assert "of the batch's" in text


def test_queries_of_plain_streams() -> None:
    queries = sql_queries(SQL.read_text(encoding="utf-8"))
    beneath = [name for name, sql in queries.items() if not is_whole(sql)]
    assert len(queries) == 50
    assert len(beneath) == 10, "top-k, and those over other queries"
    assert sum(is_whole(sql) and closes(sql) for sql in queries.values()) >= 30
    for name in beneath:
        text = simplest(queries[name])
        assert text.startswith("SELECT DIV(time")
        assert text.count("(") == text.count(")")
    assert windowed(queries["senders"]) == (
        "SELECT (CAST(window.start AS BIGINT) DIV 60) AS tb, srcIP, COUNT(*) AS packets,"
        " BIGINT(SUM(len)) AS bytes\nFROM packets GROUP BY window(at, '60 seconds'), srcIP"
    )
    assert windowed(queries["syns"]) == queries["syns"]


def test_numbers() -> None:
    assert slope([0, 1, 2, 3], [5, 7, 9, 11]) == pytest.approx(2)
    assert slope([1, 1], [0, 5]) == 0
    assert second_half([0, 4, 6, 10], [1, 2, 3, 4]) == ([6, 10], [3, 4])
    found = interval([0.01, 0.03])
    assert found.mean == pytest.approx(0.02)
    assert found.half == pytest.approx(12.706 * 0.01)
    assert interval([0.5]).half == math.inf


def test_pairs_of_runs_give_the_overhead() -> None:
    with_ = Outcome(cpu.WITH, [30.0] * 3, [{"cpu_seconds": s} for s in (10.1, 10.2, 10.0)])
    without = Outcome(cpu.WITHOUT, [30.0] * 3, [{"cpu_seconds": s} for s in (10.0, 10.1, 10.0)])
    found = cpu.overhead([with_, without])
    assert found is not None
    assert found.mean == pytest.approx((0.01 + 0.1 / 10.1) / 3)
    assert "too few runs" in str(cpu.conclude([with_, without])[0])
    assert cpu.verdict(Interval(0.001, 0.002)) == "less than 1%"
    assert cpu.verdict(Interval(0.03, 0.002)) == "MORE THAN 1%"
    assert cpu.overhead([with_]) is None


def test_growth_is_seen_in_the_second_half() -> None:
    walls = [float(5 * i) for i in range(25)]
    outcome = Outcome("terascope", series={
        "sample_wall": walls,
        "driver_mb": [100.0 + (50 if w < 60 else 50 + (w - 60) / 30) for w in walls],
    })  # fmt: skip
    found = soak.growth(outcome, "driver_mb")
    assert found.mb_per_minute == pytest.approx(2.0)
    assert "TOO FAST" in str(found)


def test_processor_time_and_memory_of_this_process(tmp_path: Path) -> None:
    before = cpu_seconds(os.getpid())
    if not before:
        pytest.skip("processes are seen through /proc, which is not here")
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    assert cpu_seconds(os.getpid()) - before >= 0.08
    assert memory_of(os.getpid()).driver > 10
    (tmp_path / "a").write_bytes(b"12345")
    assert on_disk(tmp_path) == (1, 5)
    assert on_disk(tmp_path / "none") == (0, 0)
