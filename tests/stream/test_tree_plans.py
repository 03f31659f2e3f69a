"""What a running set shares: in low-level plans, as files, and in the rows tasks give away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from terascope.execute.grouping.tree import tree_of
from terascope.functions import slots
from terascope.kernels.merge.groups import Block
from terascope.kernels.tables.slots import Shape
from terascope.physical.low_plan import LowAggregate, LowPlan, Slot, Where
from terascope.plan.build import call
from terascope.plan.expr import Col, Lit
from terascope.sharing.model import Node, Tree
from terascope.streaming.replan.tree_plans import (
    TREES,
    PlannedSharing,
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
LEAVES = "bounded"
POSITIVE = call(">", Col("a", Type.LLONG), Lit(1, Type.LLONG))
COUNT = Slot("n", slots.COUNT, None, Type.LLONG)
SUM = Slot("x", slots.SUM_INT, Col("v", Type.LLONG), Type.LLONG)


def query(keys: str, *slots: Slot, epoch: Col | None = None) -> LowAggregate:
    named = tuple((letter, Col(letter, Type.LLONG)) for letter in keys)
    return LowAggregate(f"q_{keys}", ("left",), (), (), (("tb", epoch or EPOCH), *named), 0, slots)


FLAT = LowPlan((), (), (query("ab", COUNT), query("a", COUNT, SUM), query("bc", COUNT)))
NODES = (
    Node(frozenset("ab"), None, True, 50.0),
    Node(frozenset("a"), 0, True, 9.0),
    Node(frozenset("bcd"), None, False, 7.0),
    Node(frozenset("bc"), 2, True, 5.0),
)
"""A query below another one that has less slots, and a bounded table with a key of nobody's."""


def planned(flat: LowPlan, nodes: tuple[Node, ...], whole: tuple[bool, ...]) -> PlannedSharing:
    """One tree of all aggregations."""
    (family,) = families_of("left", flat)
    tree = PlannedTree(tuple(unit.id for unit in family.units()), Tree(nodes), whole)
    return PlannedSharing((), (tree,), 0.25, 17.5)


TREE = planned(FLAT, NODES, (True, True, False, True))


def key_of(plan: LowPlan) -> str:
    (family,) = families_of("left", plan)
    return family.key


def test_a_file_says_what_is_in_force(tmp_path: Path) -> None:
    assert in_force(tmp_path) is None
    trees = TreesInForce(since=3.0).changed({"f": TREE}, 9.0).changed({"g": TREE}, 21.0)
    put_in_force(tmp_path, trees)
    assert in_force(tmp_path) == trees
    assert (trees.number, trees.since, set(trees.shared)) == (2, 21.0, {"f", "g"})
    (tmp_path / TREES).write_text('{"number": 2, "sin', encoding="utf-8")
    assert in_force(tmp_path) is None, "a run begins without trees then"
    (tmp_path / TREES).write_text('{"number": 2, "since": 1.0, "trees": {}}', encoding="utf-8")
    assert in_force(tmp_path) is None, "as another version has written it"


def test_a_family_is_known_by_its_source_and_epochs_a_member_by_tuples_and_keys() -> None:
    (family,) = families_of("left", FLAT)
    more = replace(FLAT, queries=(query("ab", COUNT, SUM), *FLAT.queries[1:]))
    named = replace(FLAT, queries=tuple(replace(q, name=f"x{q.name}") for q in FLAT.queries))
    for same in (more, named):
        (other,) = families_of("left", same)
        assert (other.key, other.ids) == (family.key, family.ids)
    (other,) = families_of("left", replace(FLAT, queries=(query("abc", COUNT), *FLAT.queries[1:])))
    assert other.key == family.key
    assert other.ids[0] not in family.ids
    assert other.ids[1:] == family.ids[1:]
    (other,) = families_of(
        "left",
        replace(
            FLAT,
            predicates=(POSITIVE,),
            queries=tuple(replace(q, signature=(0,)) for q in FLAT.queries),
        ),
    )
    assert other.key == family.key
    assert not {*other.ids} & {*family.ids}
    right = replace(FLAT, queries=tuple(replace(q, interfaces=("right",)) for q in FLAT.queries))
    assert len({family.key, key_of(right), families_of("other", FLAT)[0].key}) == 3


def test_a_set_that_has_changed_keeps_what_it_still_has() -> None:
    sharing = planned(FLAT, NODES, (True, True, False, True))
    (family,) = families_of("left", replace(FLAT, queries=(*FLAT.queries, query("c", COUNT))))
    assert sharing.of(family) == sharing, "one more is made of tuples"
    (family,) = families_of("left", replace(FLAT, queries=(*FLAT.queries[1:], query("c", COUNT))))
    assert sharing.of(family).is_nothing, "one of the tree is gone"


# ---- one table -----------------------------------------------------------------------------------


def conditional(name: str, keys: str, bits: tuple[int, ...], *slots: Slot) -> LowAggregate:
    return replace(query(keys, *slots), name=name, signature=bits)


RIVALS = LowPlan(
    (),
    (POSITIVE, call("<", Col("b", Type.LLONG), Lit(9, Type.LLONG))),
    (
        conditional("one", "ab", (0,), COUNT, SUM),
        conditional("two", "ba", (0, 1), SUM),
        conditional("all", "ab", (), COUNT),
        conditional("another", "a", (), COUNT),
    ),
)


def test_aggregations_with_the_same_keys_have_one_table() -> None:
    (family,) = families_of("left", RIVALS)
    sharing = PlannedSharing((family.ids[:3],))
    made = grafted("left", RIVALS, {family.key: sharing}, LEAVES)
    (table,) = made.low.inner
    assert made.nodes[family.key] == ("one", "two", "all", "another", table.name)
    assert (table.signature, table.rest, table.anyof) == ((), (), ())
    assert {slot.where for slot in table.slots} == {None, Where((0,)), Where((0, 1))}
    tree = tree_of(made.low)
    assert [tree.is_tableless(place) for place in range(5)] == [True, True, True, False, False]
    assert tree.roots == [3, 4], "one look-up a tuple for three, and the other"
    assert widened_places(RIVALS, made.low) == {}


def test_a_tree_may_be_made_of_common_tables() -> None:
    (family,) = families_of("left", RIVALS)
    first, last = family.units([family.ids[:3]])
    nodes = (Node(frozenset("ab"), None, True, 9.0), Node(frozenset("a"), 0, True, 9.0))
    tree = PlannedTree((first.id, last.id), Tree(nodes), (True, True))
    made = grafted("left", RIVALS, {family.key: PlannedSharing((family.ids[:3],), (tree,))}, LEAVES)
    (table,) = made.low.inner
    assert [q.parent for q in made.low.queries if isinstance(q, LowAggregate)] == [table.name] * 4
    assert tree_of(made.low).roots == [4]


def test_a_table_is_none_when_a_member_is_gone() -> None:
    (family,) = families_of("left", RIVALS)
    sharing = PlannedSharing((family.ids[:3],))
    left = replace(RIVALS, queries=RIVALS.queries[1:])
    (smaller,) = families_of("left", left)
    assert smaller.key == family.key
    assert grafted("left", left, {family.key: sharing}, LEAVES).low == left


# ---- trees ---------------------------------------------------------------------------------------


def test_a_query_that_others_are_made_of_gives_away_its_own_slots() -> None:
    flat = replace(FLAT, queries=(*FLAT.queries[:2], query("b", COUNT)))
    nodes = (*NODES[:2], Node(frozenset("b"), 0, True, 4.0))
    made = grafted("left", flat, {key_of(flat): planned(flat, nodes, (True,) * 3)}, LEAVES)
    first = made.low.queries[0]
    assert isinstance(first, LowAggregate)
    assert [slot.kind for slot in first.slots] == [slots.COUNT, slots.SUM_INT]
    assert widened_places(flat, made.low) == {0: Shape(2, (slots.COUNT,))}
    assert tree_of(made.low).children(0) == [1, 2]
    rows = np.array([[0b111, 5, 20, -7], [0b011, 6, 21, 0]], np.int64)
    left = narrowed(Block.of(3, rows), Shape(2, (slots.COUNT,)))
    assert left.epochs.tolist() == [3]
    assert left.rows.tolist() == [[0b011, 5, 20], [0b011, 6, 21]]
    assert left.rows.flags.c_contiguous
    assert rows[0, 0] == 0b111, "the rows of the table are as they were"


def test_inner_nodes_are_named_and_bounded_as_planned() -> None:
    flat = replace(FLAT, queries=(*FLAT.queries[:2], query("bc", COUNT), query("cd", COUNT)))
    nodes = (*NODES, Node(frozenset("cd"), 2, True, 4.0))
    key, sharing = key_of(flat), planned(flat, nodes, (True, True, False, True, True))
    made = grafted("left", flat, {key: sharing, "another": TREE}, LEAVES)
    (inner,) = made.low.inner
    assert made.nodes[key] == ("q_ab", "q_a", "q_bc", "q_cd", inner.name)
    assert (inner.table.kind, inner.table.groups) == ("lru", 7)
    assert [made.low.queries[i].name for i in range(4)] == ["q_ab", "q_a", "q_bc", "q_cd"]
    tree_of(made.low)


@pytest.mark.parametrize("shared", [{}, {"another": TREE}])
def test_without_a_tree_the_plan_stays(shared: dict[str, PlannedSharing]) -> None:
    made = grafted("left", FLAT, shared, LEAVES)
    assert made.low == FLAT
    assert widened_places(FLAT, made.low) == {}
