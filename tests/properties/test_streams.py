"""A stream gives the rows of a batch, whatever the micro-batches, tasks, disorder and failures.

A failing seed is in the test's name and can be run alone: pytest -k 'stream-seed-17'.
TERASCOPE_STREAM_SEEDS=1000 runs more of them, TERASCOPE_STREAM_FIRST=500 others.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from terascope.connectors.live import Speed
from terascope.streaming.batch import Resting
from tests.properties.growing_files import Growing
from tests.properties.plain_streams import limited_to
from tests.properties.stream_cases import make_stream_case
from tests.properties.stream_results import assert_delivered
from tests.properties.stream_runs import CaseRuns

FIRST = int(os.environ.get("TERASCOPE_STREAM_FIRST", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("TERASCOPE_STREAM_SEEDS", "12")))
QUERIES, ROWS = 8, 60
SAMPLE = 12


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"stream-seed-{s}")
def test_a_stream_gives_the_rows_of_a_batch(seed: int, tmp_path: Path) -> None:
    case = make_stream_case(seed, tmp_path / "in", QUERIES, ROWS)
    expected = case.expected()
    runs = CaseRuns(case, tmp_path)
    with limited_to(case.portion):
        trace = runs.replay() if seed % 3 else runs.follow(Growing.of(case))
    assert trace.late == 0, f"seed {seed}: tuples came too late"
    assert_delivered(expected, tmp_path / "out", case)


def test_a_batch_that_comes_when_the_stream_is_being_stopped_is_run_later(tmp_path: Path) -> None:
    case = replace(make_stream_case(1, tmp_path / "in", QUERIES, ROWS), stops=())
    expected = case.expected()
    runs = CaseRuns(case, tmp_path)
    run = runs.opened(runs.live(Speed.parse("max"), until_idle=True), tasks=2)
    assert run.step()
    run.runner.pipeline.rest()
    with pytest.raises(Resting):
        run.step()
    run.close()
    assert runs.replay().batches > 1
    assert_delivered(expected, tmp_path / "out", case)


def test_the_cases_are_about_something(tmp_path: Path) -> None:
    """Several batches, kills that happen, slices that are let go before the end, and rows."""
    traces, rows = [], 0
    for seed in range(SAMPLE):
        case = make_stream_case(seed, tmp_path / f"in{seed}", QUERIES, ROWS)
        rows += sum(len(answer.rows) for answer in case.expected().values())
        with limited_to(case.portion):
            traces.append(CaseRuns(case, tmp_path / f"run{seed}").replay())
    assert rows > 100 * SAMPLE
    assert sum(trace.batches for trace in traces) > 3 * SAMPLE
    assert sum(trace.kills for trace in traces) > SAMPLE // 3
    assert sum(trace.early for trace in traces) > SAMPLE
