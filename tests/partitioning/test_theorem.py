"""The partitioning theorem (P2 3.4): where a stream is kept under a partitioning, the union of its
rows over the partitions is its rows over the whole; where it is refused, tuples show why.
"""

from __future__ import annotations

import os
import random

import pytest

from terascope.connectors.base import Column
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.partitioning.compatible import compatible_sets, kept_streams
from terascope.partitioning.sets import PartitionSet, Placement, parse_set
from terascope.pipeline import Bindings, compile_set
from terascope.plan.plan import Plan
from terascope.types import Type
from tests.oracle.compare import assert_same_rows
from tests.partitioning.partitioned_rows import Tables, divided, over_whole, union_over_partitions
from tests.properties.random_sets import INTERFACES, PROTOCOL, RandomSet, random_rows

SEEDS = range(int(os.environ.get("TERASCOPE_SEEDS", "12")))
COLUMNS = [
    Column("ts", Type.UINT, "s"), Column("a", Type.INT), Column("b", Type.INT),
    Column("ip", Type.IP), Column("s", Type.STRING), Column("f", Type.FLOAT),
]  # fmt: skip
SETS = [
    "a", "b", "a, b", "ip", "s", "a, s", "ip, s", "a, b, ip, s", "b % 3", "b % 6", "b % 3, a",
    "prefix(ip, 24, 64)", "prefix(ip, 16, 32), s", "ip & 0xFFFF0000", "a / 2", "b + a", "ts/30",
    "ts/7, a", "a & 6", "b % 3, s", "prefix(ip, 24, 64), b % 3",
]  # fmt: skip


def bound_plan(text: str, sources: tuple[str, ...] = INTERFACES) -> Plan:
    """The optimised plan of a set over tables in memory."""
    interfaces = {name: Interface(name, "parquet", f"/{name}") for name in sources}
    return compile_set(Source(text), Bindings(interfaces, {"both": INTERFACES})).optimized


def set_of(text: str) -> PartitionSet:
    return parse_set(text, COLUMNS)


def check_theorem(plan: Plan, tables: Tables, placement: Placement, rng: random.Random) -> int:
    """The number of streams that partitions compute; their rows are those of the whole."""
    kept = kept_streams({stream.name: stream.rel for stream in plan}, placement)
    whole = over_whole(plan, tables)
    found = union_over_partitions(plan, tables, divided(tables, placement, 3, rng))
    for name in kept.streams:
        fields = plan[name].rel.fields
        try:
            assert_same_rows(whole[name], found[name], fields, rounding=True)
        except AssertionError as wrong:
            sets = {source: str(one) for source, one in placement.items()}
            raise AssertionError(f"{name} by {sets}: {wrong}") from None
    return len(kept.streams)


def random_case(seed: int) -> int:
    """Check one random set under several random partitionings; returns the streams kept."""
    rng = random.Random(seed)
    plan = bound_plan(RandomSet(seed).text(12))
    tables = {name: random_rows(seed * 5 + i, 60) for i, name in enumerate(INTERFACES)}
    kept = 0
    for _ in range(6):
        text = rng.choice(SETS)
        other = text if rng.random() < 0.8 else rng.choice(SETS)
        placement = {"left": set_of(text), "right": set_of(other)}
        kept += check_theorem(plan, tables, placement, rng)
    return kept


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_what_partitions_keep_is_the_union_of_what_they_compute(seed: int) -> None:
    random_case(seed)


def test_the_random_cases_keep_something() -> None:
    assert sum(map(random_case, range(6))) > 30


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_every_operator_is_compatible_with_its_own_set(seed: int) -> None:
    """The largest set of each operator keeps all that it is computed from."""
    rng = random.Random(seed)
    plan = bound_plan(RandomSet(seed).text(12))
    tables = {name: random_rows(seed * 5 + i, 50) for i, name in enumerate(INTERFACES)}
    streams = {stream.name: stream.rel for stream in plan}
    for one in compatible_sets(streams):
        placement = one.placement()
        if placement is None:
            continue
        assert one.refusal(placement) == ""
        whole = {**{name: set_of("ts") for name in INTERFACES}, **placement}
        check_theorem(plan, tables, whole, rng)


# ---- what is refused -----------------------------------------------------------------------------

REFUSED = {
    "a set that is finer than the keys": (
        "QUERY q: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a;", "a, b"),
    "a sum of the key and another column": (
        "QUERY q: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a;", "a + b"),
    "a key that is coarser than the set": (
        "QUERY q: SELECT tb, m, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, b % 3 AS m;",
        "b % 4"),
    "no key but time": (
        "QUERY q: SELECT tb, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb;", "a"),
    "time that is finer than the epoch": (
        "QUERY q: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a;", "ts, a"),
    "time that is not a multiple of the epoch": (
        "QUERY q: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a;", "ts/15, a"),
    "time under a sliding window": (
        "QUERY q: SELECT a, COUNT(*) AS n FROM left.S [RANGE 20 SLIDE 10] GROUP BY a;", "ts/30, a"),
    "time under a running aggregate": (
        "QUERY q: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a"
        " CLOSING_WHEN COUNT(*) = 0;", "ts/30, a"),
    "a join on another column": (
        "QUERY q: SELECT x.ts, x.b AS p, y.b AS q FROM left.S x, left.S y"
        " WHERE x.ts = y.ts AND x.a = y.a;", "s"),
    "a join of different functions": (
        "QUERY q: SELECT x.ts, x.b AS p, y.b AS q FROM left.S x, left.S y"
        " WHERE x.ts = y.ts AND x.a = y.a + 1;", "a"),
    "a join of neighbouring epochs by time": (
        "QUERY q: SELECT x.ts, x.a AS p, y.a AS q FROM left.S x, left.S y"
        " WHERE x.ts/10 = y.ts/10 + 1 AND x.a = y.a;", "ts/20, a"),
    "a grouping set without the key": (
        "QUERY q: SELECT tb, a, s, COUNT(*) AS n FROM left.S GROUP BY ts/20 AS tb, CUBE(a, s);",
        "a"),
    "the first rows of all": (
        "QUERY q: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a"
        " ORDER BY n DESC LIMIT 1;", "a"),
    "an aggregate of an aggregated value": (
        "QUERY below: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a;"
        "QUERY q: SELECT tb, n, COUNT(*) AS m FROM below GROUP BY tb, n;", "a"),
    "the key of the missing side": (
        "QUERY low: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a;"
        "QUERY j: SELECT tb, y.a AS ya, x.n FROM low x LEFT JOIN low y"
        " ON x.tb = y.tb AND x.a = y.a AND y.n > 1;"
        "QUERY q: SELECT tb, ya, COUNT(*) AS m FROM j GROUP BY tb, ya;", "a"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_would_give_other_rows(case: str) -> None:
    queries, text = REFUSED[case]
    plan = bound_plan(f"{PROTOCOL}\n{queries}", ("left",))
    placement = {"left": set_of(text)}
    kept = kept_streams({stream.name: stream.rel for stream in plan}, placement)
    assert "q" not in kept.streams
    assert kept.reasons["q"]
    for seed in range(40):
        rng = random.Random(seed)
        tables = {"left": random_rows(seed, 60)}
        whole = over_whole(plan, tables)["q"]
        found = union_over_partitions(plan, tables, divided(tables, placement, 3, rng))["q"]
        try:
            assert_same_rows(whole, found, plan["q"].rel.fields)
        except AssertionError:
            return
    raise AssertionError("no tuples were found for which the partitions give other rows")


KEPT = {
    "a function of several keys": (
        "QUERY q: SELECT tb, a, b, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a, b;", "a + b"),
    "a coarser mask": (
        "QUERY q: SELECT tb, net, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb,"
        " ip & 0xFFFFFF00 AS net;", "ip & 0xFFFF0000"),
    "a prefix of an address": (
        "QUERY q: SELECT tb, ip, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, ip;",
        "prefix(ip, 24, 64)"),
    "a chain of aggregations and a join of epochs": (
        "QUERY flows: SELECT tb, a, s, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a, s;"
        "QUERY heavy: SELECT tb, a, MAX(n) AS most FROM flows GROUP BY tb, a;"
        "QUERY q: SELECT x.tb, x.a, x.most, y.most AS before FROM heavy x, heavy y"
        " WHERE x.a = y.a AND x.tb = y.tb + 1;", "a"),
    "a computed key of a computed key": (
        "QUERY below: SELECT tb, k, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, b % 12 AS k;"
        "QUERY q: SELECT tb, m, SUM(n) AS t FROM below GROUP BY tb, k % 4 AS m;", "b % 2"),
    "rotation at multiples of the epoch": (
        "QUERY q: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a;", "ts/20, a"),
    "an outer join with its own key": (
        "QUERY low: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a;"
        "QUERY j: SELECT tb, x.a AS xa, y.n AS m FROM low x LEFT JOIN low y"
        " ON x.tb = y.tb AND x.a = y.a AND y.n > 1;"
        "QUERY q: SELECT tb, xa, COUNT(m) AS m FROM j GROUP BY tb, xa;", "a"),
    "the first rows of each key": (
        "QUERY q: SELECT a, ts, s, n FROM (SELECT ts, a, s, COUNT(*) AS n FROM left.S"
        " GROUP BY ts, a, s) ;", "a"),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_what_is_kept(case: str) -> None:
    queries, text = KEPT[case]
    plan = bound_plan(f"{PROTOCOL}\n{queries}", ("left",))
    placement = {"left": set_of(text)}
    kept = kept_streams({stream.name: stream.rel for stream in plan}, placement)
    assert kept.reasons == {}
    for seed in range(10):
        check_theorem(plan, {"left": random_rows(seed, 60)}, placement, random.Random(seed))


def test_sides_of_a_join_have_sets_of_their_own() -> None:
    plan = bound_plan(
        f"{PROTOCOL}\nQUERY q: SELECT x.ts, x.b AS p, y.b AS q FROM left.S x, right.S y"
        " WHERE x.ts = y.ts AND x.a = y.b % 4;"
    )
    (one,) = compatible_sets({stream.name: stream.rel for stream in plan})
    placement = one.placement()
    assert placement is not None
    assert {name: str(some) for name, some in placement.items()} == {"left": "a", "right": "b % 4"}
    for seed in range(10):
        tables = {name: random_rows(seed + i, 60) for i, name in enumerate(INTERFACES)}
        check_theorem(plan, tables, placement, random.Random(seed))
    swapped = {"left": placement["left"], "right": set_of("a")}
    assert (
        kept_streams({stream.name: stream.rel for stream in plan}, swapped).streams == frozenset()
    )


def test_partitions_that_no_value_determines_keep_selections_only() -> None:
    plan = bound_plan(
        f"{PROTOCOL}\nQUERY s: SELECT ts, a FROM left.S WHERE b > 2;"
        "QUERY q: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/10 AS tb, a;",
        ("left",),
    )
    kept = kept_streams({s.name: s.rel for s in plan}, {"left": PartitionSet(())})
    assert kept.streams == {"s"}
    assert "whatever their values are" in kept.reasons["q"]
