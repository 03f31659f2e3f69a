"""Rows let go little by little are the rows of the whole, each once, with nothing kept that is not
needed: whatever the set, the disorder, and the micro-batches.

A failing seed is in the test's name and can be run alone. TERASCOPE_SEEDS=1000 runs more of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from terascope.analysis.moving import ALL
from terascope.analysis.order import Trees
from terascope.analysis.release import ReleasePart, release_of
from terascope.functions.base import Value
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Col
from terascope.plan.rel import Filter, PlanMistake, Read, walk
from terascope.streaming.release import in_range, released
from terascope.types import Type
from tests.analysis.arrivals import Arrivals, plan_of, run_stream, the_end
from tests.analysis.stream_sets import (
    EPOCHS,
    PROTOCOL,
    QUERIES,
    random_arrivals,
    random_cuts,
    special_arrivals,
)
from tests.oracle.compare import assert_same_rows

SEEDS = range(min(1000, int(os.environ.get("TERASCOPE_SEEDS", "8"))))
V = Col("v", Type.INT)


@pytest.mark.parametrize(
    ("low", "high", "inside"),
    [
        (None, None, []),
        (None, 3, [1, 2]),
        (2, 3, [2]),
        (3, 3, []),
        (2, ALL, [2, 3, 4, None]),
        (None, ALL, [1, 2, 3, 4, None]),
        (ALL, ALL, []),
        (2, 3.5, [2, 3]),
    ],
)
def test_a_range_has_its_beginning_and_not_its_end(
    low: Value, high: Value, inside: list[Value]
) -> None:
    def chosen(part: ReleasePart, low: Value, high: Value, sign: int) -> list[Value]:
        test = compile_expr(in_range(part, low, high), ("v",), {})
        values = [None if v is None else sign * v for v in (1, 2, 3, 4, None)]
        return [v for v in values if test((v,)) is True]

    def turned(value: Value) -> Value:
        return value if value is None or value is ALL else -value

    assert chosen(ReleasePart(V), low, high, 1) == inside
    down = chosen(ReleasePart(V, descending=True), turned(low), turned(high), -1)
    assert down == [turned(v) for v in inside]


def test_the_filter_stands_right_above_the_operator_in_its_own_stream(tmp_path: Path) -> None:
    text = PROTOCOL.format(order="increasing") + EPOCHS
    plan = plan_of(f"{text} QUERY q: SELECT tb, n FROM xs WHERE n > 1;", tmp_path)
    trees = Trees.of_plan(plan)
    release = release_of("q", trees)
    made = released(trees.streams, release, [(3, 5)])
    assert {name for name in made if made[name] != trees.streams[name]} == {"xs"}
    (added,) = [r for r in walk(made["xs"]) if isinstance(r, Filter)]
    assert added.source == release.node
    assert made["xs"].fields == trees.streams["xs"].fields
    with pytest.raises(PlanMistake):
        released({"xs": Read("other", ())}, release, [(3, 5)])


@pytest.mark.parametrize("split", [True, False], ids=["low-level", "whole"])
@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_a_stream_lets_go_every_row_of_the_whole_once(
    seed: int, split: bool, tmp_path: Path
) -> None:
    plan, tables = random_arrivals(seed, tmp_path)
    arrivals = Arrivals.of(plan, tables, split, materialised=seed % 2 == 0)
    cuts = random_cuts(seed, tables)
    for stream in arrivals.plan.visible:
        whole = arrivals.rows(stream.name, the_end(tables), {}).visible()
        assert_same_rows(whole.tuples, run_stream(arrivals, stream.name, cuts), whole.fields)


@pytest.mark.parametrize("seed", range(3), ids=lambda s: f"seed-{s}")
@pytest.mark.parametrize("name", QUERIES)
def test_so_does_every_kind_of_operator(name: str, seed: int, tmp_path: Path) -> None:
    plan, tables = special_arrivals(name, seed, tmp_path)
    arrivals = Arrivals.of(plan, tables, split=seed != 1, materialised=seed != 2)
    whole = arrivals.rows("q", the_end(tables), {}).visible()
    assert whole.tuples
    given = run_stream(arrivals, "q", random_cuts(seed, tables))
    assert_same_rows(whole.tuples, given, whole.fields)
