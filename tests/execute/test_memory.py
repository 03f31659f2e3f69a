"""A task with less memory than its groups need: they wait on disk, and leave it complete."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.queries78 import PAIRS, gsql
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.execute.spill import SpilledGroups
from terascope.kernels.merge.groups import Block
from terascope.physical.job import Job
from terascope.physical.planner import plan_job
from terascope.pipeline import Bindings, compile_set
from terascope.traffic.flow_records import generate_flows
from terascope.traffic.profile import FlowProfile
from tests.execute.low_engine import low_rows
from tests.settings import config_with

RECORDS = 150_000
LITTLE = 48 << 20


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flows") / "flows.parquet"
    generate_flows(FlowProfile(records=RECORDS, duration=300), path)
    return path


def job_with(path: Path, memory_bytes: int, compiled: bool) -> Job:
    flows = {"flows": parse_interface(f"flows=parquet:{path}")}
    plan = compile_set(Source(gsql(PAIRS[::5]), "pairs"), Bindings(interfaces=flows)).optimized
    tables = {"memory_bytes": memory_bytes, "kernels": "numba" if compiled else "numpy"}
    return plan_job(plan, flows, 1 << 20, config_with(**tables, share_sample="always"))


@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "machine code"])
def test_groups_that_do_not_fit_wait_on_disk(
    flows: Path, compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put: list[int] = []
    really = SpilledGroups.spill

    def counted(self: SpilledGroups, block: Block, states: None = None) -> None:
        put.append(len(block.rows))
        really(self, block, states)

    monkeypatch.setattr(SpilledGroups, "spill", counted)
    expected, _ = low_rows(job_with(flows, 1 << 30, compiled), 1, tmp_path)
    assert not put
    found, counters = low_rows(job_with(flows, LITTLE, compiled), 1, tmp_path)
    assert sum(put) > RECORDS // 2
    assert [task.partials.sum() for task in counters] == [0], "nothing had to be merged by Spark"
    assert found.keys() == expected.keys()
    for name, rows in expected.items():
        assert Counter(found[name]) == Counter(rows), name
