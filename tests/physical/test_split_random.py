"""Whatever the set, the host and the costs: a split plan gives the answers of the plan.

A failing seed is in the test's name. TERASCOPE_SEEDS=1000 tries as many.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from terascope.analysis.costs import Costs
from terascope.physical.split.host import CAPTURE_FILTER, COMPILED_HOST, PLAIN_DECODER, Host
from terascope.physical.split.split_plan import SplitPlan, split_plan
from terascope.plan.rel import Aggregate, Filter, Project, Scan, walk
from terascope.reference.interpreter import evaluate
from tests.agreement import assert_same_answers, delivered
from tests.physical.merged_split import over_merged_groups
from tests.properties.engines import make_case
from tests.reference.memory_sources import MemorySources

SEEDS = range(200, 200 + int(os.environ.get("TERASCOPE_SEEDS", "10")))
WAYS: tuple[tuple[Host, Costs], ...] = (
    (COMPILED_HOST, Costs()),
    (COMPILED_HOST, Costs(budget_ns=6)),
    (COMPILED_HOST, Costs(budget_ns=1e9)),
    (CAPTURE_FILTER, Costs()),
    (PLAIN_DECODER, Costs()),
)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_splits_give_the_answers_of_the_whole(seed: int, tmp_path: Path) -> None:
    case = make_case(seed, tmp_path, queries=12, rows=40)
    plan, sources = case.compiled.optimized, MemorySources(case.tables)
    expected = delivered(plan, evaluate(plan, sources))
    for host, costs in WAYS:
        split = split_plan(plan, host, costs)
        check_forms(split)
        streams = evaluate(split.plan, sources)
        assert_same_answers(expected, delivered(split.plan, streams))
        merged = over_merged_groups(split, streams)
        assert_same_answers(expected, delivered(merged, evaluate(merged, sources)))


def check_forms(split: SplitPlan) -> None:
    """Scans stand in low-level streams only, and those have one of the two forms."""
    low = {stream.name for stream in split.low}
    for stream in split.plan:
        if stream.name not in low:
            assert not any(isinstance(r, Scan) for r in walk(stream.rel)), stream.name
            continue
        assert not stream.visible
        assert isinstance(stream.rel, Project | Aggregate)
        below = stream.rel.source
        assert isinstance(below.source if isinstance(below, Filter) else below, Scan)
