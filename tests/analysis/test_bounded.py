"""What lets an operator forget: closing keys and join bounds."""

from __future__ import annotations

import pytest

from terascope.analysis.bounded import join_bound
from terascope.analysis.order import column_orders, plan_orders
from terascope.diagnostic import QueryError, Source
from terascope.pipeline import compile_set
from terascope.plan.rel import Join, walk

PROTOCOL = "PROTOCOL S (ts UINT increasing clock(s), back INT decreasing, x INT, y INT);"


def bound(query: str) -> str:
    """The temporal condition of the one join of a query."""
    plan = compile_set(Source(f"{PROTOCOL}\nQUERY q: {query};")).plan
    streams = plan_orders(plan)
    join = next(r for r in walk(plan["q"].rel) if isinstance(r, Join))
    left, right = column_orders(join.left, streams), column_orders(join.right, streams)
    return str(join_bound(join, left, right))


def codes(query: str) -> tuple[str, ...]:
    with pytest.raises(QueryError) as caught:
        compile_set(Source(f"{PROTOCOL}\nQUERY q: {query};"))
    return caught.value.codes


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.x = b.x AND a.ts = b.ts", "a.ts = b.ts"),
        ("a.ts = b.ts + 1", "a.ts = b.ts + 1"),
        ("a.ts/2 = b.ts + 1", "a.ts DIV 2 = b.ts + 1"),
        ("b.ts = a.ts", "a.ts = b.ts"),
        ("a.back = b.back AND a.x = b.x", "a.back = b.back"),
        ("b.ts BETWEEN a.ts - 3 AND a.ts + 5", "b.ts - a.ts in [-3, 5]"),
        ("a.ts <= b.ts AND b.ts - a.ts < 10", "b.ts - a.ts in [0, 10]"),
        ("a.ts - b.ts <= 4 AND b.ts - a.ts <= 2 AND a.x = b.x", "b.ts - a.ts in [-4, 2]"),
        ("abs(a.ts - b.ts) <= 3", "b.ts - a.ts in [-3, 3]"),
        ("abs(b.ts - a.ts + 1) < 3 AND a.x = b.x", "b.ts - a.ts in [-4, 2]"),
        ("7 >= abs(a.ts - b.ts)", "b.ts - a.ts in [-7, 7]"),
        ("abs(a.ts - b.ts) <= 9 AND a.ts <= b.ts", "b.ts - a.ts in [0, 9]"),
        (
            "abs(a.ts - b.ts) = 9000000000000000001",
            "b.ts - a.ts in [-9000000000000000001, 9000000000000000001]",
        ),
        ("a.ts >= b.ts - 2 AND a.ts <= b.ts + 6", "b.ts - a.ts in [-6, 2]"),
    ],
)
def test_what_bounds_a_join(condition: str, expected: str) -> None:
    assert bound(f"SELECT a.x FROM S a, S b WHERE {condition}") == expected


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ("S a [RANGE 10], S b", "b.ts - a.ts in [0, 10]"),
        ("S a, S b [RANGE 10]", "b.ts - a.ts in [-10, 0]"),
        ("S a [RANGE '1 min' ON ts], S b [RANGE 4]", "b.ts - a.ts in [-4, 60]"),
    ],
)
def test_a_window_without_slide_bounds_a_join(inputs: str, expected: str) -> None:
    assert bound(f"SELECT a.x FROM {inputs} WHERE a.x = b.x") == expected


def test_a_window_of_a_join_needs_clocks_of_one_unit() -> None:
    fine = "(SELECT ts * 1000 AS ts, x FROM S)"
    assert codes(f"SELECT a.x FROM S a [RANGE 10], {fine} b WHERE a.x = b.x") == ("no-clock",)


@pytest.mark.parametrize(
    "condition",
    ["a.x = b.x", "a.ts <= b.ts", "a.ts = b.x", "a.ts = b.back", "a.ts < b.ts + 5",
     "b.ts > a.ts - 5 AND a.x = b.x", "abs(a.ts - b.ts) >= 5", "abs(a.ts - b.ts) <= a.x",
     "abs(a.x - b.x) <= 5", "NOT abs(a.ts - b.ts) <= 5", "abs(a.ts + b.ts) <= 5"],
)  # fmt: skip
def test_an_unbounded_join_is_refused(condition: str) -> None:
    assert codes(f"SELECT a.x FROM S a, S b WHERE {condition}") == ("unbounded-join",)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x, count(*) FROM S GROUP BY x",
        "SELECT count(*) FROM S",
        "SELECT DISTINCT x FROM S",
        "SELECT x, count(*) FROM S GROUP BY CUBE(ts/10, x)",
        "SELECT ts % 10, count(*) FROM S GROUP BY ts % 10",
        "SELECT x, count(*) FROM S GROUP BY x CLOSING_WHEN count(*) = 0",
    ],
)
def test_an_unbounded_group_by_is_refused(query: str) -> None:
    assert codes(query) == ("unbounded-group-by",)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x, count(*) FROM S GROUP BY x EVERY 10 sec",
        "SELECT count(*) FROM S [RANGE 10 SLIDE 5]",
        "SELECT back, count(*) FROM S GROUP BY back",
        "SELECT DISTINCT ts, x FROM S",
        "SELECT x, count(*) FROM S GROUP BY ts/10, CUBE(x, y)",
    ],
)
def test_a_bounded_group_by_is_not(query: str) -> None:
    assert compile_set(Source(f"{PROTOCOL}\nQUERY q: {query};")).plan["q"].visible
