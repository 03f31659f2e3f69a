"""The local engine gives the rows of the reference, in the same order, whatever the number of
tasks, and whether tasks write what they can finish or not.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from terascope.reference.interpreter import evaluate
from tests.agreement import assert_same_answers, delivered, local_answers
from tests.properties.engines import make_case
from tests.reference.connector_sources import ConnectorSources

SEEDS = range(100, 100 + int(os.environ.get("TERASCOPE_LOCAL_SEEDS", "8")))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_the_local_engine_agrees_with_the_reference(seed: int, tmp_path: Path) -> None:
    case = make_case(seed, tmp_path, queries=14, rows=70)
    plan, interfaces = case.compiled.optimized, case.compiled.bindings.interfaces
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    tasks, split_bytes = (1, 1 << 30) if seed % 2 else (3, 1)
    folder = tmp_path / "parts" if seed % 4 < 2 else None
    found = local_answers(plan, interfaces, tasks, split_bytes, folder=folder)
    assert_same_answers(expected, found)
