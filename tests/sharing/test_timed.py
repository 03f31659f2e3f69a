"""Trees that save time: where look-ups of tuples are slow and intermediate aggregates are small."""

from __future__ import annotations

from itertools import combinations
from time import perf_counter

from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.sharing.model import Query
from terascope.sharing.timed import GROUP_NS, SPARSE_NS, VECTOR_NS, WORD_NS, Growing, plan_for_time
from tests.sharing.known_statistics import KnownStatistics

NAMES = "abcdef"


def statistics(tuples: float, sizes: dict[str, float]) -> KnownStatistics:
    return KnownStatistics(tuples, {frozenset({name}): size for name, size in sizes.items()})


def pairs(names: str) -> list[Query]:
    return [Query(frozenset(pair), 2) for pair in combinations(names, 2)]


@settings(deadline=None, max_examples=50)
@given(
    st.floats(1e3, 1e7),
    st.lists(st.floats(2, 1e5), min_size=4, max_size=6),
    st.lists(st.sets(st.sampled_from(NAMES[:4]), min_size=1, max_size=3), min_size=2, max_size=8),
)
def test_a_tree_never_takes_longer_than_the_flat_plan(
    tuples: float, sizes: list[float], keys: list[set[str]]
) -> None:
    known = statistics(tuples, dict(zip(NAMES, sizes, strict=False)))
    queries = [Query(frozenset(one), 1) for one in keys]
    made = plan_for_time(queries, known)
    assert made.nanoseconds <= made.flat_nanoseconds * (1 + 1e-9)
    assert {n.attributes for n in made.tree.nodes if n.is_query} == {q.attributes for q in queries}


def test_many_packets_of_few_flows_are_worth_a_tree() -> None:
    known = statistics(1e7, {"a": 300, "b": 300, "c": 300})
    flows = KnownStatistics(1e7, {**known.known_groups, frozenset("abc"): 50_000})
    made = plan_for_time(pairs("abc"), flows)
    assert [sorted(n.attributes) for n in made.tree.nodes if not n.is_query] == [["a", "b", "c"]]
    assert made.nanoseconds < 0.7 * made.flat_nanoseconds


def test_places_that_are_computed_are_worth_none() -> None:
    """Three look-ups of an array take less than one of a table and what comes down from it."""
    known = statistics(1e6, {"a": 200, "b": 200, "c": 200})
    made = plan_for_time(pairs("abc"), known)
    assert all(node.is_query for node in made.tree.nodes)


def test_a_query_is_made_of_one_that_has_its_keys() -> None:
    groups = {frozenset("a"): 5e4, frozenset("b"): 5e4, frozenset("ab"): 1e5}
    made = plan_for_time(
        [Query(frozenset("ab")), Query(frozenset("a"))], KnownStatistics(1e7, groups)
    )
    top, below = made.tree.nodes
    assert (top.attributes, below.attributes) == (frozenset("ab"), frozenset("a"))
    assert below.parent == 0


def test_it_is_planned_in_no_time() -> None:
    names = "abcdefghijklm"
    known = statistics(1e6, {name: 10.0 ** (1 + i % 5) for i, name in enumerate(names)})
    queries = [Query(frozenset(pair), 2) for pair in combinations(names, 2)]
    begun = perf_counter()
    plan_for_time(queries, known)
    assert perf_counter() - begun < 10


def test_costs_are_those_of_the_tree() -> None:
    """By hand: one inner node over two queries."""
    groups = {frozenset("a"): 1e5, frozenset("b"): 1e5, frozenset("c"): 1e5, frozenset("abc"): 1e4}
    groups |= {frozenset("ab"): 9e3, frozenset("bc"): 9e3}
    known = KnownStatistics(1e6, groups)
    slots = {frozenset("ab"): 2, frozenset("bc"): 2}
    growing = Growing(known, slots)
    for node in slots:
        growing.hang(node, None)
    assert growing.nanoseconds() == 2e6 * SPARSE_NS
    growing.add(frozenset("abc"), None)
    inner = 1e6 * (SPARSE_NS + WORD_NS)
    down = 1e4 * (2 * (SPARSE_NS + GROUP_NS) + VECTOR_NS * (3 + 2))
    assert growing.nanoseconds() == inner + down
