"""Golden files: plans, diagnostics and rows, pinned as text; rows by every engine.

`pytest tests/golden --bless` rewrites the sections; the diff is then what changed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from terascope.config import Config
from terascope.optimize.driver import optimize
from terascope.reference.interpreter import evaluate
from tests.agreement import (
    CATALYST,
    INTERPRETED,
    WITHOUT_COMPILING,
    agreed_answers,
    assert_same_answers,
    combined,
    delivered,
    in_thirds,
    local_answers,
    of_set,
    spark_answers,
)
from tests.golden.cases import GOLDEN, Case, all_cases, bless, show_answers
from tests.reference.connector_sources import ConnectorSources
from tests.settings import SOAK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = all_cases()
RUN = tuple(case for case in CASES if case.has("rows"))
NATIVE = RUN if SOAK else RUN[::12]
"""Cases whose low level is computed by tasks of Spark; the local engine runs the same tasks for all
of them.
"""
IN_CATALYST = RUN if SOAK else RUN[1::8]
"""Cases that DataFrame operations compute from the tuples on."""
BEYOND_DUCKDB: dict[str, tuple[str, ...]] = {
    "functions/udaf-declaration": ("query1",),  # a user's aggregate
    "functions/user-defined": ("query2", "query3"),  # users' aggregates
}
"""Streams that DuckDB's SQL cannot say, by case: what they use has no counterpart there."""


def title(case: Case) -> str:
    return case.title


@pytest.mark.parametrize("case", CASES, ids=title)
def test_golden(case: Case, request: pytest.FixtureRequest) -> None:
    outcomes = [
        agreed_rows(case) if section.kind == "rows" else case.outcome(section)
        for section in case.sections
    ]
    if request.config.getoption("--bless"):
        bless(case, outcomes)
        return
    for section, text in zip(case.sections, outcomes, strict=True):
        assert text == section.text, section.header


def agreed_rows(case: Case) -> str:
    sources = ConnectorSources(case.bindings.interfaces)
    beyond = BEYOND_DUCKDB.get(case.title, ())
    return show_answers(agreed_answers(case.compiled.plan, sources, beyond))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("partitions", "low", "cases"),
    [(1, CATALYST, IN_CATALYST), (3, WITHOUT_COMPILING, NATIVE)],
    ids=["catalyst", "native"],
)
def test_spark_gives_the_same_rows(
    partitions: int, low: Config, cases: tuple[Case, ...], spark: SparkSession
) -> None:
    """The cases in one job, so that they also share what they have in common; by either low
    level.
    """
    plans = {case.title: case.compiled.plan for case in cases}
    interfaces = {n: i for case in cases for n, i in case.bindings.interfaces.items()}
    sources = ConnectorSources(interfaces)
    several = partitions > 1
    split_bytes = in_thirds(interfaces.values()) if several else 1 << 30
    settings = INTERPRETED | {"spark.sql.adaptive.enabled": str(several).lower()}
    plan = optimize(combined(plans))
    found = spark_answers(plan, interfaces, spark, partitions, split_bytes, settings, low)
    for name, each in plans.items():
        assert_same_answers(delivered(each, evaluate(each, sources)), of_set(name, found))


@pytest.mark.parametrize("tasks", [1, 3])
def test_the_local_engine_gives_the_same_rows(tasks: int, tmp_path: Path) -> None:
    """All cases in one job; with several tasks these also write what they can finish."""
    plans = {case.title: case.compiled.plan for case in RUN}
    interfaces = {n: i for case in RUN for n, i in case.bindings.interfaces.items()}
    sources = ConnectorSources(interfaces)
    split_bytes = in_thirds(interfaces.values()) if tasks > 1 else 1 << 30
    folder = tmp_path if tasks > 1 else None
    plan = optimize(combined(plans))
    found = local_answers(plan, interfaces, tasks, split_bytes, folder=folder)
    for name, each in plans.items():
        assert_same_answers(delivered(each, evaluate(each, sources)), of_set(name, found))


def codes_in(folder: Path) -> set[str]:
    """Every code a diagnostic can have, as the sources write them."""
    made = re.compile(
        r"\b(?:error|warning|complain|Diagnostic|mistake|_refusal)"
        r'\(\s*(?:context,\s*)?"([a-z]+(?:-[a-z]+)*)"'
    )
    return {code for path in folder.rglob("*.py") for code in made.findall(path.read_text())}


def test_every_code_has_a_case() -> None:
    package = GOLDEN.parents[1] / "terascope"
    known = codes_in(package / "bind") | codes_in(package / "syntax")
    shown = {
        code
        for case in CASES
        for section in case.sections
        if section.kind in ("error", "warning")
        for code in re.findall(r"^(?:error|warning)\[([a-z-]+)\]", section.text, re.MULTILINE)
    }
    assert len(known) > 40
    # tests/bind/test_files.py has the one that a setting must ask for
    assert known - shown == {"forbidden-file"}
