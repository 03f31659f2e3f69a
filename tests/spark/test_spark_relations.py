"""Every operator of the algebra gives the reference's rows in Spark, whatever the partitions."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from terascope.functions.base import Value
from terascope.functions.user import aggregate, scalar
from terascope.plan.expr import AggCall, Call
from terascope.plan.plan import Parameter
from terascope.plan.rel import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Lookup,
    Merge,
    Project,
    Rank,
    Rel,
    Running,
    Scan,
    Slices,
    Sliding,
    Window,
    WindowSpec,
)
from terascope.types import Type, parse_ip
from tests.oracle.build import (
    ORDER,
    agg,
    aggs,
    call,
    case,
    col,
    columns,
    fields,
    ip,
    keep,
    lit,
    named,
    plan,
    read,
    rename,
    scan,
)
from tests.spark.spark_rows import Tables, assert_agreement

pytestmark = pytest.mark.spark

COLUMNS = scan(
    ts=Type.INT, k=Type.INT, x=Type.LLONG, f=Type.FLOAT, s=Type.STRING, ip=Type.IP, b=Type.BOOL
).columns
SOURCE = Scan(("t",), "TINY", COLUMNS)
BOTH = Scan(("t", "u"), "TINY", COLUMNS)
TS, K, X, F = col("ts"), col("k"), col("x", Type.LLONG), col("f", Type.FLOAT)
S, ADDRESS, B = col("s", Type.STRING), col("ip", Type.IP), col("b", Type.BOOL)
ADDRESSES = [parse_ip(t) for t in ("10.0.0.1", "10.0.0.2", "10.0.9.1", "fc00::1")]


def table(seed: int, count: int) -> list[dict[str, Value]]:
    dice = random.Random(seed)
    return [
        {
            "ts": dice.randrange(-12, 13) if dice.random() > 0.05 else None,
            "k": dice.choice([None, -1, 0, 1, 2]),
            "x": dice.choice([None, 0, 5, -7, 2**40, -(2**62)]),
            "f": dice.choice([None, 0.0, -0.0, 1.5, -2.25, float("nan")]),
            "s": dice.choice([None, "", "a", "b", "é"]),
            "ip": dice.choice([None, *ADDRESSES]),
            "b": dice.choice([None, True, False]),
        }
        for _ in range(count)
    ]


MANY = (3,)
"""Rows per partition where one partition would show nothing new."""

TABLES: Tables = {"t": table(1, 26), "u": table(2, 17)}


@scalar(takes=("LLONG", "LLONG"), returns="BOOL")
def near(a: int, b: int) -> bool:
    return abs(a - b) <= 1


class Digits:
    def zero(self) -> str:
        return ""

    def reduce(self, state: str, x: int) -> str:
        return state + str(x % 10)

    def merge(self, left: str, right: str) -> str:
        return left + right

    def finish(self, state: str) -> str:
        return state


digits = aggregate(name="digits", takes=("LLONG",), returns="STRING", ordered=True)(Digits)


def test_filter_project_merge_rank(spark: SparkSession, tmp_path: Path) -> None:
    chosen = Filter(SOURCE, call("or", call(">", X, 0), call("is_null", S)))
    shown = Project(
        chosen,
        named(
            a=call("+", TS, K),
            net=call("mask", ADDRESS, 0xFFFFFF00),
            word=call("||", S, "!"),
            kind=case((B, "yes"), otherwise=None),
            nothing=lit(None),
        ),
    )
    order = ((call("neg", X), True), (col("#pos", Type.LLONG), False))
    assert_agreement(
        plan(
            (Parameter("least", Type.INT, 1),),
            filtered=chosen,
            shown=shown,
            merged=Merge((keep(SOURCE, "ts x f"), keep(BOTH, "k ts f")), "ts"),
            both=BOTH,
            top=Rank(SOURCE, ("k",), order, 2),
            first=Rank(SOURCE, (), order, 3),
            everything=Rank(SOURCE, ("k",), order, None),
            ranked_float=Rank(SOURCE, ("s",), ((F, False), (col("#pos", Type.LLONG), False)), 1),
        ),
        TABLES,
        spark,
        tmp_path,
    )


SPECS: dict[str, WindowSpec] = {
    "tumbling": Sliding(5, 5),
    "sliding": Sliding(9, 4),
    "overlapping": Sliding(6, 2),
    "hopping": Sliding(2, 7),
    "slices": Slices((3, 1, 5)),
}


def test_windows(spark: SparkSession, tmp_path: Path) -> None:
    streams: dict[str, Rel] = {}
    narrow = Filter(keep(SOURCE, "ts k x"), call("!=", call("%", TS, 5), 1))
    for name, spec in SPECS.items():
        windows = streams[f"{name}_windows"] = Window(narrow, spec, "ts")
        keys = columns(windows, "wstart wend")
        counted = aggs(n=agg("count"), total=agg("sum", X))
        streams[name] = Aggregate(windows, keys, counted)
        streams[f"{name}_filled"] = Aggregate(windows, keys, counted, emit_empty=spec)
        streams[f"{name}_swapped"] = Aggregate(windows, keys[::-1], counted, emit_empty=spec)
    elements = read("tumbling", streams["tumbling"])
    streams["again"] = Window(elements, Sliding(15, 10), "wend", elements=True)
    streams["sliced"] = Window(elements, Slices((10, 15)), "wend", elements=True)
    epoch = named(tb=call("div", TS, 2))
    odd = Filter(SOURCE, call("=", K, 1))
    streams["epochs"] = Aggregate(
        odd, epoch, aggs(n=agg("count"), s=agg("sum", X)), emit_empty="epoch"
    )
    assert_agreement(plan(**streams), TABLES, spark, tmp_path, MANY)


def test_aggregates(spark: SparkSession, tmp_path: Path) -> None:
    every = aggs(
        n=agg("count"),
        values=agg("count", X),
        kinds=agg("count", X, distinct=True),
        texts=agg("count_distinct", S),
        floats=agg("count", F, distinct=True),
        dups=agg("count_dups", X),
        total=agg("sum", X),
        total_float=agg("sum", F),
        total_distinct=agg("sum", K, distinct=True),
        mean=agg("avg", X),
        mean_float=agg("avg", F),
        mean_distinct=agg("avg", K, distinct=True),
        positive=agg("posavg", X),
        low=agg("min", F),
        high=agg("max", F),
        low_text=agg("min", S),
        high_ip=agg("max", ADDRESS),
        low_bool=agg("min", B),
        first=agg("first", S),
        last=agg("last", ADDRESS),
        spread=agg("var_pop", K),
        deviation=agg("stddev_samp", K),
        middle=agg("median", X),
        p90=agg("percentile", F, parameters=(90,)),
        p0=agg("percentile", X, parameters=(0,)),
        q=agg("quantile_of", X, parameters=(0.3,)),
        bits=agg("or_aggr", X),
        all_bits=agg("and_aggr", X),
        odd_bits=agg("xor_aggr", X),
        any_b=agg("or_aggr", B),
        all_b=agg("and_aggr", B),
        odd_b=agg("xor_aggr", B),
        odd_distinct=agg("xor_aggr", X, distinct=True),
        changes=agg("count_diff", K),
        joined=agg("cat_aggr", lit(","), S),
        moving=agg("moving_sum", X, parameters=(3,)),
        running=agg("running_sum", K),
        running_n=agg("running_count"),
        own=AggCall(digits, (X,), Type.STRING, order=ORDER),
    )
    few = aggs(n=agg("count"), total=agg("sum", K), first=agg("first", X), own=every[-1][1])
    keys = named(k=K, s=S)
    sets = (("k", "s"), ("k",), ("s",), ())
    empty = Filter(SOURCE, call("<", TS, -1000))
    assert_agreement(
        plan(
            one_key=Aggregate(SOURCE, named(k=K), every),
            all=Aggregate(SOURCE, (), every),
            none=Aggregate(empty, (), few),
            none_keyed=Aggregate(empty, keys, few),
            two=Aggregate(SOURCE, keys, few),
            cube=Aggregate(SOURCE, keys, few, sets=sets),
            float_key=Aggregate(SOURCE, named(f=F, ip=ADDRESS), few),
            distinct=Aggregate(SOURCE, keys, ()),
        ),
        TABLES,
        spark,
        tmp_path,
    )


def test_joins(spark: SparkSession, tmp_path: Path) -> None:
    left = rename(keep(SOURCE, "ts k x s"), "l.")
    right = rename(keep(BOTH, "ts k x s"), "r.")
    lk, rk = col("l.k"), col("r.k")
    lt, rt = col("l.ts"), col("r.ts")
    streams: dict[str, Rel] = {}
    kinds: list[JoinKind] = ["inner", "left", "right", "full", "semi"]
    python_near = Call(near, (lt, rt), Type.BOOL)
    for kind in kinds:
        fills = () if kind == "semi" else (("l.ts", rt), ("r.ts", call("+", lt, 1)))
        shifted = ((lt, call("-", rt, 1)), (lk, rk))
        streams[f"{kind}_equal"] = Join(left, right, kind, shifted, None, fills)
        smaller = call("<", col("l.x", Type.LLONG), col("r.x", Type.LLONG))
        streams[f"{kind}_residual"] = Join(left, right, kind, ((lk, rk),), smaller, fills)
        streams[f"{kind}_python"] = Join(left, right, kind, ((lk, rk),), python_near, fills)
    band = call("and", call(">=", rt, call("-", lt, 1)), call("<=", rt, lt))
    streams["band"] = Join(left, right, "full", (), band)
    texts = ((col("l.s", Type.STRING), call("||", col("r.s", Type.STRING), "")),)
    streams["text"] = Join(left, right, "inner", texts)
    assert_agreement(plan(**streams), TABLES, spark, tmp_path, MANY)


def test_self_join_of_a_stream_and_three_inputs(spark: SparkSession, tmp_path: Path) -> None:
    base = Aggregate(SOURCE, named(tb=call("div", TS, 3), k=K), aggs(n=agg("count")))
    one, two, three = (rename(read("base", base), p) for p in ("a.", "b.", "c."))
    following = ((col("a.tb"), call("+", col("b.tb"), 1)), (col("a.k"), col("b.k")))
    pairs = Join(one, two, "full", following, None, (("a.tb", call("+", col("b.tb"), 1)),))
    third = Join(pairs, three, "full", ((col("a.tb"), col("c.tb")),))
    again = Aggregate(third, named(tb=col("a.tb")), aggs(n=agg("count"), m=agg("max", col("b.n"))))
    assert_agreement(
        plan(base=base, pairs=pairs, third=third, again=again), TABLES, spark, tmp_path
    )


def test_closing_when(spark: SparkSession, tmp_path: Path) -> None:
    members = aggs(
        n=agg("count"),
        total=agg("sum", K),
        since=agg("running_count"),
        first=agg("first", X),
        dups=agg("count_dups", X),
        moving=agg("moving_sum", K, parameters=(2,)),
        middle=agg("median", K),
    )
    timed = Filter(SOURCE, call(">", TS, -8))
    quiet = call("and", call("=", col("n", Type.ULLONG), 0), call(">", col("tb"), 1))
    many = call(">=", col("since", Type.ULLONG), 4)
    by_text = (("tb", call("div", TS, 2)), ("s", S))
    never = lit(False)
    assert_agreement(
        plan(
            quiet=Running(timed, by_text, members, quiet),
            many=Running(timed, by_text, members, many),
            floats=Running(timed, (("tb", call("div", TS, 4)), ("f", F)), members, many),
            alone=Running(timed, (("tb", TS),), members, quiet),
            early=Running(Filter(timed, call("<", TS, 0)), by_text, members, never),
            nobody=Running(Filter(timed, call(">", TS, 1000)), by_text, members, never),
        ),
        TABLES,
        spark,
        tmp_path,
    )


def test_watch_list(spark: SparkSession, tmp_path: Path) -> None:
    listed = tmp_path / "list.csv"
    listed.write_text("name,host\nbad,10.0.0.1\nworse,fc00::1\n,10.0.0.1\nno,x\n", encoding="utf-8")
    positional = tmp_path / "plain.csv"
    positional.write_text("10.0.0.2,7\n", encoding="utf-8")
    empty = tmp_path / "empty.csv"
    empty.write_text("host,name\n", encoding="utf-8")
    schema = fields(host=Type.IP, name=Type.STRING)
    hosts = Lookup("hosts", str(listed), schema)
    on = ((ADDRESS, col("host", Type.IP)),)
    named_ip = Filter(SOURCE, call("=", ADDRESS, ip("10.0.0.1")))
    assert_agreement(
        plan(
            hosts=hosts,
            plain=Lookup("plain", str(positional), fields(host=Type.IP, level=Type.INT)),
            empty=Lookup("empty", str(empty), schema),
            found=Join(SOURCE, hosts, "semi", on),
            tagged=Join(named_ip, hosts, "left", on),
        ),
        TABLES,
        spark,
        tmp_path,
    )
