"""Each rule by its fixture file. That answers stay the same is in tests/properties."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.diagnostic import Source
from terascope.optimize.driver import optimize, rule_names
from terascope.pipeline import compile_set
from terascope.plan.plan import Plan
from terascope.plan.show import show_plan
from tests.rule_fixtures import Rules, read_fixture


def plan_of(script: str) -> Plan:
    return compile_set(Source(script)).plan


def alone(rule: str, plan: Plan) -> Plan:
    return optimize(plan, disabled=frozenset(rule_names()) - {rule})


FIXTURES = Path(__file__).parent / "fixtures"
RULES = Rules(FIXTURES, rule_names(), plan_of, alone, show_plan)


@pytest.mark.parametrize("rule", RULES.names)
def test_rule(rule: str, request: pytest.FixtureRequest) -> None:
    RULES.check(rule, request.config)


def test_every_rule_has_a_case_that_changes_and_one_that_does_not() -> None:
    assert RULES.incomplete() == {}
    assert RULES.strays() == set()


def test_a_fixture_without_a_change_is_incomplete(tmp_path: Path) -> None:
    given = "# title: nothing\nQUERY q: SELECT ts FROM S;\n---- unchanged\nq:\n  Read p\n"
    (tmp_path / "merge_filters.gsql").write_text(given)
    rules = Rules(tmp_path, ("merge_filters", "push_filters"), plan_of, alone, show_plan)
    assert set(rules.incomplete()) == {"merge_filters", "push_filters"}
    assert read_fixture(given).text == given


def test_rules_are_told_to_an_observer() -> None:
    seen: list[str] = []
    fixture = RULES.fixture("fold_constants")
    plan = plan_of(fixture.preamble + fixture.cases[0].script)
    optimize(plan, observer=lambda name, before, after: seen.append(name))
    assert "fold_constants" in seen
    assert "prune_columns" in seen
