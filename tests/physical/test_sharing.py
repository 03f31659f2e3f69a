"""Whatever the queries of a set share, the answers are those of each query alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from terascope.config import Config
from terascope.physical.job import Job
from terascope.physical.low_plan import LowAggregate
from terascope.physical.planner import plan_job
from terascope.physical.rules import grow_trees as trees
from terascope.reference.interpreter import evaluate
from tests.execute.low_engine import answers, low_rows
from tests.oracle.agreement import agreed
from tests.oracle.compare import assert_same_rows
from tests.physical.sharing_sets import SharingSet, sharing_set, tree_set
from tests.properties.engines import visible_rows
from tests.reference.connector_sources import ConnectorSources
from tests.settings import SOAK, Changes, config_with

SEEDS = range(int(os.environ.get("TERASCOPE_SEEDS", "10")))
INTERPRETED = {"kernels": "numpy"}
MODES: list[Changes] = [
    {"share_windows": "cost", "share_tables": "always", "share_sample": "always"},
    {"share_windows": "paired", "share_tables": "never", "share_sample": "always"},
    {"share_windows": "paned", "share_tables": "always", "share_sample": "always"},
    {"share_windows": "unshared", "share_tables": "never", "share_sample": "always"},
    {},
]


TREES: list[Changes] = [
    {"share_trees": "time"},
    {"share_trees": "operations", "tree_memory": 1 << 20},
    {"share_trees": "operations", "tree_memory": 2000},
    {"share_trees": "operations", "tree_memory": 1},
    {"share_trees": "operations", "tree_memory": 2000, "tree_leaves": "free"},
    {"share_trees": "operations", "tree_memory": 1, "tree_leaves": "free"},
]


def check(made: SharingSet, settings: Config, tasks: int, folder: Path) -> Job:
    compiled = made.compiled
    interfaces = dict(compiled.bindings.interfaces)
    sources = ConnectorSources(interfaces)
    job = plan_job(compiled.optimized, interfaces, 1, settings)
    low, _ = low_rows(job, tasks, folder)
    found = answers(job, low, compiled.optimized, sources)
    expected = visible_rows(compiled.plan, evaluate(compiled.plan, sources))
    for stream in compiled.plan.visible:
        rows = visible_rows(replace(compiled.plan, streams=(stream,)), found)[stream.name]
        assert_same_rows(expected[stream.name], rows, stream.rel.visible)
    return job


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_shared_answers_are_those_of_each_query(seed: int, tmp_path: Path) -> None:
    made = sharing_set(seed, tmp_path)
    sharing = MODES[seed % len(MODES)]
    check(made, config_with(**INTERPRETED, **sharing), 1 + seed % 3, tmp_path)


@pytest.mark.parametrize("tables", ["never", "always"])
def test_trees_give_the_answers_of_each_query(
    tables: Literal["never", "always"], tmp_path: Path
) -> None:
    """Whatever is saved, with any memory, and with conditions that ride along."""
    nodes, below = 0, 0
    for seed in range(12 if SOAK else 6):
        made = tree_set(seed, tmp_path)
        sharing: Changes = {
            "share_windows": "cost",
            "share_tables": tables,
            **TREES[seed % len(TREES)],
            "share_sample": "always",
        }
        settings = config_with(**INTERPRETED, **sharing)
        job = check(made, settings, 1 + seed % 3, tmp_path)
        (low,) = [read.low for read in job.reads]
        assert low is not None
        nodes += len(low.inner)
        below += sum(isinstance(q, LowAggregate) and q.parent is not None for q in low.queries)
    assert nodes >= (3 if SOAK else 2)
    assert below > (15 if SOAK else 7)


def test_a_budget_too_small_for_anything_gives_exact_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees are made whether they pay or not: what does not fit leaves its query for the merge."""
    monkeypatch.setattr(trees, "LEAST_GAIN", -100.0)
    sizes: list[int] = []
    for seed, memory in enumerate((1, 1, 300, 2000)):
        made = tree_set(seed, tmp_path)
        sharing: Changes = {
            "share_windows": "cost",
            "share_tables": "never",
            "share_trees": "operations",
            "tree_memory": memory,
        }
        settings = config_with(**INTERPRETED, **sharing)
        job = check(made, settings, 1 + seed % 3, tmp_path)
        tables = [q.table for q in aggregations(job) if q.table.kind == "lru"]
        assert tables or not job.decisions
        sizes += [table.groups or 0 for table in tables]
    assert len(sizes) > 8
    assert min(sizes) == 1 < max(sizes)


def aggregations(job: Job) -> list[LowAggregate]:
    lows = [read.low for read in job.reads if read.low is not None]
    return [q for low in lows for q in low.queries if isinstance(q, LowAggregate)]


@pytest.mark.soak  # tests/execute/test_tree.py runs trees as machine code
def test_trees_of_machine_code_give_the_same(tmp_path: Path) -> None:
    """Few queries: each kernel of a table of fixed size takes seconds to compile."""
    made = tree_set(3, tmp_path, queries=4)
    sharing: Changes = {"share_windows": "cost", "share_tables": "never", **TREES[2]}
    job = check(made, config_with(**sharing), 2, tmp_path)
    (low,) = [read.low for read in job.reads]
    assert low is not None
    assert low.inner
    assert sum(query.parent is not None for query in aggregations(job)) > 1


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_machine_code_gives_the_same(seed: int, tmp_path: Path) -> None:
    made = sharing_set(seed, tmp_path, queries=5)
    check(made, config_with(**MODES[0]), 2, tmp_path)


@pytest.mark.parametrize("seed", range(5))
def test_duckdb_gives_the_same(seed: int, tmp_path: Path) -> None:
    made = sharing_set(1000 + seed, tmp_path)
    sources = ConnectorSources(made.compiled.bindings.interfaces)
    agreed(made.compiled.optimized, sources, frozenset())
