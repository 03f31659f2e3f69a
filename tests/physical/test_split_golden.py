"""Every golden set: its split plan gives its rows, and the printed split plan parses to itself."""

from __future__ import annotations

import pytest

from terascope.analysis.costs import Costs
from terascope.diagnostic import Source
from terascope.explain.gsql import NoWords, query_of
from terascope.physical.split.host import COMPILED_HOST, PLAIN_DECODER, Host
from terascope.physical.split.split_plan import split_plan
from terascope.reference.interpreter import evaluate
from terascope.syntax.ast import QueryStatement, Script
from terascope.syntax.parser import parse
from terascope.syntax.printer import print_script
from tests.agreement import assert_same_answers, delivered
from tests.golden.cases import Case, all_cases
from tests.reference.connector_sources import ConnectorSources

CASES = [case for case in all_cases() if case.has("rows") and case.bindings.interfaces]
HOSTS = (
    (COMPILED_HOST, Costs()),
    (PLAIN_DECODER, Costs()),
    (Host("everything"), Costs(budget_ns=1e9)),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_splits_give_the_rows_and_can_be_read(case: Case) -> None:
    plan, sources = case.compiled.optimized, ConnectorSources(case.bindings.interfaces)
    expected = delivered(plan, evaluate(plan, sources))
    for host, costs in HOSTS:
        split = split_plan(plan, host, costs).plan
        assert_same_answers(expected, delivered(split, evaluate(split, sources)))
    for stream in split_plan(plan).plan:
        try:
            statement = QueryStatement(query_of(stream.rel), stream.name)
        except NoWords:
            continue
        assert parse(Source(print_script(Script((statement,))))) == Script((statement,))
