"""A stream over partitioned sources gives the rows of a batch, whatever the partitioning, the
micro-batches, kills and restarts. TERASCOPE_STREAM_SEEDS=1000 runs more seeds.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from terascope.connectors.registry import Interface
from tests.properties.growing_files import Growing
from tests.properties.partitioned_tables import partitioned_files, random_partitions
from tests.properties.plain_streams import limited_to
from tests.properties.stream_cases import StreamCase, Tuples, make_stream_case
from tests.properties.stream_queries import StreamSet
from tests.properties.stream_results import assert_delivered
from tests.properties.stream_runs import CaseRuns

FIRST = 700
SEEDS = range(FIRST, FIRST + int(os.environ.get("TERASCOPE_STREAM_SEEDS", "6")))
SAMPLE = range(FIRST, FIRST + 8)
QUERIES, ROWS = 8, 60


class ClockedSet(StreamSet):
    """No query over a column that is ordered and no clock: over several links it is unordered."""

    def makers(self) -> list[Callable[[], None]]:
        return [one for one in super().makers() if one != self.falling]


def partitioned_case(seed: int, folder: Path) -> StreamCase:
    by, count = random_partitions(random.Random(seed))

    def bind(interface: Interface, tuples: Tuples, rng: random.Random) -> dict[str, Interface]:
        return partitioned_files(interface, tuples, by, count, rng)

    return make_stream_case(seed, folder, QUERIES, ROWS, bind, ClockedSet)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"stream-seed-{s}")
def test_a_stream_of_partitions_gives_the_rows_of_a_batch(seed: int, tmp_path: Path) -> None:
    case = partitioned_case(seed, tmp_path / "in")
    expected = case.expected()
    runs = CaseRuns(case, tmp_path)
    with limited_to(case.portion):
        trace = runs.replay() if seed % 3 else runs.follow(Growing.of(case))
    assert trace.late == 0, f"seed {seed}: tuples came too late"
    assert_delivered(expected, tmp_path / "out", case)


def test_the_cases_are_about_something(tmp_path: Path) -> None:
    """Partitions finish some queries, and there are kills and slices that close early."""
    traces, kept = [], 0
    for seed in SAMPLE:
        case = partitioned_case(seed, tmp_path / f"in{seed}")
        runs = CaseRuns(case, tmp_path / f"run{seed}")
        with limited_to(case.portion):
            traces.append(runs.replay())
        run = runs.opened(runs.live(None, until_idle=True), tasks=1)
        owned = run.runner.plan.job.ownership
        kept += 0 if owned is None else sum(o.name in owned.kept for o in run.runner.plan.outputs)
        run.close()
    assert kept > 8
    assert sum(trace.kills for trace in traces) > 2
    assert sum(trace.early for trace in traces) > 8
