from __future__ import annotations

import pytest

from terascope.functions.base import ValueMistake
from terascope.plan.rel import Aggregate, Slices, Sliding, Window
from terascope.reference.interpreter import evaluate
from terascope.types import INT_MAX, Type
from tests.oracle.agreement import rows_of
from tests.oracle.build import agg, aggs, call, col, columns, ints, named, plan, records, scan
from tests.reference.memory_sources import MemorySources

NAN = float("nan")
T = ints("t", names="ts k x")
COUNT = aggs(n=agg("count"))


def test_count_and_sum_by_key() -> None:
    rel = Aggregate(T, columns(T, "k"), aggs(n=agg("count"), total=agg("sum", col("x"))))
    tables = {"t": records("ts k x", (1, 1, 10), (2, 2, 20), (3, 1, 5))}
    assert rows_of(rel, tables) == [(1, 2, 15), (2, 1, 20)]


def test_keys_may_be_expressions() -> None:
    rel = Aggregate(T, named(tb=call("div", col("ts"), 60)), COUNT)
    tables = {"t": records("ts k x", (-1, 0, 0), (59, 0, 0), (0, 0, 0), (60, 0, 0))}
    assert rows_of(rel, tables) == [(-1, 1), (0, 2), (1, 1)]


def test_nulls_are_one_group_and_are_not_aggregated() -> None:
    rel = Aggregate(
        T,
        columns(T, "k"),
        aggs(
            n=agg("count"),
            n_x=agg("count", col("x")),
            total=agg("sum", col("x")),
            low=agg("min", col("x")),
            high=agg("max", col("x")),
            mean=agg("avg", col("x")),
        ),
    )
    tables = {
        "t": records("ts k x", (1, None, 1), (2, None, None), (3, None, 4), (4, 7, None)),
    }
    assert rows_of(rel, tables) == [(7, 1, 0, None, None, None, None), (None, 3, 2, 5, 1, 4, 2.5)]


def test_nan_is_one_group_and_the_largest_number() -> None:
    source = scan("t", ts=Type.INT, k=Type.FLOAT)
    rel = Aggregate(source, columns(source, "k"), COUNT)
    tables = {"t": records("ts k", (1, float("nan")), (2, float("nan")), (3, 0.0), (4, -0.0))}
    (zero, zeros), (nan, nans) = rows_of(rel, tables)
    assert (zero, zeros, nans) == (0.0, 2, 2)
    assert nan != nan
    largest = Aggregate(source, (), aggs(m=agg("max", col("k", Type.FLOAT))))
    ((value,),) = rows_of(largest, tables)
    assert value != value


def test_no_tuple_no_row_even_without_keys() -> None:
    assert rows_of(Aggregate(T, (), COUNT), {"t": []}) == []
    assert rows_of(Aggregate(T, (), COUNT), {"t": records("ts k x", (1, 1, 1))}) == [(1,)]


def test_distinct_arguments_count_once() -> None:
    rel = Aggregate(
        T,
        columns(T, "k"),
        aggs(
            n=agg("count", col("x"), distinct=True),
            total=agg("sum", col("x"), distinct=True),
        ),
    )
    tables = {
        "t": records("ts k x", (1, 1, 5), (2, 1, 5), (3, 1, None), (4, 1, 6), (5, 2, None)),
    }
    assert rows_of(rel, tables) == [(1, 2, 11), (2, 0, None)]


def test_first_and_last_follow_the_stream_not_the_table() -> None:
    source = scan("b", "a", ts=Type.INT, k=Type.INT, x=Type.INT)
    rel = Aggregate(
        source,
        columns(source, "k"),
        aggs(first=agg("first", col("x")), last=agg("last", col("x"))),
    )
    tables = {
        # The same time: interface a stands before b, then the position decides.
        "a": records("ts k x", (5, 1, 50), (1, 1, None), (9, 2, 90), (9, 2, 91)),
        "b": records("ts k x", (2, 1, 20), (5, 1, 55), (9, 2, 92)),
    }
    assert rows_of(rel, tables) == [(1, 20, 55), (2, 90, 92)]


def test_sum_of_integers_overflows_loudly() -> None:
    rel = Aggregate(T, (), aggs(total=agg("sum", col("x"))))
    tables = {"t": records("ts k x", (1, 1, INT_MAX), (2, 1, 1))}
    with pytest.raises(ValueMistake, match="integer overflow"):
        evaluate(plan(out=rel), MemorySources(tables))


def test_grouping_sets_are_a_union_with_the_other_keys_null() -> None:
    rel = Aggregate(
        T, columns(T, "ts k"), aggs(total=agg("sum", col("x"))), sets=(("ts", "k"), ("ts",), ())
    )
    tables = {"t": records("ts k x", (1, 1, 10), (1, 2, 20), (2, 1, 40), (2, None, 80))}
    assert rows_of(rel, tables) == [
        (1, 1, 10),
        (1, 2, 20),
        (1, None, 30),
        (2, 1, 40),
        (2, None, 80),  # the group k = NULL of (ts, k)
        (2, None, 120),  # the set (ts)
        (None, None, 150),
    ]


def test_a_set_named_twice_gives_its_rows_twice() -> None:
    rel = Aggregate(T, columns(T, "k"), COUNT, sets=(("k",), ("k",)))
    assert rows_of(rel, {"t": records("ts k x", (1, 3, 0))}) == [(3, 1), (3, 1)]


def windowed(spec: Sliding | Slices, *times: int) -> list[tuple[object, ...]]:
    source = Window(ints("t", names="ts x"), spec, "ts")
    calls = aggs(n=agg("count"), total=agg("sum", col("x")))
    rel = Aggregate(source, columns(source, "wstart wend"), calls, emit_empty=spec)
    return rows_of(rel, {"t": records("ts x", *((t, 1) for t in times))})


def test_empty_windows_between_the_first_and_the_last() -> None:
    assert windowed(Sliding(2, 2), 1, 7, -3) == [
        (-4, -2, 1, 1),
        (-2, 0, 0, None),
        (0, 2, 1, 1),
        (2, 4, 0, None),
        (4, 6, 0, None),
        (6, 8, 1, 1),
    ]
    assert windowed(Sliding(2, 2)) == []
    assert windowed(Sliding(2, 2), 1) == [(0, 2, 1, 1)]


def test_empty_overlapping_windows() -> None:
    assert windowed(Sliding(3, 2), 0, 9) == [
        (-1, 2, 1, 1),
        (1, 4, 0, None),
        (3, 6, 0, None),
        (5, 8, 0, None),
        (7, 10, 1, 1),
        (9, 12, 1, 1),
    ]


def test_empty_slices() -> None:
    assert windowed(Slices((3, 1)), -1, 6) == [
        (-1, 0, 1, 1),
        (0, 3, 0, None),
        (3, 4, 0, None),
        (4, 7, 1, 1),
    ]


def test_empty_epochs() -> None:
    rel = Aggregate(T, named(tb=col("ts")), COUNT, emit_empty="epoch")
    tables = {"t": records("ts k x", (3, 0, 0), (6, 0, 0), (6, 0, 0), (None, 0, 0))}
    assert rows_of(rel, tables) == [(3, 1), (4, 0), (5, 0), (6, 2), (None, 1)]
