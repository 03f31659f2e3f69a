from __future__ import annotations

from terascope.functions.base import Value
from terascope.plan.expr import Expr
from terascope.plan.rel import (
    Aggregate,
    Filter,
    Join,
    Lookup,
    Merge,
    Project,
    Rank,
    Rel,
    Running,
    Sliding,
    Window,
)
from terascope.reference.rows import Evaluation
from terascope.types import Type
from tests.oracle.build import agg, aggs, call, col, fields, ints, lit, named, plan, read, records
from tests.reference.memory_sources import MemorySources

A = ints("a", names="ts x")
B = ints("b", names="us y")
SOURCES = MemorySources(
    {"a": records("ts x", (10, 1), (25, 2), (None, 3)), "b": records("us y", (99, 5))}
)
COUNT = aggs(n=agg("count"))


def horizon(expr: Expr, rel: Rel, **streams: Rel) -> Value:
    return Evaluation.of(plan(**streams, out=rel), SOURCES, {}).horizon(expr, rel)


def test_a_scan_reaches_its_largest_value() -> None:
    assert horizon(col("ts"), A) == 25
    assert horizon(call("div", col("ts"), 10), A) == 2


def test_all_interfaces_of_a_scan_count() -> None:
    assert horizon(col("ts"), ints("a", "a", names="ts")) == 25
    sources = MemorySources({"a": records("ts", (1,)), "b": records("ts", (7,))})
    rel = ints("a", "b", names="ts")
    assert Evaluation.of(plan(out=rel), sources, {}).horizon(col("ts"), rel) == 7


def test_other_protocols_on_the_interface_move_time_too() -> None:
    sources = MemorySources({"a": records("ts #layers", (1, 3), (8, 1))})
    rel = ints("a", names="ts")
    tcp = type(rel)(rel.interfaces, "TCP", rel.columns, layer=2)
    assert sources.rows(tcp) == [(1,)]
    assert Evaluation.of(plan(out=tcp), sources, {}).horizon(col("ts"), tcp) == 8


def test_filter_rank_and_window_leave_it() -> None:
    assert horizon(col("ts"), Filter(A, lit(False))) == 25
    assert horizon(col("ts"), Rank(A, (), ((col("ts"), False),), 1)) == 25
    windowed = Window(A, Sliding(10, 10), "ts")
    assert horizon(col("ts"), windowed) == 25
    assert horizon(col("wend"), windowed) is None


def test_projections_and_keys_are_evaluated_on_it() -> None:
    minutes = named(tb=call("div", col("ts"), 10))
    assert horizon(col("tb"), Project(A, minutes)) == 2
    assert horizon(call("+", col("tb"), 1), Aggregate(A, minutes, COUNT)) == 3
    assert horizon(col("tb"), Running(A, minutes, COUNT, lit(False))) == 2
    assert horizon(col("n"), Aggregate(A, minutes, COUNT)) is None


def test_it_goes_through_streams_by_name() -> None:
    below = Project(A, named(tb=col("ts")))
    assert horizon(col("tb"), read("below", below), below=below) == 25


def test_a_merge_reaches_as_far_as_its_furthest_input() -> None:
    assert horizon(col("ts"), Merge((A, B), "ts")) == 99


def test_a_joined_column_reaches_as_far_as_what_fills_it() -> None:
    same = ((col("ts"), col("us")),)
    assert horizon(col("ts"), Join(A, B, "full", same)) == 25
    assert horizon(col("ts"), Join(A, B, "full", same, fills=named(ts=col("us")))) == 99
    assert horizon(col("us"), Join(A, B, "full", same)) == 99


def test_constants_and_watch_lists_have_none() -> None:
    assert horizon(lit(1), A) is None
    watch = Lookup("w", "w.csv", fields(k=Type.INT))
    assert horizon(col("k"), watch) is None
