"""The native low level gives the partials that its streams mean, whatever the tables, the tasks,
the memory; as machine code and as numpy.
"""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from terascope.physical.low_plan import Flush, TableKind
from tests.execute.low_engine import assert_low_level_agrees
from tests.properties.engines import make_case
from tests.reference.connector_sources import ConnectorSources
from tests.settings import SOAK, Changes, config_with

SEEDS = range(int(os.environ.get("TERASCOPE_SEEDS", "10")))
BOUNDED = ("direct_mapped", "second_chance", "lru")
COMPILED = BOUNDED if SOAK else BOUNDED[-1:]
TABLES = [("open", "eager"), *product(COMPILED, ("eager", "lazy"))]
"""An open table is emptied at once."""


def check(seed: int, folder: Path, tables: Changes, tasks: int, queries: int = 10) -> None:
    case = make_case(seed, folder, queries=queries, rows=60)
    interfaces = dict(case.compiled.bindings.interfaces)
    assert_low_level_agrees(
        case.compiled.optimized,
        interfaces,
        ConnectorSources(interfaces),
        config_with(**tables, share_sample="always"),
        tasks,
        1,
        folder,
    )


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_numpy_gives_the_partials_of_the_reference(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path, {"kernels": "numpy"}, tasks=1 + seed % 3)


@pytest.mark.parametrize(("kind", "flush"), TABLES)
def test_machine_code_gives_the_same(kind: TableKind, flush: Flush, tmp_path: Path) -> None:
    # Every shape of a table of fixed size takes seconds to compile.
    for seed in (1, 9) if kind == "open" else (7,):
        check(seed, tmp_path, {"table": kind, "flush": flush}, tasks=2)


def test_hardly_any_memory_gives_the_same(tmp_path: Path) -> None:
    for seed in (1, 9):
        check(seed, tmp_path, {"memory_bytes": 1 << 16}, tasks=2)
