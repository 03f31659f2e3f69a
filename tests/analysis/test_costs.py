"""What expressions cost: given, measured, estimated; and the file that keeps the measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from terascope.analysis.costs import (
    THROUGH_PAYLOAD_NS,
    Costs,
    costs_file,
    read_measured,
    write_measured,
)
from terascope.functions.registry import Functions
from terascope.plan.expr import Cast, Param
from terascope.types import Type
from tests.oracle.build import call, case, col

A, B = col("a"), col("b")
PAYLOAD, TEXT = col("data", Type.BINARY), col("s", Type.STRING)


def test_an_expression_costs_the_sum_of_its_calls() -> None:
    costs = Costs({"+": 3, "*": 4, "<": 1})
    assert costs.of(call("<", call("+", A, call("*", A, B)), 7)) == 8
    assert costs.of(A) == 0
    assert costs.of(case((call("<", A, 1), call("+", A, 1)), otherwise=0)) == 5
    assert costs.of(Cast(A, Type.FLOAT)) < costs.of(Cast(TEXT, Type.INT))


def test_what_is_the_same_for_every_tuple_is_free() -> None:
    assert Costs({"+": 50}).of(call("+", 1, call("+", Param("p", Type.INT), 2))) == 0


def test_given_wins_over_measured_over_estimated() -> None:
    expr = call("str_match_start", TEXT, "GET")
    assert Costs().of(expr) == expr.function.cost_ns
    assert Costs(measured={"str_match_start": 7}).of(expr) == 7
    assert Costs({"str_match_start": 3}, {"str_match_start": 7}).of(expr) == 3


def test_going_through_payloads_is_expensive_but_for_prefixes_and_parts() -> None:
    costs = Costs()
    assert costs.of(call("str_match_start", PAYLOAD, "GET")) < 100
    assert costs.of(call("str_exists_substr", PAYLOAD, "GET")) < costs.budget_ns
    assert costs.of(call("upper", PAYLOAD)) == THROUGH_PAYLOAD_NS > costs.budget_ns
    assert costs.of(call("upper", TEXT)) < 100
    assert costs.of(call("str_regex_match", TEXT, "a+")) > costs.budget_ns


def test_measures_on_payloads_are_their_own_and_the_user_speaks_of_both() -> None:
    measured = {"str_length": 1.0, "str_length on payload": 4.0}
    assert Costs(measured=measured).of(call("str_length", PAYLOAD)) == 4
    assert Costs({"str_length": 9}, measured).of(call("str_length", PAYLOAD)) == 9


def test_every_function_has_a_cost() -> None:
    assert all(f.cost_ns >= 0 for f in Functions.builtin().scalars.values())


def test_measures_are_kept_in_the_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert read_measured() == {}
    path = write_measured({"+": 1.234}, {"machine": "test"})
    assert path == costs_file() == tmp_path / "terascope" / "costs.json"
    assert json.loads(path.read_text()) == {"machine": "test", "costs": {"+": 1.23}}
    assert read_measured() == {"+": 1.23}


@pytest.mark.parametrize("text", ["", "[]", '{"costs": 3}', '{"costs": {"+": "much"}}', "\udcff"])
def test_a_damaged_file_counts_as_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert read_measured(path) == {}
