"""Which columns are ordered, and how (dissertation 3.1), asked of real queries."""

from __future__ import annotations

import pytest

from terascope.analysis.order import plan_orders
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set

PROTOCOL = (
    "PROTOCOL S (ts UINT increasing clock(s), fine ULLONG increasing clock(ns), "
    "seq UINT strictly_increasing, back INT decreasing, late UINT banded_increasing(10), x INT);"
)


def orders(query: str, name: str = "q") -> dict[str, str]:
    """The ordered visible columns of a stream, as explain shows them."""
    compiled = compile_set(Source(f"{PROTOCOL}\n{query}"))
    known = plan_orders(compiled.plan)[name]
    return {n: str(o) for n, o in known.items() if not n.startswith("#")}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ts", "increasing, clock(s)"),
        ("seq", "strictly increasing"),
        ("ts + 5", "increasing"),
        ("ts / 60", "increasing"),
        ("seq / 60", "increasing"),
        ("ts * 3", "increasing"),
        ("ts * -1", "decreasing"),
        ("100 - ts", "decreasing"),
        ("-ts", "decreasing"),
        ("ts + seq", "increasing"),
        ("ts - back", "increasing"),
        ("back - ts", "decreasing"),
        ("back / -2", "increasing"),
        ("ts >> 4", "increasing"),
        ("CAST(ts AS FLOAT)", "increasing, clock(s)"),
        ("ts / 2.5", "increasing"),
        ("late", "increasing within 10"),
        ("late + 1", "increasing within 10"),
        ("late * 4", "increasing within 40"),
        ("late / 60", "increasing within 1"),
        ("late + ts", "increasing within 10"),
    ],
)
def test_an_expression_moves_with_its_columns(expression: str, expected: str) -> None:
    found = orders(f"QUERY q: SELECT {expression} AS moved FROM S;")["moved"]
    assert found.removeprefix("strictly ") == expected.removeprefix("strictly ")


@pytest.mark.parametrize(
    "expression",
    ["x", "ts + x", "ts * x", "ts * ts", "ts % 60", "ts - seq", "x / 60", "non_temporal(ts)",
     "CASE WHEN x > 0 THEN ts ELSE 0 END", "ts & 255", "60 / ts", "CAST(ts AS STRING)"],
)  # fmt: skip
def test_anything_else_is_unordered(expression: str) -> None:
    assert "moved" not in orders(f"QUERY q: SELECT {expression} AS moved FROM S;")


def test_strictness_survives_a_shift_but_not_a_division() -> None:
    found = orders("QUERY q: SELECT seq + 1 AS up, seq / 2 AS half FROM S;")
    assert found == {"up": "strictly increasing", "half": "increasing"}


def test_an_aggregation_keeps_its_ordered_keys_and_settles_disorder() -> None:
    found = orders("QUERY q: SELECT tb, x, count(*) FROM S GROUP BY late/5 AS tb, x;")
    assert found == {"tb": "increasing"}


def test_a_key_missing_from_a_grouping_set_is_not_ordered() -> None:
    text = "QUERY q: SELECT a, b, count(*) FROM S GROUP BY ts/5 AS a, CUBE(ts/10 AS b, x);"
    assert orders(text) == {"a": "increasing"}


def test_a_join_keeps_the_fields_of_its_temporal_condition_only() -> None:
    text = (
        "QUERY a: SELECT ts/10 AS tb, max(seq) AS m, count(*) AS n FROM S GROUP BY ts/10 AS tb;"
        "QUERY q: SELECT x.tb, y.tb AS other, x.m FROM a x JOIN a y ON x.tb = y.tb + 1;"
    )
    assert orders(text) == {"tb": "increasing", "other": "increasing"}


def test_a_band_join_keeps_the_clock_of_its_left_side() -> None:
    text = (
        "QUERY q: SELECT x.ts, y.ts AS other FROM S x JOIN S y "
        "ON x.x = y.x AND y.ts BETWEEN x.ts - 3 AND x.ts + 5;"
    )
    assert list(orders(text)) == ["ts"]


def test_a_merge_is_as_late_as_its_latest_input() -> None:
    parts = "FROM (SELECT seq AS s, x FROM one.S) a, (SELECT late AS s, x FROM two.S) b"
    assert orders(f"QUERY q: MERGE a.s : b.s {parts};") == {"s": "increasing within 10"}
    assert orders(f"QUERY q: MERGE a.s : b.s SLACK 2 {parts};") == {"s": "increasing within 12"}
    parts = "FROM (SELECT back AS s, x FROM one.S) a, (SELECT -late AS s, x FROM two.S) b"
    assert orders(f"QUERY q: MERGE a.s : b.s {parts};") == {"s": "decreasing within 10"}


def test_a_merge_of_a_clock_and_another_field_is_no_clock() -> None:
    parts = "FROM (SELECT ts AS s, x FROM one.S) a, (SELECT seq AS s, x FROM two.S) b"
    assert orders(f"QUERY q: MERGE a.s : b.s {parts};") == {"s": "increasing"}
    # The second column is a clock of one input only: it is not ordered by the first.
    parts = (
        "FROM (SELECT fine AS s, ts AS t FROM one.S) a, (SELECT fine AS s, seq AS t FROM two.S) b"
    )
    assert orders(f"QUERY q: MERGE a.s : b.s {parts};") == {"s": "increasing, clock(ns)"}


def test_a_merge_keeps_its_field_and_every_coarser_clock() -> None:
    text = "QUERY q: MERGE a.fine : b.fine FROM one.S a, two.S b;"
    assert set(orders(text)) == {"ts", "fine"}
    text = "QUERY q: MERGE a.ts : b.ts SLACK 4 FROM one.S a, two.S b;"
    assert orders(text) == {"ts": "increasing within 4, clock(s)"}


def test_windows_order_their_edges() -> None:
    sliding = orders("QUERY q: SELECT ts, x FROM S [RANGE 10 SLIDE 5];")
    assert sliding == {"wstart": "increasing, clock(s)", "wend": "increasing, clock(s)"}
    tumbling = orders("QUERY q: SELECT ts, x FROM S [RANGE 5 SLIDE 5];")
    assert set(tumbling) == {"ts", "wstart", "wend"}


def test_several_interfaces_keep_only_clocks_in_order() -> None:
    assert set(orders("QUERY q: SELECT ts, seq FROM one.S;")) == {"ts", "seq"}
    text = f"{PROTOCOL}\nQUERY q: SELECT ts, seq FROM [both].S;"
    compiled = compile_set(Source(text), Bindings(sets={"both": ("one", "two")}))
    assert [n for n in plan_orders(compiled.plan)["q"] if not n.startswith("#")] == ["ts"]
