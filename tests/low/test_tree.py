"""Aggregate trees give the groups of the flat plan, whatever the tables of their nodes, and cost
what paper 4, III-D says they cost.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.low import task
from terascope.low.plan import LowAggregate, LowPlan, Slot, TableChoice, TableKind, Where
from terascope.low.tree import tree_of
from terascope.types import INT_MAX
from tests.low.some_groups import same
from tests.low.tree_plans import (
    COLUMNS,
    KEYS,
    PREDICATES,
    REST,
    Columns,
    Found,
    expected,
    keys_of,
    run,
    slot,
    written,
)

WHERE, OTHER = Where((0,)), Where((1,), (REST,))
SLOT_SETS: tuple[tuple[Slot, ...], ...] = (
    (slot("count"), slot("sum_int", "n"), slot("count_of", "n")),
    (slot("count"), slot("sum_float", "x"), slot("min_float", "x"), slot("max_float", "x")),
    (slot("min_int", "n"), slot("max_int", "n"), slot("or_int", "n"), slot("count")),
    (slot("and_int", "n"), slot("xor_int", "n"), slot("sum_int", "n", WHERE)),
)
"""All kinds in few shapes: each has to be compiled."""
KINDS: tuple[TableKind, ...] = ("open", "lru", "direct_mapped", "second_chance")


def node(name: str, keys: str, slots: tuple[Slot, ...], **more: Any) -> LowAggregate:
    return LowAggregate(name, ("flows",), (), (), keys_of(keys), 0, slots, **more)


def plan_of(nodes: list[LowAggregate], inner: list[LowAggregate], **more: Any) -> LowPlan:
    return LowPlan(COLUMNS, PREDICATES, tuple(nodes), inner=tuple(inner), **more)


def flat(plan: LowPlan) -> LowPlan:
    queries = tuple(
        replace(query, parent=None, table=TableChoice())
        for query in plan.queries
        if isinstance(query, LowAggregate)
    )
    return replace(plan, queries=queries, inner=())


def assert_same(found: Found, wanted: Found) -> None:
    assert found.keys() == wanted.keys()
    for name, groups in wanted.items():
        assert found[name].keys() == groups.keys(), name
        wrong = [k for k, values in groups.items() if not same(found[name][k], values)]
        assert not wrong, (name, wrong[0], found[name][wrong[0]], groups[wrong[0]])


# ---- random trees --------------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn, kinds: tuple[TableKind, ...]) -> LowPlan:
    """Up to four levels; every child has some of its parent's keys and slots."""
    slots = draw(st.sampled_from(SLOT_SETS))
    nodes: list[LowAggregate] = []
    inner: list[LowAggregate] = []

    def grow(parent: LowAggregate | None, keys: str, depth: int) -> None:
        table = TableChoice(
            draw(st.sampled_from(kinds)),
            draw(st.sampled_from(["eager", "lazy"])),
            groups=draw(st.integers(1, 8)),
        )
        name = f"n{len(nodes) + len(inner)}"
        is_inner = depth < 3 and draw(st.booleans())
        made = node(name, keys, slots, table=table, parent=parent.name if parent else None)
        (inner if is_inner else nodes).append(made)
        if depth == 3:
            return
        for _ in range(draw(st.integers(1 if is_inner else 0, 2))):
            some = draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
            grow(made, "".join(some), depth + 1)

    for _ in range(draw(st.integers(1, 2))):
        grow(None, "".join(draw(st.permutations(KEYS))), 0)
    if not nodes:
        nodes.append(node("only", "a", slots))
    return plan_of(nodes, inner)


@st.composite
def tuples(draw: st.DrawFn) -> Columns:
    count = draw(st.integers(0, 60))
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    gaps = draw(st.sampled_from([0.0, 0.3]))

    def some(values: list[Any], holes: float) -> list[Any]:
        picked = [values[i] for i in rng.integers(0, len(values), count).tolist()]
        return [None if rng.random() < holes else value for value in picked]

    epochs = rng.integers(0, 4, count).tolist()
    if draw(st.booleans()):
        epochs.sort()
    sizes = draw(st.sampled_from([[0, 1, 2, 3, 7], [INT_MAX, INT_MAX - 1, -INT_MAX, 5, 1]]))
    return {
        "tb": epochs,
        **{key: some(list(range(2 + 2 * i)), gaps / 3) for i, key in enumerate(KEYS)},
        "n": some(sizes, gaps),
        "x": some([0.0, 1.0, -3.0, 1024.0], gaps),
    }


@given(trees(("open",)), tuples(), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_numpy_gives_the_groups_of_the_flat_plan(
    plan: LowPlan, columns: Columns, row_group: int
) -> None:
    check(replace(plan, compiled=False), columns, row_group)


@given(trees(KINDS), tuples(), st.integers(1, 60))
@settings(max_examples=25, deadline=None)
def test_machine_code_gives_the_same(plan: LowPlan, columns: Columns, row_group: int) -> None:
    check(plan, columns, row_group)


def check(plan: LowPlan, columns: Columns, row_group: int) -> None:
    """Every row group is a batch of its own."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "BATCH_ROWS", 1)
        path = written(columns, Path(folder), row_group)
        found, counted = run(plan, path, 1)
        assert_same(found, expected(plan, columns))
        tree = tree_of(plan)
        for place in range(len(tree.nodes)):
            above = tree.parents[place]
            given = len(columns["tb"]) if above is None else left(counted, above)
            assert counted.probes[place] == given, "all that leaves the parent, and nothing else"


def left(counted: task.Counters, place: int) -> int:
    return int(counted.evicted[place] + counted.flushed[place])
