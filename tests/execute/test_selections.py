"""Slots with a condition of their own: queries with the same keys and other predicates share one
table, and a tuple is looked up in it once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from terascope.functions.aggregates.folding import MAX_FLOAT
from terascope.functions.slots import COUNT, SUM_INT
from terascope.physical.low_plan import LowAggregate, LowPlan, LowQuery, Where
from tests.execute.tree_plans import (
    COLUMNS,
    PREDICATES,
    REST,
    expected,
    keys_of,
    meets,
    run,
    slot,
    written,
)

WHERES = (
    Where((0,)),
    Where((1,)),
    Where((1, 2)),
    Where((), (REST,)),
    Where((0,), (REST,)),
)


def some_tuples(seed: int, count: int, keys: int, nulls: bool) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)

    def numbers(high: int) -> list[int | None]:
        values: list[int | None] = rng.integers(0, high, count).tolist()
        if nulls:
            for place in np.flatnonzero(rng.random(count) < 0.1).tolist():
                values[place] = None
        return values

    return {
        "tb": np.sort(rng.integers(0, 3, count)).tolist(),
        **{name: numbers(keys) for name in "abcd"},
        "n": numbers(9),
        "x": [None if n is None else float(n) for n in numbers(50)],
    }


def shared(wheres: tuple[Where, ...]) -> LowAggregate:
    """One table for queries that differ in their predicates."""
    slots = [slot(COUNT, None, where) for where in wheres]
    slots += [slot(SUM_INT, "n", wheres[0]), slot(MAX_FLOAT, "x", wheres[1]), slot(COUNT)]
    return LowAggregate("q", (), (), (), keys_of("ab"), 0, tuple(slots), anyof=wheres)


def plan_of(*queries: LowQuery, compiled: bool = True) -> LowPlan:
    return LowPlan(COLUMNS, PREDICATES, queries, compiled=compiled)


@pytest.mark.parametrize(("nulls", "compiled"), [(True, True), (False, True), (True, False)])
def test_every_slot_takes_its_own_tuples(nulls: bool, compiled: bool, tmp_path: Path) -> None:
    tuples = some_tuples(3, 3000, 12, nulls)
    plan = plan_of(shared(WHERES[:3]), compiled=compiled)
    found, _ = run(plan, written(tuples, tmp_path, 700), 1)
    assert found == expected(plan, tuples)


def test_a_condition_beyond_the_bits(tmp_path: Path) -> None:
    """Alternatives and slots with a rest, in a query that has bits and a rest itself."""
    tuples = some_tuples(4, 2000, 4, nulls=True)
    slots = tuple(slot(COUNT, None, where) for where in WHERES)
    own = LowAggregate("own", (), (2,), (REST,), keys_of("d"), 0, slots, anyof=WHERES[:2])
    free = LowAggregate("free", (), (), (), keys_of("d"), 0, slots, anyof=WHERES[3:])
    plan = plan_of(own, free, compiled=False)
    found, _ = run(plan, written(tuples, tmp_path))
    assert found == expected(plan, tuples)


def test_many_tuples_at_once(tmp_path: Path) -> None:
    """More groups than the cache holds are made part by part, with masks."""
    tuples = some_tuples(5, 120_000, 300, nulls=False)
    plan = plan_of(shared(WHERES[:3]))
    found, counted = run(plan, written(tuples, tmp_path))
    assert found == expected(plan, tuples)
    assert counted.probes.tolist() == counted.passed.tolist()


def test_a_tuple_is_looked_up_once_for_all_queries_of_a_table(tmp_path: Path) -> None:
    tuples = some_tuples(6, 4000, 10, nulls=True)
    rows = [dict(zip(tuples, row, strict=True)) for row in zip(*tuples.values(), strict=True)]
    union = sum(any(meets(where, PREDICATES, row) for where in WHERES[:3]) for row in rows)
    alone = [
        LowAggregate(f"q{k}", (), where.signature, (), keys_of("ab"), 0, (slot(COUNT),))
        for k, where in enumerate(WHERES[:3])
    ]
    path = written(tuples, tmp_path)
    _, apart = run(plan_of(*alone), path)
    _, together = run(plan_of(shared(WHERES[:3])), path)
    assert together.probes.tolist() == [union]
    assert apart.probes.tolist() == apart.passed.tolist()
    assert apart.probes.sum() > union
    assert together.evaluated.tolist() == [len(rows)] * len(PREDICATES), "each bit is made once"
