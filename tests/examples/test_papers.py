"""Every query the papers print: it parses, prints, explains, runs, and all engines agree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import QueryError, Source
from terascope.optimize.driver import optimize
from terascope.pipeline import compile_set
from terascope.plan.plan import Plan
from terascope.plan.rel import Aggregate, walk
from terascope.plan.show import show_plan
from terascope.reference.interpreter import evaluate
from terascope.syntax.parser import parse
from terascope.syntax.printer import print_script
from tests.agreement import (
    agreed_answers,
    assert_same_answers,
    combined,
    delivered,
    in_thirds,
    of_set,
    spark_answers,
)
from tests.examples.papers import EXAMPLES, PAPERS, Example, title
from tests.reference.connector_sources import ConnectorSources
from tests.settings import SOAK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAME_ROWS = {
    "p0-3.2-sliced-windows": ("sliding", "paned", "paired"),
    "p2-5.2.2-sub-and-super-aggregate": ("tcp_count", "super_tcp_count"),
    "p3-3.4.1-hostnames": ("hostnames", "hostnames_high"),
}
"""Sets in which the papers write one query in several ways."""


@pytest.fixture(scope="session")
def sources(traffic: Path) -> ConnectorSources:
    """All interfaces of all examples; every file is decoded once."""
    interfaces: dict[str, Interface] = {}
    for example in EXAMPLES:
        interfaces |= example.bindings(traffic).interfaces
    return ConnectorSources(interfaces)


@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_parses_and_prints(example: Example) -> None:
    script = parse(example.source)
    assert parse(Source(print_script(script))) == script


@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_says_where_it_is_printed_and_what_is_changed(example: Example) -> None:
    text = example.source.text
    assert re.match(r"-- (Paper \d|Dissertation \(paper 3\)), ", text)
    assert re.search(r"^-- Printed", text, re.MULTILINE)
    assert re.search(r"^-- Ours:", text, re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_explains_without_and_with_sources(example: Example, traffic: Path) -> None:
    for bindings in (None, example.bindings(traffic)):
        compiled = compile_set(example.source, bindings)
        assert not compiled.warnings
        for plan in (compiled.plan, compiled.optimized):
            for stream in plan.visible:
                assert f"{stream.name}:\n" in show_plan(plan)


def approximate(plan: Plan) -> list[str]:
    """The streams with aggregates that DuckDB computes in another way."""
    return [
        stream.name
        for stream in plan
        for rel in walk(stream.rel)
        if isinstance(rel, Aggregate) and any(agg.function.bound() for _, agg in rel.aggs)
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_reference_optimised_plan_and_duckdb_agree(
    example: Example, traffic: Path, sources: ConnectorSources
) -> None:
    plan = compile_set(example.source, example.bindings(traffic)).plan
    answers = agreed_answers(plan, sources, approximate(plan))
    assert answers
    for name, answer in answers.items():
        assert answer.rows, f"{name} gives no row"
    ways = [answers[name].rows for name in SAME_ROWS.get(title(example), ())]
    assert all(way == ways[0] for way in ways)


@pytest.mark.spark
def test_spark_agrees(traffic: Path, sources: ConnectorSources, spark: SparkSession) -> None:
    """Examples in one job: no two of them see different packets."""
    some = EXAMPLES if SOAK else EXAMPLES[::3]
    plans = {title(e): compile_set(e.source, e.bindings(traffic)).plan for e in some}
    plan = optimize(combined(plans))
    size = in_thirds(sources.interfaces.values())
    found = spark_answers(plan, sources.interfaces, spark, 3, size)
    for name, each in plans.items():
        assert_same_answers(delivered(each, evaluate(each, sources)), of_set(name, found))


def printed_elsewhere() -> list[tuple[str, str, str]]:
    text = (PAPERS / "not-gsql.txt").read_text(encoding="utf-8")
    return re.findall(r"^---- (.*)\n((?:.*\n)*?)==> (\S+)$", text, re.MULTILINE)


@pytest.mark.parametrize(("where", "text", "code"), printed_elsewhere())
def test_other_languages_are_refused(where: str, text: str, code: str) -> None:
    with pytest.raises(QueryError) as refused:
        compile_set(Source(text, where))
    assert code in refused.value.codes
