"""Trees of a running set: in low-level plans, as files, and in the rows that tasks give away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from terascope.low.groups import Block
from terascope.low.plan import LowAggregate, LowPlan, Slot
from terascope.low.slots import Shape
from terascope.low.tree import tree_of
from terascope.physical.trees import TreeSettings
from terascope.plan.build import call
from terascope.plan.expr import Col, Lit
from terascope.sharing.model import Node, Tree
from terascope.stream.tree_plans import (
    TREES,
    PlannedTree,
    TreesInForce,
    families_of,
    grafted,
    in_force,
    narrowed,
    put_in_force,
    widened_places,
)
from terascope.types import Type

EPOCH = call("/", Col("ts", Type.LLONG), Lit(60, Type.LLONG))
SETTINGS = TreeSettings("time")
COUNT = Slot("n", "count", None, Type.LLONG)
SUM = Slot("x", "sum_int", Col("v", Type.LLONG), Type.LLONG)


def query(keys: str, *slots: Slot, epoch: Col | None = None) -> LowAggregate:
    named = tuple((letter, Col(letter, Type.LLONG)) for letter in keys)
    return LowAggregate(f"q_{keys}", ("left",), (), (), (("tb", epoch or EPOCH), *named), 0, slots)


FLAT = LowPlan((), (), (query("ab", COUNT), query("a", COUNT, SUM), query("bc", COUNT)))
TREE = PlannedTree(
    Tree(
        (
            Node(frozenset("ab"), None, True, 50.0),
            Node(frozenset("a"), 0, True, 9.0),
            Node(frozenset("bcd"), None, False, 7.0),
            Node(frozenset("bc"), 2, True, 5.0),
        )
    ),
    (True, True, False, True),
    0.25,
    17.5,
)
"""A query below another one that has less slots, and a bounded table with a key of nobody's."""


def key_of(plan: LowPlan) -> str:
    (family,) = families_of("left", plan)
    return family.key


def test_a_file_says_what_is_in_force(tmp_path: Path) -> None:
    assert in_force(tmp_path) is None
    trees = TreesInForce(since=3.0).changed({"f": TREE}, 9.0).changed({"g": TREE}, 21.0)
    put_in_force(tmp_path, trees)
    assert in_force(tmp_path) == trees
    assert (trees.number, trees.since, set(trees.trees)) == (2, 21.0, {"f", "g"})
    (tmp_path / TREES).write_text('{"number": 2, "sin', encoding="utf-8")
    assert in_force(tmp_path) is None, "a run begins without trees then"


def test_a_family_is_known_by_its_tuples_epochs_and_keys() -> None:
    key = key_of(FLAT)
    more = replace(FLAT, queries=(query("ab", COUNT, SUM), *FLAT.queries[1:]))
    named = replace(FLAT, queries=tuple(replace(q, name=f"x{q.name}") for q in FLAT.queries))
    assert key_of(more) == key_of(named) == key
    others = [
        replace(FLAT, queries=(query("abc", COUNT), *FLAT.queries[1:])),
        replace(FLAT, queries=tuple(replace(q, interfaces=("right",)) for q in FLAT.queries)),
        replace(
            FLAT,
            predicates=(call(">", Col("a", Type.LLONG), Lit(1, Type.LLONG)),),
            queries=tuple(replace(q, signature=(0,)) for q in FLAT.queries),
        ),
    ]
    assert len({key, *map(key_of, others)}) == 4
    assert families_of("other", FLAT)[0].key != key


def test_a_query_that_others_are_made_of_gives_away_its_own_slots() -> None:
    small = PlannedTree(Tree(TREE.tree.nodes[:2]), (True, True), 0.1, 0.0)
    flat = replace(FLAT, queries=(*FLAT.queries[:2], query("b", COUNT)))
    nodes = (*small.tree.nodes, Node(frozenset("b"), 0, True, 4.0))
    planned = replace(small, tree=Tree(nodes), whole=(True,) * 3)
    made = grafted("left", flat, {key_of(flat): planned}, SETTINGS)
    first = made.low.queries[0]
    assert isinstance(first, LowAggregate)
    assert [slot.kind for slot in first.slots] == ["count", "sum_int"]
    assert widened_places(flat, made.low) == {0: Shape(2, ("count",))}
    assert tree_of(made.low).children(0) == [1, 2]
    rows = np.array([[0b111, 5, 20, -7], [0b011, 6, 21, 0]], np.int64)
    left = narrowed(Block(3, rows), Shape(2, ("count",)))
    assert left.epoch == 3
    assert left.rows.tolist() == [[0b011, 5, 20], [0b011, 6, 21]]
    assert left.rows.flags.c_contiguous
    assert rows[0, 0] == 0b111, "the rows of the table are as they were"


def test_inner_nodes_are_named_and_bounded_as_planned() -> None:
    flat = replace(FLAT, queries=(*FLAT.queries[:2], query("bc", COUNT), query("cd", COUNT)))
    nodes = (*TREE.tree.nodes, Node(frozenset("cd"), 2, True, 4.0))
    planned = replace(TREE, tree=Tree(nodes), whole=(*TREE.whole, True))
    key = key_of(flat)
    made = grafted("left", flat, {key: planned, "another": TREE}, SETTINGS)
    (inner,) = made.low.inner
    assert made.nodes[key] == ("q_ab", "q_a", "q_bc", "q_cd", inner.name)
    assert (inner.table.kind, inner.table.groups) == ("lru", 7)
    assert [made.low.queries[i].name for i in range(4)] == ["q_ab", "q_a", "q_bc", "q_cd"]
    tree_of(made.low)


@pytest.mark.parametrize("trees", [{}, {"another": TREE}])
def test_without_a_tree_the_plan_stays(trees: dict[str, PlannedTree]) -> None:
    made = grafted("left", FLAT, trees, SETTINGS)
    assert made.low == FLAT
    assert widened_places(FLAT, made.low) == {}
