from __future__ import annotations

import pytest

from terascope.plan.expr import Expr
from terascope.plan.rel import Aggregate, Filter, Running
from terascope.reference.rows import Row
from tests.oracle.agreement import rows_of
from tests.oracle.build import agg, aggs, call, col, ints, lit, named, records
from tests.oracle.duckdb_session import Unsupported

T = ints("t", names="ts k x")
EPOCH = call("div", col("ts"), 10)
NEVER = lit(False)


def running(closing: Expr, *rows: tuple[int | None, int | None, int | None]) -> list[Row]:
    rel = Running(
        T,
        named(tb=EPOCH, k=col("k")),
        aggs(n=agg("count"), total=agg("running_sum", col("x"))),
        closing,
    )
    return rows_of(rel, {"t": records("ts k x", *rows)})


def test_a_group_gives_a_row_for_every_epoch_up_to_the_horizon() -> None:
    assert running(NEVER, (5, 1, 2), (25, 1, 3), (41, 2, 7)) == [
        (0, 1, 1, 2),
        (1, 1, 0, 2),
        (2, 1, 1, 5),
        (3, 1, 0, 5),
        (4, 1, 0, 5),
        (4, 2, 1, 7),
    ]


def test_running_aggregates_go_on_and_the_others_restart() -> None:
    assert running(NEVER, (0, 1, 1), (1, 1, 1), (10, 1, 1)) == [(0, 1, 2, 2), (1, 1, 1, 3)]


def test_a_group_closes_and_is_born_again_without_its_past() -> None:
    closed_when_silent = call("=", col("n"), 0)
    assert running(closed_when_silent, (1, 1, 2), (31, 1, 3), (61, 9, 0)) == [
        (0, 1, 1, 2),
        (1, 1, 0, 2),  # silent: closes
        (3, 1, 1, 3),  # born again
        (4, 1, 0, 3),
        (6, 9, 1, 0),
    ]


def test_a_group_that_closes_in_its_last_epoch_still_gives_that_row() -> None:
    enough = call(">", col("total"), 4)
    assert running(enough, (1, 1, 3), (11, 1, 3), (21, 1, 3), (22, 1, 0)) == [
        (0, 1, 1, 3),
        (1, 1, 1, 6),
        (2, 1, 2, 3),
    ]


def test_closing_that_is_null_does_not_close() -> None:
    rel = Running(
        T,
        named(tb=EPOCH),
        aggs(high=agg("max", col("x")), n=agg("running_count")),
        call(">", col("high"), 4),
    )
    tables = {"t": records("ts k x", (1, 1, None), (11, 1, 5), (21, 1, 1))}
    assert rows_of(rel, tables) == [(0, None, 1), (1, 5, 2), (2, 1, 1)]


def test_null_is_a_group_but_no_epoch() -> None:
    assert running(NEVER, (1, None, 1), (11, None, 1), (None, 1, 1)) == [
        (0, None, 1, 1),
        (1, None, 1, 2),
    ]


def test_epochs_before_zero() -> None:
    assert running(NEVER, (-11, 1, 1), (5, 1, 1)) == [(-2, 1, 1, 1), (-1, 1, 0, 1), (0, 1, 1, 2)]


def test_no_tuple_no_row() -> None:
    assert running(NEVER) == []


def test_tuples_that_are_filtered_away_still_move_time() -> None:
    kept = Filter(T, call("=", col("k"), 1))
    rel = Running(kept, named(tb=EPOCH), aggs(n=agg("count")), NEVER)
    tables = {"t": records("ts k x", (1, 1, 0), (39, 2, 0))}
    assert rows_of(rel, tables) == [(0, 1), (1, 0), (2, 0), (3, 0)]


def test_an_epoch_without_a_known_horizon_ends_with_the_last_tuple() -> None:
    # `tb` is an aggregate below: nothing says how far it would have gone.
    inner = Aggregate(T, named(k=col("k")), aggs(tb=agg("max", col("ts"))))
    rel = Running(inner, named(tb=col("tb"), k=col("k")), aggs(n=agg("count")), NEVER)
    tables = {"t": records("ts k x", (1, 1, 0), (3, 2, 0))}
    assert rows_of(rel, tables) == [(1, 1, 1), (2, 1, 0), (3, 1, 0), (3, 2, 1)]


def test_aggregates_with_a_memory_of_their_own() -> None:
    rel = Running(
        T,
        named(tb=EPOCH),
        aggs(
            recent=agg("moving_sum", col("x"), parameters=[2]),
            again=agg("count_dups", col("x")),
            differ=agg("count", col("x"), distinct=True),
        ),
        NEVER,
    )
    tables = {"t": records("ts k x", (1, 0, 1), (11, 0, 1), (12, 0, 2), (31, 0, 2))}
    with pytest.raises(Unsupported, match="running aggregate moving_sum"):
        rows_of(rel, tables)
    assert rows_of(rel, tables, in_duckdb=False) == [
        (0, 1, 0, 1),
        (1, 4, 1, 2),
        (2, 3, 1, 0),
        (3, 2, 2, 1),
    ]
