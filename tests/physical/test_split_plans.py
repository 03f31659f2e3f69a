"""Splits of plans written by hand, over tuples with NULLs, NaNs and large numbers: the answers are
those of the whole, also when the low level sends a group up in several partials.
"""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terascope.analysis.costs import Costs
from terascope.connectors.base import POSITION
from terascope.functions.base import Value, ValueMistake
from terascope.physical.rules.merged_groups import assume_merged
from terascope.physical.split.host import COMPILED_HOST, Host
from terascope.physical.split.split_plan import SplitPlan, split_plan
from terascope.plan.expr import AggCall
from terascope.plan.plan import Plan
from terascope.plan.rel import (
    Aggregate,
    Filter,
    NamedAgg,
    Project,
    Read,
    Rel,
    Running,
    Sliding,
    Window,
    walk,
)
from terascope.reference.interpreter import evaluate, tuples_of
from terascope.reference.rows import Evaluation, Rows
from terascope.types import Type
from tests.oracle.build import agg, aggs, call, case, col, columns, named, plan, read, scan
from tests.oracle.compare import assert_same_rows
from tests.physical.merged_split import over_merged_groups
from tests.reference.memory_sources import MemorySources

QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
Table = list[dict[str, Value]]
FLOATS = (0.0, 0.5, -1.25, 3.0, 1e19, -1e19, 1e300, 1e-300, math.inf, math.nan)
"""Their sums are held in several ranges."""
RECORD = st.fixed_dictionaries(
    {
        "ts": st.integers(-20, 20),
        "k": st.none() | st.integers(-2, 2),
        "x": st.none() | st.integers(-(2**62), 2**62),
        "f": st.none() | st.sampled_from(FLOATS),
        "s": st.none() | st.sampled_from(["", "a", "ab"]),
        "ip": st.none() | st.sampled_from([bytes([4, 10, 0, 0, i]) for i in range(3)]),
        "b": st.none() | st.booleans(),
    }
)
TABLE = st.lists(RECORD, max_size=14)
CUTS = st.lists(st.integers(0, 14), max_size=3).map(sorted)
LARGE = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 3),
            "k": st.integers(0, 1),
            "s": st.just("a"),
            "x": st.sampled_from([2**63 - 1, 2**62, -(2**62), -(2**63), 1]),
        }
    ),
    max_size=6,
)

SOURCE = scan(
    "t",
    ts=Type.INT,
    k=Type.INT,
    x=Type.LLONG,
    f=Type.FLOAT,
    s=Type.STRING,
    ip=Type.IP,
    b=Type.BOOL,
)
K, X, F = col("k"), col("x", Type.LLONG), col("f", Type.FLOAT)
S, IP, B = col("s", Type.STRING), col("ip", Type.IP), col("b", Type.BOOL)
EPOCH = call("div", col("ts"), 5)
KEYS = named(tb=EPOCH, k=K, s=S)
SPLITTING = aggs(
    n=agg("count"),
    nx=agg("count", X),
    ns=agg("count", S),
    small=agg("sum", K),
    real=agg("sum", F),
    mean=agg("avg", X),
    mean_k=agg("avg", K),
    mean_f=agg("avg", F),
    low=agg("min", X),
    high=agg("max", F),
    any=agg("or_aggr", X),
    all=agg("and_aggr", K),
    odd=agg("xor_aggr", X),
    all_again=agg("running_count"),
)
KINDS: tuple[NamedAgg, ...] = (
    ("kinds", agg("count", IP, distinct=True)),
    ("more", agg("count_distinct", IP)),
)
BY_VALUE: tuple[NamedAgg, ...] = (
    ("total", agg("sum", K, distinct=True)),
    ("middle", agg("percentile", K, parameters=[50], distinct=True)),
    ("different", agg("count", K, distinct=True)),
)


def check(whole: Plan, table: Table, cuts: list[int], host: Host = COMPILED_HOST) -> SplitPlan:
    """The whole, its split, the split over merged groups, and over groups in pieces."""
    sources = MemorySources({"t": [{**row, POSITION: i} for i, row in enumerate(table)]})
    expected = evaluate(whole, sources)
    split = split_plan(whole, host)
    as_split = evaluate(split.plan, sources)
    ways = [
        as_split,
        evaluate(over_merged_groups(split, as_split), sources),
        in_pieces(split, sources, cuts),
    ]
    for found in ways:
        for stream in whole.visible:
            rows = expected[stream.name]
            assert found[stream.name].fields == rows.fields
            assert_same_rows(rows.tuples, found[stream.name].tuples, rows.fields)
    return split


def in_pieces(split: SplitPlan, sources: MemorySources, cuts: list[int]) -> dict[str, Rows]:
    """Every low-level stream computed piece by piece: groups come up as several partials."""
    table = sources.tables["t"]
    edges = [0, *(c for c in cuts if c < len(table)), len(table)]
    pieces = [MemorySources({"t": table[a:b]}) for a, b in pairwise(edges)]
    streams: dict[str, Rows] = {}
    low = {stream.name for stream in split.low}
    for stream in split.plan:
        parts = pieces if stream.name in low else [sources]
        tuples = [
            row
            for p in parts
            for row in tuples_of(stream.rel, Evaluation.of(split.plan, p, streams))
        ]
        streams[stream.name] = Rows(stream.rel.fields, tuples)
    return streams


def kinds(split: SplitPlan) -> list[str]:
    return ["aggregation" if isinstance(s.rel, Aggregate) else "selection" for s in split.low]


@QUICK
@given(table=TABLE, cuts=CUTS)
def test_every_splitting_aggregate_at_once(table: Table, cuts: list[int]) -> None:
    rel = Aggregate(Filter(SOURCE, call("<", K, 2)), KEYS, SPLITTING)
    assert kinds(check(plan(q=rel), table, cuts)) == ["aggregation"]


@QUICK
@given(table=TABLE, cuts=CUTS)
def test_grouping_sets(table: Table, cuts: list[int]) -> None:
    rel = Aggregate(SOURCE, KEYS, SPLITTING, sets=(("tb", "k"), ("tb", "s"), ("tb",), ()))
    assert kinds(check(plan(q=rel), table, cuts)) == ["aggregation"]


@QUICK
@given(table=LARGE, cuts=CUTS)
def test_grouping_sets_of_large_sums(table: Table, cuts: list[int]) -> None:
    """The sum of a finer group may overflow; only that of the whole is a mistake."""
    whole = plan(q=Aggregate(SOURCE, KEYS, aggs(total=agg("sum", X)), sets=(("tb",), ())))
    try:
        evaluate(whole, MemorySources({"t": table}))
    except ValueMistake:
        with pytest.raises(ValueMistake):
            evaluate(split_plan(whole).plan, MemorySources({"t": table}))
    else:
        check(whole, table, cuts)


@QUICK
@given(table=TABLE, cuts=CUTS)
def test_rows_for_empty_epochs(table: Table, cuts: list[int]) -> None:
    calls = aggs(n=agg("count"), nx=agg("count", X), mean=agg("avg", K), low=agg("min", X))
    rel = Aggregate(SOURCE, named(tb=EPOCH), calls, emit_empty="epoch")
    split = check(plan(q=rel), table, cuts)
    assert kinds(split) == ["aggregation"]
    assert assume_merged(split.plan["q"].rel, split.low_keys) == split.plan["q"].rel


@QUICK
@given(table=TABLE, cuts=CUTS)
def test_different_values(table: Table, cuts: list[int]) -> None:
    one = Aggregate(SOURCE, named(tb=EPOCH, s=S), (*SPLITTING, *KINDS))
    other = Aggregate(SOURCE, named(tb=EPOCH, s=S), BY_VALUE)
    key = Aggregate(SOURCE, named(tb=EPOCH, k=K), BY_VALUE)
    assert kinds(check(plan(one=one, other=other, key=key), table, cuts)) == ["aggregation"] * 3


@QUICK
@given(table=TABLE, cuts=CUTS)
def test_keys_of_every_kind(table: Table, cuts: list[int]) -> None:
    twice = named(
        tb=EPOCH,
        again=EPOCH,
        one=case((B, 1), otherwise=0),
        f=F,
        b=B,
        ip=IP,
        net=call("prefix", IP, 31),
        fixed=call("+", 1, 2),
    )
    rel = Aggregate(SOURCE, twice, aggs(n=agg("count"), one_more=agg("sum", call("+", K, 1))))
    assert kinds(check(plan(q=rel), table, cuts)) == ["aggregation"]


@QUICK
@given(
    table=st.lists(st.fixed_dictionaries({"ts": st.none() | st.integers(-20, 20)}), max_size=12),
    cuts=CUTS,
    length=st.integers(1, 12),
)
def test_tumbling_windows(table: Table, cuts: list[int], length: int) -> None:
    windowed = Window(Filter(SOURCE, call("is_null", K)), Sliding(length, length), "ts")
    edges = columns(windowed, "wstart wend")
    calls = aggs(n=agg("count"), low=agg("min", col("ts")))
    rel = Aggregate(windowed, (*edges, *named(half=call("div", col("ts"), 2))), calls)
    empty = Aggregate(windowed, edges, calls, emit_empty=windowed.spec)
    split = check(plan(q=rel, empty=empty), table, cuts)
    assert set(kinds(split)) == {"aggregation"}


@QUICK
@given(table=TABLE, cuts=CUTS)
def test_keys_that_follow_from_others(table: Table, cuts: list[int]) -> None:
    keys = named(
        t=call("+", call("*", EPOCH, 5), 3),
        down=call("-", 7, EPOCH),
        s=S,
        again=call("upper", call("||", S, "x")),
        size=call("str_length", S),
    )
    rel = Aggregate(SOURCE, keys, (*SPLITTING, ("kinds", agg("count", S, distinct=True))))
    split = check(plan(q=rel), table, cuts)
    assert [f.name for f in split.plan["q_low"].rel.fields][:2] == ["t_key", "s"]


@QUICK
@given(table=TABLE, cuts=CUTS)
def test_keys_that_follow_from_what_is_counted(table: Table, cuts: list[int]) -> None:
    keys = named(tb=EPOCH, net=call("prefix", IP, 31))
    rel = Aggregate(SOURCE, keys, (*SPLITTING, *KINDS))
    split = check(plan(q=rel), table, cuts)
    assert split.low_keys == {"q_low": ("tb", "ip")}


@QUICK
@given(table=TABLE, cuts=CUTS)
def test_a_set_that_shares_and_reads_itself(table: Table, cuts: list[int]) -> None:
    web = Project(
        Filter(SOURCE, call(">", K, 0)), named(ts=col("ts"), s=S, y=call("+", K, 1), ip=IP)
    )
    y = col("y")
    flows = Aggregate(
        Filter(read("web", web), call("<", y, 3)),
        named(tb=EPOCH, s=S),
        aggs(n=agg("count"), top=agg("max", y)),
    )
    hosts = Aggregate(
        SOURCE, named(tb=EPOCH, s=S), aggs(n=agg("count"), last=agg("last", X), total=agg("sum", K))
    )
    total = Aggregate(
        read("flows", flows), named(tb=col("tb")), aggs(all=agg("sum", col("n", Type.ULLONG)))
    )
    split = check(plan(web=web, flows=flows, hosts=hosts, total=total), table, cuts)
    assert kinds(split) == ["selection", "aggregation", "aggregation"]


@QUICK
@given(table=TABLE, cuts=CUTS)
def test_running_groups_over_groups_of_epochs(table: Table, cuts: list[int]) -> None:
    rel = Running(
        Filter(SOURCE, call("<", K, 2)),
        named(tb=EPOCH, s=S),
        aggs(n=agg("count"), all=agg("running_count"), first=agg("first", X)),
        call("=", col("n", Type.ULLONG), 0),
    )
    assert kinds(check(plan(q=rel), table, cuts)) == ["aggregation"]


# ---- merged groups -------------------------------------------------------------------------------


def over_low(calls: tuple[NamedAgg, ...], **options: object) -> tuple[Rel, SplitPlan]:
    split = split_plan(plan(q=Aggregate(SOURCE, KEYS, calls, **options)), COMPILED_HOST, Costs())  # type: ignore[arg-type]
    return assume_merged(split.plan["q"].rel, split.low_keys), split


def aggregations(rel: Rel) -> int:
    return sum(isinstance(r, Aggregate) for r in walk(rel))


def test_merged_groups_need_no_second_aggregation() -> None:
    rel, _ = over_low(SPLITTING)
    assert aggregations(rel) == 0


def test_fewer_keys_than_the_low_groups_have_do_need_one() -> None:
    assert aggregations(over_low(KINDS)[0]) == 1
    assert aggregations(over_low(SPLITTING, sets=(("tb",), ("k", "s")))[0]) == 1


def test_another_stream_is_left_alone() -> None:
    call_: AggCall = agg("sum", col("n", Type.ULLONG))
    fields = Aggregate(SOURCE, KEYS, aggs(n=agg("count"))).fields
    rel = Aggregate(Read("other", fields), named(tb=col("tb")), aggs(n=call_))
    assert assume_merged(rel, {"q_low": ("tb",)}) is rel
    assert assume_merged(rel, {"other": ("tb", "k")}) is rel
    assert isinstance(assume_merged(rel, {"other": ("tb",)}), Project)
