"""Strategies of states that follow the traffic while a stream runs, with kills in between."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest

from terascope.sketches import greenwald_khanna
from terascope.streaming.replan import replanning
from terascope.streaming.replan.strategies import with_chosen
from terascope.streaming.tasks import read as stream_task
from tests.properties.plain_streams import Killed, OffsetLog, PlainRun
from tests.properties.stream_cases import KILL_POINTS
from tests.properties.stream_results import rows_of
from tests.properties.swapped_skew import SAMPLED, run_settings, swapped_set
from tests.settings import Changes

EPS = 0.05
SET = f"""
PROTOCOL S (ts UINT increasing clock(s), a UINT, b UINT, c UINT, d STRING, v INT);
QUERY mids: SELECT tb, a, COUNT(*) AS n, approx_percentile(v, 50, {EPS}) AS mid,
    heavy_hitters(c, 3) AS top FROM [links].S GROUP BY ts/100 AS tb, a;
"""
APART: Changes = {"low_cores_per_high": 8.0}


@pytest.fixture(autouse=True)
def planned_at_once() -> Iterator[None]:
    """Between two batches; and groups of 70 tuples are large."""
    with (
        patch.object(replanning, "in_background", lambda work: work()),
        patch.object(greenwald_khanna, "LARGE", 0.2),
    ):
        yield


def exact_groups(folder: Path) -> dict[tuple[int, int], tuple[Any, Any]]:
    """The values and the counts of c of each group of the query."""
    table = pq.read_table(folder / "left.parquet").to_pydict()
    values: dict[tuple[int, int], list[int]] = {}
    heavy: dict[tuple[int, int], Counter[int]] = {}
    for ts, a, c, v in zip(table["ts"], table["a"], table["c"], table["v"], strict=True):
        values.setdefault((ts // 100, a), []).append(v)
        heavy.setdefault((ts // 100, a), Counter())[c] += 1
    return {key: (np.sort(some), heavy[key]) for key, some in values.items()}


def assert_rows(folder: Path) -> None:
    """All groups once, with right counts and heavy hitters, and medians within their bound."""
    exact, rows = exact_groups(folder), rows_of(folder / "out" / "mids")
    assert Counter(row[:2] for row in rows) == Counter(exact.keys())
    for row in rows:
        tb, a, n, mid, top = cast(tuple[int, int, int, int, str], row)
        values, heavy = exact[tb, a]
        assert n == len(values)
        rank, most = max(1, -(-n // 2)), int(EPS * n)
        first, last = (
            np.searchsorted(values, mid, "left") + 1,
            np.searchsorted(values, mid, "right"),
        )
        assert first - most <= rank <= last + most
        shown = ", ".join(
            f'{{"id": {c}, "estimate": {count}, "error": 0}}'
            for c, count in sorted(heavy.items(), key=lambda pair: (-pair[1], pair[0]))
        )
        assert top == f"[{shown}]"


def strategies(run: PlainRun) -> dict[str, str]:
    return {one.state: one.strategy for one in run.runner.replanner.strategies()}


def test_the_strategy_follows_the_sizes_of_groups(tmp_path: Path) -> None:
    """First 150 tuples a group, then one."""
    made = swapped_set(tmp_path, APART, text=SET)
    settings = run_settings(tmp_path, {**SAMPLED, **APART}, 30_000, 2)
    run = PlainRun(made.compiled, settings, OffsetLog())
    seen, used = list[str](), list[str]()
    (before,) = (one for one in run.runner.replanner.strategies() if "quantile" in one.state)
    assert before.strategy == ""
    assert before.why.startswith("each task chooses by its first tuples")

    def noted(*given: Any) -> Any:
        plan = with_chosen(*given)
        used.extend(
            slot.kind.state.strategy if slot.kind.state.choose is None else "open"
            for query in plan.aggregations
            for slot in query.slots
            if slot.kind.state is not None and "quantile" in slot.kind.state.name
        )
        return plan

    with patch.object(stream_task, "with_chosen", noted):
        while not run.ended:
            run.step()
            found = [s for name, s in strategies(run).items() if "quantile" in name]
            seen += found if found != seen[-1:] else []
    (after,) = (one for one in run.runner.replanner.strategies() if "quantile" in one.state)
    run.close()
    assert seen == ["gk_heavy", "gk_lite"]
    assert [s for i, s in enumerate(used) if used[i - 1 : i] != [s]] == [
        "open",
        "gk_heavy",
        "gk_lite",
    ], "what is in force is what tasks use"
    assert "few full buffers" in after.why
    assert after.since > 0
    assert after.groups > 100
    assert_rows(tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_changes_of_strategy_survive_kills(seed: int, tmp_path: Path) -> None:
    """Batches are killed and run again, perhaps with other strategies than the first time."""
    rng = random.Random(seed)
    made = swapped_set(tmp_path, APART, text=SET)
    settings = run_settings(tmp_path, {**SAMPLED, **APART}, rng.choice([10_000, 40_000]), 2)
    log, known = OffsetLog(), set[str]()
    run = PlainRun(made.compiled, settings, log)
    while not run.ended:
        try:
            kill = rng.choice(KILL_POINTS) if rng.random() < 0.3 else None
            run.step(kill, rng.randrange(3))
        except Killed:
            run.close()
            before = run.runner.replanner.trees
            run = PlainRun(made.compiled, settings, log)
            assert run.runner.replanner.trees.traffic == before.traffic, "it goes on with them"
        known |= set(strategies(run).values())
    run.close()
    assert {"gk_heavy", "gk_lite"} <= known
    assert_rows(tmp_path)


def test_levels_on_the_same_cores_stay_with_the_least_work(tmp_path: Path) -> None:
    made = swapped_set(tmp_path, {}, text=SET)
    run = PlainRun(made.compiled, run_settings(tmp_path, SAMPLED, 30_000), OffsetLog())
    seen = set[str]()
    while not run.ended:
        run.step()
        seen |= {s for name, s in strategies(run).items() if "quantile" in name}
    run.close()
    assert seen == {"gk_lite"}
    assert_rows(tmp_path)
