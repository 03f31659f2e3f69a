"""The reference and DuckDB on random tuples, for plans written by hand."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terascope.functions.base import Value
from terascope.plan.expr import Expr
from terascope.plan.plan import Plan
from terascope.plan.rel import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Merge,
    Project,
    Rank,
    Rel,
    Running,
    Slices,
    Sliding,
    Window,
    WindowSpec,
)
from terascope.types import Type
from tests.oracle.agreement import agreed, rows_of
from tests.oracle.build import (
    agg,
    aggs,
    call,
    case,
    col,
    columns,
    keep,
    named,
    plan,
    read,
    rename,
    scan,
)
from tests.reference.memory_sources import MemorySources
from tests.settings import SOAK

QUICK = settings(
    max_examples=20 if SOAK else 10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
small = st.integers(-6, 6)
maybe = st.none() | small
numbers = st.none() | st.integers(-(2**40), 2**40)
floats = st.none() | st.floats(-1e6, 1e6, width=32) | st.just(float("nan"))
texts = st.none() | st.text("aAé%_\\'", max_size=3)
addresses = st.none() | st.sampled_from(
    [bytes([4, 10, 0, 0, i]) for i in range(3)] + [bytes([6] + [0] * 15 + [i]) for i in range(2)]
)
RECORD = st.fixed_dictionaries(
    {
        "ts": st.integers(-30, 30),
        "k": maybe,
        "x": numbers,
        "f": floats,
        "s": texts,
        "ip": addresses,
        "b": st.none() | st.booleans(),
    }
)
TABLE = st.lists(RECORD, max_size=12)
Table = list[dict[str, Value]]

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
S, ADDRESS, B = col("s", Type.STRING), col("ip", Type.IP), col("b", Type.BOOL)

EXPRESSIONS = named(
    add=call("+", X, K),
    sub=call("-", K, X),
    mul=call("*", K, K),
    neg=call("neg", X),
    div=call("div", X, K),
    mod=call("%", X, K),
    quo=call("/", X, K),
    ratio=call("/", F, K),
    band=call("&", X, K),
    bor=call("|", X, K),
    bxor=call("^", X, K),
    bnot=call("~", X),
    shl=call("<<", K, 3),
    shr=call(">>", X, K),
    mix=call("+", F, X),
    less=call("<", K, F),
    eq=call("=", F, F),
    text=call("||", S, "x"),
    like=call("like", S, "a%"),
    like_any=call("like", S, call("||", S, "%")),
    texts=call("<=", S, "aé"),
    member=call("in", K, 1, 2, X),
    subnet=call("mask", ADDRESS, 0xFFFFFFFE),
    older=call("<", ADDRESS, call("mask", ADDRESS, 0xFFFFFF02)),
    both=call("and", B, call(">", K, 0), call("<", X, 0)),
    one=call("or", B, call(">", K, 0)),
    no=call("not", B),
    first=call("coalesce", K, X, 0),
    pick=case((B, K), (call(">", X, 0), F), otherwise=-1.5),
    null=call("is_null", F),
    least=call("least", K, X, F),
    greatest=call("greatest", K, F),
    down=call("floor", F),
    up=call("ceil", F),
    near=call("trunc", F),
    size=call("abs", X),
    nullif=call("nullif", K, X),
    chosen=call("if", B, K, F),
    net=call("prefix", ADDRESS, 30, 127),
    inside=call("in_subnet", ADDRESS, "10.0.0.0/31"),
    inside_six=call("in_subnet", ADDRESS, "::/127"),
    contains=call("str_exists_substr", S, "a"),
    starts=call("str_match_start", S, "A"),
    length=call("str_length", S),
    joined=call("concat", S, "-", S),
)


@QUICK
@given(table=TABLE)
def test_expressions(table: Table) -> None:
    rows_of(Project(SOURCE, EXPRESSIONS), {"t": table})


@QUICK
@given(
    table=TABLE,
    spec=st.builds(Sliding, st.integers(1, 9), st.integers(1, 9))
    | st.builds(Slices, st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)),
)
def test_windows_with_aggregates_and_empty_ones(table: Table, spec: WindowSpec) -> None:
    windowed = Window(SOURCE, spec, "ts")
    calls = aggs(n=agg("count"), total=agg("sum", X), low=agg("min", F), high=agg("max", S))
    rows_of(Aggregate(windowed, columns(windowed, "wstart wend k"), calls), {"t": table})
    keys = columns(windowed, "wstart wend")
    rows_of(Aggregate(windowed, keys, calls, emit_empty=spec), {"t": table})


@QUICK
@given(table=TABLE, range_=st.integers(1, 12), slide=st.integers(1, 12))
def test_windows_over_slices(table: Table, range_: int, slide: int) -> None:
    sliced = Window(SOURCE, Slices((3, 1, 2)), "ts")
    partials = Aggregate(sliced, columns(sliced, "wstart wend k"), aggs(n=agg("count")))
    again = Window(read("partials", partials), Sliding(range_, slide), "wend", elements=True)
    totals = Aggregate(again, columns(again, "wstart wend"), aggs(n=agg("sum", col("n"))))
    agreed(plan(partials=partials, totals=totals), MemorySources({"t": table}))


@QUICK
@given(table=TABLE)
def test_grouping_sets_and_exact_aggregates(table: Table) -> None:
    calls = aggs(
        n=agg("count"),
        nx=agg("count", X),
        kinds=agg("count", S, distinct=True),
        total=agg("sum", X),
        mean=agg("avg", X),
        low=agg("min", ADDRESS),
        high=agg("max", F),
        first=agg("first", X),
        last=agg("last", S),
        again=agg("count_dups", K),
        differ=agg("count_distinct", F),
        changes=agg("count_diff", K),
        texts=agg("cat_aggr", call("||", S, ","), S),
        positive=agg("posavg", X),
        spread=agg("stddev_samp", K),
        variance=agg("var_pop", K),
        middle=agg("median", F),
        most=agg("percentile", X, parameters=[90]),
        some=agg("quantile_of", K, parameters=[0.25]),
        any_bit=agg("or_aggr", X),
        all_bits=agg("and_aggr", K),
        odd_bits=agg("xor_aggr", X),
        any_b=agg("or_aggr", B),
        all_b=agg("and_aggr", B),
        odd_b=agg("xor_aggr", B),
    )
    sets = (("k", "s"), ("s",), ())
    rows_of(Aggregate(SOURCE, columns(SOURCE, "k s"), calls, sets=sets), {"t": table})


@QUICK
@given(table=TABLE, silent=st.integers(0, 2), width=st.integers(1, 20))
def test_running_groups(table: Table, silent: int, width: int) -> None:
    rel = Running(
        Filter(SOURCE, call("<", K, 4)),
        named(tb=call("div", col("ts"), width), s=S),
        aggs(
            n=agg("count"),
            high=agg("max", X),
            total=agg("running_sum", K),
            all=agg("running_count"),
            first=agg("first", X),
            last=agg("last", S),
        ),
        call("or", call("=", col("n"), silent), call(">", col("total"), 5)),
    )
    rows_of(rel, {"t": table})


@QUICK
@given(left=TABLE, right=TABLE, kind=st.sampled_from(["inner", "left", "right", "full", "semi"]))
def test_joins(left: Table, right: Table, kind: JoinKind) -> None:
    a = rename(SOURCE, "a_")
    b = rename(scan("u", ts=Type.INT, k=Type.INT, f=Type.FLOAT, ip=Type.IP), "b_")
    fills = () if kind == "semi" else named(a_k=call("+", col("b_k"), 1), b_k=col("a_k"))
    tables = {"t": left, "u": right}
    same_k = ((col("a_k"), call("+", col("b_k"), 1)),)
    near = call("<", col("a_ts"), call("+", col("b_ts"), 10))
    rows_of(Join(a, b, kind, same_k, near, fills), tables)
    same_f = ((col("a_f", Type.FLOAT), col("b_f", Type.FLOAT)),)
    rows_of(Join(a, b, kind, same_f), tables)


def top(source: Rel, expr: Expr, descending: bool, limit: int | None) -> Rank:
    ties = tuple((col(name, source.type_of(name)), False) for name in ("#ts", "#pos"))
    return Rank(source, ("k",), ((expr, descending), *ties), limit)


@QUICK
@given(
    table=TABLE,
    expr=st.sampled_from([X, F, S, ADDRESS, B]),
    descending=st.booleans(),
    limit=st.none() | st.integers(0, 3),
)
def test_rank(table: Table, expr: Expr, descending: bool, limit: int | None) -> None:
    rows_of(top(SOURCE, expr, descending, limit), {"t": table})


def query_set() -> Plan:
    """Streams that read streams: two aggregates, their join, and a merge of both."""
    keys = named(tb=call("div", col("ts"), 5), k=K)
    flows = Aggregate(SOURCE, keys, aggs(n=agg("count"), total=agg("sum", X)))
    heavy = Filter(read("flows", flows), call(">", col("n"), 1))
    before = rename(read("flows", flows), "p_")
    growth = Join(
        read("flows", flows),
        before,
        "left",
        ((col("tb"), call("+", col("p_tb"), 1)), (col("k"), col("p_k"))),
    )
    union = Merge((keep(read("flows", flows), "tb n"), keep(read("heavy", heavy), "tb n")), "tb")
    return plan(flows=flows, heavy=heavy, growth=growth, union=union)


@QUICK
@given(table=TABLE)
def test_a_set_of_queries(table: Table) -> None:
    agreed(query_set(), MemorySources({"t": table}))
