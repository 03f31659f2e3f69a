from __future__ import annotations

from terascope.plan.rel import Rank
from terascope.reference.rows import Row
from terascope.types import Type
from tests.oracle.agreement import rows_of
from tests.oracle.build import call, col, ints, records, scan

T = ints("t", names="w x id")
TABLE = records("w x id", (1, 5, 1), (1, 7, 2), (1, 7, 3), (1, None, 4), (2, 1, 5), (2, 1, 6))


def ranked(descending: bool, limit: int | None) -> list[Row]:
    order = ((col("x"), descending), (col("id"), False))
    return rows_of(Rank(T, ("w",), order, limit), {"t": TABLE})


def test_the_first_rows_of_each_window() -> None:
    assert ranked(False, 2) == [(1, 5, 1), (1, 7, 2), (2, 1, 5), (2, 1, 6)]
    assert ranked(False, 1) == [(1, 5, 1), (2, 1, 5)]


def test_null_counts_as_the_largest() -> None:
    assert ranked(True, 1) == [(1, None, 4), (2, 1, 5)]
    assert ranked(False, 3) == [(1, 5, 1), (1, 7, 2), (1, 7, 3), (2, 1, 5), (2, 1, 6)]


def test_ties_go_to_the_tie_breaker() -> None:
    assert ranked(True, 2) == [(1, 7, 2), (1, None, 4), (2, 1, 5), (2, 1, 6)]


def test_without_a_limit_all_rows_stay_and_zero_takes_none() -> None:
    assert len(ranked(True, None)) == len(TABLE)
    assert ranked(True, 0) == []


def test_order_by_an_expression_over_everything() -> None:
    rel = Rank(T, (), ((call("neg", col("id")), False),), 2)
    assert rows_of(rel, {"t": TABLE}) == [(2, 1, 5), (2, 1, 6)]


def test_nan_is_above_all_numbers_and_below_null() -> None:
    source = scan("t", x=Type.FLOAT)
    rel = Rank(source, (), ((col("x", Type.FLOAT), True),), 2)
    tables = {"t": records("ts x", (0, 1.0), (1, float("nan")), (2, None), (3, float("inf")))}
    (nan, *_), (null, *_) = rows_of(rel, tables)
    assert nan != nan
    assert null is None
