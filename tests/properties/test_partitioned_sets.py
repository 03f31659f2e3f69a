"""A set over partitioned sources gives the rows of the reference over the same tuples, whatever the
partitioning, the engine and the queries that partitions finish.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from terascope.connectors.registry import Interface
from terascope.execute import held_rows
from terascope.physical.planner import plan_job
from terascope.reference.interpreter import evaluate
from tests.agreement import WITHOUT_COMPILING, assert_same_answers, delivered, local_answers
from tests.properties.engines import Case, bound_case, random_tables, write_table
from tests.properties.partitioned_tables import as_partitions, divided, random_partitions
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

SEEDS = range(300, 300 + int(os.environ.get("TERASCOPE_LOCAL_SEEDS", "8")))
SAMPLE = range(300, 312)
SENDING_TUPLES = config_with(kernels="numpy", send_tuples="always", share_sample="always")


def partitioned_case(seed: int, folder: Path, queries: int, rows: int) -> Case:
    """A random set over tables that are split by a random set; one table in three seeds by
    another, or not at all.
    """
    rng = random.Random(seed)
    by, count = random_partitions(rng)
    declared, hosts = rng.random() < 0.5, rng.choice([0, 0, 2])
    tables = random_tables(seed, rows)
    interfaces: dict[str, Interface] = {}
    for name, tuples in tables.items():
        if rng.random() < 0.15:
            write_table(folder / f"{name}.parquet", tuples)
            whole = Interface(name, "parquet", str(folder / f"{name}.parquet"))
            interfaces[name] = whole
            continue
        if rng.random() < 0.15:
            by, count = random_partitions(rng)
        if rng.random() < 0.05:
            by, declared = "", True
        paths = []
        for number, some in enumerate(divided(tuples, by, count)):
            paths.append(folder / f"{name}-{number}.parquet")
            write_table(paths[-1], some)
        interfaces |= as_partitions(Interface(name, "parquet", ""), paths, by, declared, hosts)
    return bound_case(seed, interfaces, tables, queries)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_partitions_agree_with_the_reference(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # as if no partition fitted into memory
        monkeypatch.setattr(held_rows, "PORTION_SHARE", 1 << 40)
        monkeypatch.setattr(held_rows, "MOST_PORTIONS", 3)
    case = partitioned_case(seed, tmp_path, queries=14, rows=70)
    plan, interfaces = case.compiled.optimized, case.compiled.bindings.interfaces
    expected = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    folder = tmp_path / "parts" if seed % 4 < 2 else None
    for low in (WITHOUT_COMPILING, SENDING_TUPLES):
        found = local_answers(plan, interfaces, 1 + seed % 5, 1, low, folder)
        assert_same_answers(expected, found)


def test_the_cases_are_about_something(tmp_path: Path) -> None:
    """Partitions finish queries, others are computed above, some of them from sent tuples."""
    finished = above = sending = 0
    for seed in SAMPLE:
        (tmp_path / str(seed)).mkdir()
        case = partitioned_case(seed, tmp_path / str(seed), queries=14, rows=70)
        interfaces = case.compiled.bindings.interfaces
        job = plan_job(
            case.compiled.optimized, interfaces, config=SENDING_TUPLES, destination="rows"
        )
        if job.ownership is not None:
            kept = [output for output in job.outputs if output.stream in job.ownership.kept]
            finished += len(kept)
            above += len(job.outputs) - len(kept)
            sending += bool(job.ownership.sending)
    assert finished > 12
    assert above > 12
    assert sending > 2
