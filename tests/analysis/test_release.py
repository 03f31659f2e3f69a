"""Where rows are let go, by which value, and that all of them are in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.analysis.moving import ALL, earlier
from terascope.analysis.order import Trees
from terascope.analysis.release import Release, release_of
from terascope.plan.build import call
from terascope.plan.expr import Col, Expr, Lit
from terascope.plan.plan import Plan, Stream
from terascope.plan.rel import Aggregate, Project, Rank, Scan, walk
from terascope.plan.show import show_expr
from terascope.types import Type
from tests.analysis.arrivals import Arrivals, Cut, plan_of, the_end
from tests.analysis.stream_sets import (
    EPOCHS,
    PROTOCOL,
    QUERIES,
    random_arrivals,
    random_cuts,
    special_arrivals,
)

ORDERED = PROTOCOL.format(order="increasing")
TB = Col("tb", Type.UINT)


def release(text: str, folder: Path) -> Release:
    return release_of("q", Trees.of_plan(plan_of(f"{ORDERED}\n{text}", folder)))


def values(found: Release) -> list[str]:
    return [show_expr(part.value) for part in found.parts]


@pytest.mark.parametrize(
    ("name", "node", "expected"),
    [
        # The key that closes groups; the end of windows.
        ("several_keys", "Aggregate", ["tb"]),
        ("overlapping", "Aggregate", ["wend"]),
        ("empty_windows", "Aggregate", ["wend"]),
        ("running", "Running", ["tb"]),
        # A LIMIT counts the rows of a window together.
        ("window_top", "Window", ["wend"]),
        ("window_tuples", "Window", ["wend"]),
        ("merge_alone", "Merge", ["ts"]),
        # Of a join, the side that always tells the time.
        ("INNER_shifted", "Join", ["x.tb"]),
        ("RIGHT_halved", "Join", ["y.tb + 1"]),
        ("FULL_halved", "Join", ["y.tb + 1"]),
        ("FULL_both_halved", "Join", ["coalesce(x.tb DIV 2, y.tb DIV 3)"]),
        ("FULL_halved_default", "Join", ["y.tb + 1"]),
        ("LEFT_band", "Join", ["x.ts"]),
        ("RIGHT_band", "Join", ["y.ts"]),
        ("FULL_band", "Join", ["x.ts", "y.ts"]),
        ("filter_join", "Join", ["x.ts"]),
        # A table has no time: the tuples are let go by theirs, unless the table has rows alone.
        ("table_tuples", "Scan", ["ts"]),
        ("table_outer", "Join", ["x.ts"]),
    ],
)
def test_rows_are_let_go_by(name: str, node: str, expected: list[str], tmp_path: Path) -> None:
    plan, _ = special_arrivals(name, 0, tmp_path)
    found = release_of("q", Trees.of_plan(plan))
    assert (found.kind, type(found.node).__name__, values(found)) == ("ordered", node, expected)


def test_tuples_are_let_go_by_their_finest_clock_when_they_carry_it(tmp_path: Path) -> None:
    text = "QUERY low: SELECT ts, b FROM left.S; QUERY q: SELECT last(b) FROM low EVERY 5;"
    trees = Trees.of_plan(plan_of(f"{ORDERED}\n{text}", tmp_path))
    found = release_of("low", trees)
    assert isinstance(found.node, Scan)
    assert values(found) == ["#ts"]


def test_streams_that_only_choose_are_looked_through_up_to_the_leaves(tmp_path: Path) -> None:
    text = EPOCHS + (
        "QUERY some: SELECT tb, n FROM xs WHERE n > 1;"
        "QUERY q: SELECT tb, n + 1 AS m FROM some WHERE n < 9;"
    )
    trees = Trees.of_plan(plan_of(f"{ORDERED}\n{text}", tmp_path))
    found = release_of("q", trees)
    assert found.stream == "xs"
    assert isinstance(found.node, Aggregate)
    kept = release_of("q", trees, leaves={"some"})
    assert (kept.stream, values(kept)) == ("q", ["tb"])


def test_decreasing_values_are_let_go_downwards(tmp_path: Path) -> None:
    found = release(f"{QUERIES['turned']};", tmp_path)
    assert [part.descending for part in found.parts] == [True]


def test_the_two_parts_of_a_full_band_join_share_its_rows(tmp_path: Path) -> None:
    found = release(f"{QUERIES['FULL_band']};", tmp_path)
    only = [show_expr(part.only) for part in found.parts if part.only is not None]
    assert only == ["NOT x.ts IS NULL", "x.ts IS NULL"]


@pytest.mark.parametrize("name", ["FULL_both_halved_default", "FULL_band_default"])
def test_a_join_whose_missing_sides_look_present_waits_for_the_end(
    name: str, tmp_path: Path
) -> None:
    found = release(f"{QUERIES[name]};", tmp_path)
    assert (found.kind, found.parts) == ("at_end", ())


def test_without_order_rows_are_let_go_at_once(tmp_path: Path) -> None:
    assert release(f"{QUERIES['unordered']};", tmp_path).kind == "at_once"


def test_a_limit_over_the_whole_stream_waits_for_the_end(tmp_path: Path) -> None:
    plan = plan_of(f"{ORDERED}{EPOCHS}", tmp_path)
    groups = plan["xs"].rel
    first = Rank(groups, (), ((Lit(1, Type.INT), False),), 3)
    trees = Trees.of_plan(Plan((*plan.streams, Stream("q", first))))
    assert release_of("q", trees).kind == "at_end"
    sorted_only = Rank(groups, (), ((Lit(1, Type.INT), False),), None)
    trees = Trees.of_plan(Plan((*plan.streams, Stream("q", sorted_only))))
    assert release_of("q", trees).kind == "ordered"


def test_a_limit_per_another_key_chooses_the_value_it_counts_by(tmp_path: Path) -> None:
    """Rows that a LIMIT counts together must be let go together."""
    plan = plan_of(f"{ORDERED}{QUERIES['several_keys']};", tmp_path)
    groups = next(r for r in walk(plan["q"].rel) if isinstance(r, Aggregate))
    for per, kind, expected in (
        (("m",), "ordered", ["m"]),
        (("tb", "m"), "ordered", ["tb"]),
        (("count(*)",), "at_end", []),
    ):
        ranked = Rank(groups, per, ((call("neg", Lit(1, Type.INT)), False),), 1)
        found = release_of("r", Trees.of_plan(Plan((Stream("r", ranked),))))
        assert (found.kind, values(found)) == (kind, expected)


@pytest.mark.parametrize(
    ("beginning", "kind"),
    [
        (call("*", TB, Lit(60, Type.INT)), "ordered"),
        (call("+", call("*", TB, Lit(60, Type.INT)), Lit(60, Type.INT)), "ordered"),
        (call("div", TB, Lit(1, Type.INT)), "ordered"),
        (call("div", TB, Lit(2, Type.INT)), "at_end"),
        (call("*", TB, Lit(0, Type.INT)), "at_end"),
    ],
    ids=["scaled", "shifted", "itself", "halved", "nothing"],
)
def test_a_limit_counts_by_what_is_computed_of_an_epoch(
    beginning: Expr, kind: str, tmp_path: Path
) -> None:
    """Tumbling windows are epochs whose beginnings are computed above them."""
    plan = plan_of(f"{ORDERED}{EPOCHS}", tmp_path)
    made = Project(plan["xs"].rel, (("wstart", beginning),))
    first = Rank(made, ("wstart",), ((Lit(1, Type.INT), False),), 3)
    trees = Trees.of_plan(Plan((*plan.streams, Stream("q", first))))
    assert release_of("q", trees).kind == kind


@pytest.mark.parametrize("seed", range(6), ids=lambda s: f"seed-{s}")
def test_release_goes_on_with_the_stream_and_ends_with_all(seed: int, tmp_path: Path) -> None:
    plan, tables = random_arrivals(seed, tmp_path)
    arrivals = Arrivals.of(plan, tables, split=seed % 2 == 0)
    heard = Cut({name: len(rows) for name, rows in tables.items()})
    for name, found in arrivals.releases.items():
        old: tuple[object, ...] = (None,) * len(found.parts)
        for cut in random_cuts(seed, tables):
            new = arrivals.reached(name, cut)
            for part, was, now in zip(found.parts, old, new, strict=True):
                assert not earlier(now, was, part.trend), f"{name} went back from {was} to {now}"
            old = new
        assert all(value is ALL for value in arrivals.reached(name, the_end(tables)))
        # Before the end too, all that can be told is told: every stream has moved.
        assert None not in arrivals.reached(name, heard), f"{name} was never let go before the end"
