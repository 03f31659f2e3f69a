"""Whatever the set and the stream, every way of computing it gives the same rows.

A failing seed is in the test's name and can be run alone: pytest -k 'seed-17'. TERASCOPE_SEEDS=1000
runs more of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from terascope.optimize.driver import optimize, rule_names
from terascope.reference.interpreter import evaluate
from tests.oracle.agreement import agreed
from tests.oracle.compare import assert_same_rows
from tests.properties.engines import make_case, visible_rows
from tests.reference.connector_sources import ConnectorSources

SEEDS = range(int(os.environ.get("TERASCOPE_SEEDS", "20")))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_reference_optimised_plan_and_duckdb_agree(seed: int, tmp_path: Path) -> None:
    case = make_case(seed, tmp_path, queries=10, rows=60)
    sources = ConnectorSources(case.compiled.bindings.interfaces)
    plan, optimized = case.compiled.plan, case.compiled.optimized
    plain = visible_rows(plan, evaluate(plan, sources))
    rows = visible_rows(optimized, agreed(optimized, sources, case.running))
    for stream in plan.visible:
        assert_same_rows(plain[stream.name], rows[stream.name], stream.rel.visible)


@pytest.mark.parametrize("rule", rule_names())
def test_answers_are_the_same_without_a_rule(rule: str, tmp_path: Path) -> None:
    case = make_case(len(rule), tmp_path, queries=14, rows=50)
    sources = ConnectorSources(case.compiled.bindings.interfaces)
    plan = case.compiled.plan
    without = optimize(plan, disabled=frozenset({rule}))
    expected = visible_rows(case.compiled.optimized, evaluate(case.compiled.optimized, sources))
    actual = visible_rows(without, evaluate(without, sources))
    for stream in plan.visible:
        assert_same_rows(expected[stream.name], actual[stream.name], stream.rel.visible)
