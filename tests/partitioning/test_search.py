"""The search of P2 4.2.2: the papers' examples, splitters, sources of their own, and the optimum of
an exhaustive search.
"""

from __future__ import annotations

import random
from itertools import combinations, permutations, product
from math import inf

import pytest

from terascope.connectors.base import Column
from terascope.diagnostic import QueryError
from terascope.partitioning.capability import capability_of
from terascope.partitioning.cost import PlanCost
from terascope.partitioning.reconcile import reconcile
from terascope.partitioning.search import Search, rounded
from terascope.partitioning.sets import PartitionSet, Placement, parse_set
from terascope.plan.expr import Col
from terascope.types import Type
from tests.partitioning.query_sets import (
    FLOW_COUNT,
    FLOW_PAIRS,
    SUBNETS_AND_DELAYS,
    best,
    central,
    search_of,
    sets,
)

PACKET = [
    Column("time", Type.UINT, "s"), Column("srcIP", Type.IP), Column("destIP", Type.IP),
    Column("srcPort", Type.UINT), Column("destPort", Type.UINT), Column("len", Type.UINT),
]  # fmt: skip


# ---- the papers' examples ------------------------------------------------------------------------


def test_flow_pairs_are_partitioned_by_source() -> None:
    found = best(search_of(FLOW_PAIRS))
    assert sets(found) == {"TCP": {"srcIP"}}
    assert found.kept == {"flows", "heavy_flows", "flow_pairs"}
    assert found.cost == PlanCost(1000.0, 1000.0 + 100.0 + 10.0)


def test_the_partial_set_is_the_runner_up() -> None:
    """P2 6.3, Figure 12: only flows is compatible with (srcIP, destIP)."""
    runner_up = search_of(FLOW_PAIRS).run().candidates[1]
    assert sets(runner_up) == {"TCP": {"srcIP", "destIP"}}
    assert runner_up.kept == {"flows"}
    assert runner_up.cost == PlanCost(1000.0, 1000.0 + 1000.0)


def test_flow_counts_are_partitioned_by_hosts() -> None:
    found = best(search_of(FLOW_COUNT))
    assert sets(found) == {"TCP": {"srcIP", "destIP"}}
    assert found.kept == {"tcp_flows", "flow_cnt"}


def test_a_subnet_and_a_host_suit_the_join_as_well() -> None:
    """P2 6.2 by the paper's own rule: a function of the join's attributes is compatible with it."""
    found = best(search_of(SUBNETS_AND_DELAYS))
    assert sets(found) == {"TCP": {"srcIP & 0xFFFFFFF0", "destIP"}}
    assert found.kept == {"subnets", "delays"}


def test_as_printed_the_join_is_central() -> None:
    """P2 6.2: the same set, compatible with the aggregation only, which has most of the load."""
    outcomes = {"subnets": (0.1, 10.0), "delays": (0.5, 10.0)}
    search = search_of(SUBNETS_AND_DELAYS, outcomes, change=lambda one: central(one, "join"))
    found = best(search)
    assert sets(found) == {"TCP": {"srcIP & 0xFFFFFFF0", "destIP"}}
    assert found.kept == {"subnets"}
    suboptimal = search.candidate({"TCP": parse_set("srcIP, destIP, srcPort, destPort", PACKET)})
    assert suboptimal.kept == set()
    assert suboptimal.cost > found.cost


def test_an_existing_partitioning_has_its_cost() -> None:
    """P2 3.2: hardware that can only split by destIP."""
    search = search_of(FLOW_PAIRS)
    found = search.candidate({"TCP": parse_set("destIP", PACKET)})
    assert found.kept == {"flows"}
    assert search.refusals(found.placement) == {
        "heavy_flows": "its keys do not determine destIP",
        "flow_pairs": "the equalities of the join do not determine destIP",
    }


# ---- choosing ------------------------------------------------------------------------------------


def grouped(name: str, keys: str, where: str = "TCP", value: str = "COUNT(*)") -> str:
    named = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys.split(", ")))
    shown = ", ".join(f"k{i}" for i in range(len(keys.split(", "))))
    return (
        f"QUERY {name}: SELECT tb, {shown}, {value} AS n FROM {where}"
        f" GROUP BY time/60 AS tb, {named};\n"
    )


def test_what_several_have_in_common_is_a_candidate() -> None:
    text = grouped("a", "srcIP & 0xFFFF00") + grouped("b", "srcIP & 0xFFF0")
    found = best(search_of(text))
    assert sets(found) == {"TCP": {"srcIP & 0xFF00"}}
    assert found.kept == {"a", "b"}


def test_the_finer_set_is_taken_at_the_same_cost() -> None:
    text = grouped("a", "srcIP, destIP") + grouped("b", "srcIP, destIP, srcPort")
    assert sets(best(search_of(text))) == {"TCP": {"srcIP", "destIP"}}


def test_the_expensive_query_decides() -> None:
    text = grouped("many", "srcIP") + grouped("few", "destIP")
    outcomes = {"many": (0.1, 10.0), "few": (0.9, 10.0)}
    assert sets(best(search_of(text, outcomes))) == {"TCP": {"srcIP"}}
    outcomes = {"many": (0.9, 10.0), "few": (0.1, 10.0)}
    assert sets(best(search_of(text, outcomes))) == {"TCP": {"destIP"}}


def test_weights_decide() -> None:
    text = grouped("a", "srcIP") + grouped("b", "destIP")
    assert sets(best(search_of(text, weights={"a": 10.0}))) == {"TCP": {"srcIP"}}
    assert sets(best(search_of(text, weights={"b": 10.0}))) == {"TCP": {"destIP"}}


def test_the_answer_does_not_depend_on_the_order_of_queries() -> None:
    queries = [grouped(f"q{i}", keys) for i, keys in enumerate(
        ["srcIP, destIP", "destPort", "srcIP & 0xFFFFFF00", "destIP, srcPort", "srcPort"]
    )]  # fmt: skip
    found = {best(search_of("".join(random.Random(s).sample(queries, 5)))).texts for s in range(8)}
    assert len(found) == 1


def test_selections_need_no_set() -> None:
    found = best(search_of("QUERY s: SELECT time, srcIP FROM TCP WHERE len > 100;"))
    assert sets(found) == {"TCP": set()}
    assert found.kept == {"s"}


def test_where_nothing_helps_the_reasons_are_known() -> None:
    search = search_of("QUERY n: SELECT time, COUNT(*) AS n FROM TCP GROUP BY time;")
    found = search.run()
    assert sets(found.candidates[0]) == {"TCP": set()}
    assert found.candidates[0].kept == set()
    assert found.reasons == {"n": "its keys are all temporal"}


# ---- splitters -----------------------------------------------------------------------------------


def test_a_splitter_with_some_attributes_only() -> None:
    splitter = capability_of("destIP, destPort", {"TCP": PACKET})
    found = best(search_of(FLOW_COUNT, splitter=splitter))
    assert sets(found) == {"TCP": {"destIP"}}


def test_listed_masks_of_a_key() -> None:
    splitter = capability_of("srcIP & 0xFF000000, destPort", {"TCP": PACKET})
    found = best(search_of(FLOW_PAIRS, splitter=splitter))
    assert sets(found) == {"TCP": {"srcIP & 0xFF000000"}}


def test_a_splitter_for_masks() -> None:
    text = grouped("a", "srcIP & 0xFFFFFF00") + grouped("b", "srcPort/10") + grouped("c", "len/64")
    splitter = capability_of("masks", {"TCP": PACKET})
    found = search_of(text, splitter=splitter).run().candidates
    assert {text for one in found for text in one.texts[0][1]} == {
        "srcIP & 0xFFFFFF00", "len & 0xFFFFFFC0",
    }  # fmt: skip


def test_a_splitter_that_can_do_nothing_here() -> None:
    splitter = capability_of("destPort", {"TCP": PACKET})
    found = best(search_of(FLOW_PAIRS, splitter=splitter))
    assert found.kept == set()
    with pytest.raises(QueryError, match="no column 'nothing'"):
        capability_of("nothing", {"TCP": PACKET})


# ---- several sources -----------------------------------------------------------------------------

TWO = """
PROTOCOL LEFTS (time UINT increasing clock(s), a UINT, b UINT, n UINT);
PROTOCOL RIGHTS (time UINT increasing clock(s), c UINT, d UINT, m UINT);
"""


def test_sources_of_their_own_get_sets_of_their_own() -> None:
    text = TWO + grouped("x", "a", "l.LEFTS") + grouped("y", "d", "r.RIGHTS")
    search = search_of(text)
    assert search.components == (("l",), ("r",))
    assert sets(best(search)) == {"l": {"a"}, "r": {"d"}}


def test_a_join_reconciles_left_and_right() -> None:
    text = TWO + grouped("x", "a, b", "l.LEFTS") + grouped("y", "d", "r.RIGHTS") + (
        "QUERY j: SELECT p.time, p.a, q.m FROM l.LEFTS p, r.RIGHTS q"
        " WHERE p.time = q.time AND p.a = q.c AND p.b = q.d;"
    )  # fmt: skip
    search = search_of(text)
    assert search.components == (("l", "r"),)
    found = best(search)
    assert sets(found) == {"l": {"b"}, "r": {"d"}}
    assert found.kept == {"x", "y", "j"}


def test_a_join_that_is_not_worth_it_stays_central() -> None:
    lefts = [grouped(f"x{i}", "b", "l.LEFTS", f"SUM(n + {i})") for i in range(4)]
    rights = [grouped(f"y{i}", "m", "r.RIGHTS", f"SUM(d + {i})") for i in range(4)]
    join = (
        "QUERY j: SELECT p.time, p.a, q.m FROM l.LEFTS p, r.RIGHTS q"
        " WHERE p.time = q.time AND p.a = q.c;"
    )
    text = "".join([TWO, *lefts, *rights, join])
    # The node of the join receives both streams: nothing is worse than that ...
    assert sets(best(search_of(text))) == {"l": {"a"}, "r": {"c"}}
    # ... but another join that does so whatever the sets are.
    text += "QUERY all: SELECT p.time, p.a, q.m FROM l.LEFTS p, r.RIGHTS q WHERE p.time = q.time;"
    found = best(search_of(text))
    assert sets(found) == {"l": {"b"}, "r": {"m"}}
    assert "j" not in found.kept


# ---- the optimum ---------------------------------------------------------------------------------

KEYS = [
    "srcIP", "destIP", "srcPort", "destPort", "srcIP & 0xFFFFFF00", "srcIP & 0xFFFF0000",
    "srcIP & 0xFFFFF0", "srcPort/10", "srcPort/15", "srcPort & 0xFF0", "destPort & 0x0FF",
]  # fmt: skip


def random_set(chance: random.Random) -> str:
    """Aggregations, aggregations over them, and self-joins of both."""
    text, leaves = "", []
    for number in range(chance.randint(1, 4)):
        keys = chance.sample(KEYS, chance.randint(1, 3))
        leaves.append((f"q{number}", len(keys)))
        text += grouped(f"q{number}", ", ".join(keys))
    for number in range(chance.randint(0, 3)):
        below, count = chance.choice(leaves)
        name, kept = f"r{number}", sorted(chance.sample(range(count), chance.randint(1, count)))
        if chance.random() < 0.5:
            named = ", ".join(f"k{i}" for i in kept)
            text += (
                f"QUERY {name}: SELECT tb, {named}, MAX(n) AS n FROM {below}"
                f" GROUP BY tb, {named};\n"
            )
        else:
            pairs = " AND ".join(f"x.k{i} = y.k{i}" for i in kept)
            text += (
                f"QUERY {name}: SELECT x.tb, x.k{kept[0]}, y.n FROM {below} x, {below} y"
                f" WHERE x.tb = y.tb + 1 AND {pairs};\n"
            )
    return text


def exhaustive(search: Search) -> PlanCost:
    """The least cost of all sets that are reconciled from those of some nodes."""
    own = [
        placement
        for operators in search._of.values()
        for one in operators
        if (placement := one.placement())
    ]
    least = PlanCost(inf, inf)
    for count in range(1, len(own) + 1):
        for chosen in combinations(own, count):
            made: Placement = chosen[0]
            for other in chosen[1:]:
                made = reconcile(made, other)
                if not made:
                    break
            if made:
                least = min(least, search.candidate(made).cost)
    return least


@pytest.mark.parametrize("seed", range(40))
def test_the_search_finds_the_optimum(seed: int) -> None:
    chance = random.Random(seed)
    text = random_set(chance)
    names = [line.split(":")[0].removeprefix("QUERY ") for line in text.splitlines()]
    outcomes = {name: (chance.uniform(0.01, 1.0), chance.choice([4.0, 20.0])) for name in names}
    search = search_of(text, outcomes)
    found = search.run()
    assert rounded(found.candidates[0].cost) == rounded(exhaustive(search)), text
    for one in found.candidates:
        refused = search.refusals(one.placement)
        assert one.kept == {node.name for node in search.nodes} - refused.keys(), text


# ---- the optimum over two sources ----------------------------------------------------------------

TIED = [("a", "c"), ("b", "d"), ("n", "m"), ("a", "d"), ("b", "c")]


def random_set_of_two(chance: random.Random) -> str:
    """Aggregations over two sources, and joins across them."""
    text = ""
    for name, columns, source in (("x", "abn", "l.LEFTS"), ("y", "cdm", "r.RIGHTS")):
        for number in range(chance.randint(1, 3)):
            keys = ", ".join(chance.sample(columns, chance.randint(1, 3)))
            text += grouped(f"{name}{number}", keys, source)
    for number in range(chance.randint(0, 2)):
        pairs = chance.sample(TIED, chance.randint(1, 2))
        equal = " AND ".join(f"p.{x} = q.{y}" for x, y in pairs)
        text += (
            f"QUERY j{number}: SELECT p.time, p.a, q.m FROM l.LEFTS p, r.RIGHTS q"
            f" WHERE p.time = q.time AND {equal};\n"
        )
    return text


def all_sets(columns: str) -> list[PartitionSet]:
    """Every set of some columns, in every order: the n-th of two sources are equal in a join."""
    return [
        PartitionSet(tuple(Col(name, Type.UINT) for name in some))
        for size in range(len(columns) + 1)
        for some in permutations(columns, size)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_the_search_finds_the_optimum_over_two_sources(seed: int) -> None:
    chance = random.Random(seed)
    text = random_set_of_two(chance)
    names = [line.split(":")[0].removeprefix("QUERY ") for line in text.splitlines()]
    outcomes = {name: (chance.uniform(0.01, 1.0), chance.choice([4.0, 10.0])) for name in names}
    search = search_of(TWO + text, outcomes)
    least = min(
        search.candidate({"l": left, "r": right}).cost
        for left, right in product(all_sets("abn"), all_sets("cdm"))
    )
    assert rounded(best(search).cost) == rounded(least), text
