"""A stream gives the rows of a batch, whatever the micro-batches, tasks, disorder and failures.

A failing seed is in the test's name and can be run alone: pytest -k 'stream-seed-17'.
TERASCOPE_STREAM_SEEDS=1000 runs more of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.properties.growing_files import Growing
from tests.properties.plain_streams import limited_to
from tests.properties.stream_cases import make_stream_case
from tests.properties.stream_results import assert_delivered
from tests.properties.stream_runs import CaseRuns

FIRST = int(os.environ.get("TERASCOPE_STREAM_FIRST", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("TERASCOPE_STREAM_SEEDS", "100")))
QUERIES, ROWS = 8, 60


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"stream-seed-{s}")
def test_a_stream_gives_the_rows_of_a_batch(seed: int, tmp_path: Path) -> None:
    case = make_stream_case(seed, tmp_path / "in", QUERIES, ROWS)
    expected = case.expected()
    runs = CaseRuns(case, tmp_path)
    with limited_to(case.portion):
        trace = runs.replay() if seed % 3 else runs.follow(Growing.of(case))
    assert trace.late == 0, f"seed {seed}: tuples came too late"
    assert_delivered(expected, tmp_path / "out", case)
