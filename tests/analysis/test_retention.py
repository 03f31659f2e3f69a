"""Which rows must be kept: by hand, and against the reference for any set."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from terascope.analysis.moving import ALL
from terascope.analysis.order import Trees
from terascope.analysis.release import release_of
from terascope.analysis.retention import RetentionBounds, retention_columns
from terascope.diagnostic import Source
from terascope.functions.base import Value
from terascope.physical.split.split_plan import split_plan
from terascope.pipeline import compile_set
from terascope.plan.rel import Scan
from tests.analysis.arrivals import Arrivals, Cut, plan_of, the_end
from tests.analysis.stream_sets import PROTOCOL, QUERIES, random_arrivals, special_arrivals
from tests.oracle.compare import assert_same_rows

ORDERED = PROTOCOL.format(order="increasing")


def needed(text: str, value: Value, folder: Path) -> dict[str, Value]:
    """By interface, when rows of `q` were let go up to a value."""
    trees = Trees.of_plan(plan_of(f"{ORDERED}\n{text}", folder))
    release = release_of("q", trees)
    kept_by = retention_columns([release], trees)
    found = RetentionBounds(trees, (), kept_by).after_release(
        release, (value,) * len(release.parts)
    )
    return {"+".join(leaf.interfaces): v for leaf, v in found.items() if isinstance(leaf, Scan)}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("decreasing", -3, {"left": -15}),
        ("turned", -3, {"left": 21}),
        # [t-12, t) of [t-4, t): elements that begin at 28.
        ("windows", 40, {"left": 28}),
        # Slices of 9 and 12: those that end at 40 or later begin with [30, 42).
        ("overlapping", 40, {"left": 30}),
        ("window_tuples", 40, {"left": 31}),
        # Epochs of 5; x.tb = y.tb + 1.
        ("FULL_shifted", 10, {"left": 50, "right": 45}),
        ("FULL_halved", 10, {"left": 100, "right": 45}),
        # y.ts is within [x.ts - 3, x.ts + 2].
        ("LEFT_band", 40, {"left": 40, "right": 37}),
        ("RIGHT_band", 40, {"left": 38, "right": 40}),
        ("FULL_band", 40, {"left": 38, "right": 37}),
        ("filter_join", 40, {"left": 40, "right": 37}),
        ("merge_alone", 40, {"left": 40, "right": 40}),
        ("top_of_top", 4, {"left": 40}),
        ("table", 5, {"left": 30}),
        # Whole histories: rows without time, groups that live on, gaps, two columns in one value.
        ("table_outer", 5, {"left": None}),
        ("above_full_band", 5, {"left": None, "right": None}),
        ("above_full_join", 5, {"left": None, "right": None}),
        ("above_running", 5, {"left": None}),
        ("above_empty", 5, {"left": None}),
        ("two_columns", 5, {"left": None}),
    ],
)
def test_rows_before_the_bound_are_not_needed(
    name: str, value: Value, expected: dict[str, Value], tmp_path: Path
) -> None:
    plan, _ = special_arrivals(name, 0, tmp_path)
    assert plan["q"].visible
    assert needed(f"{QUERIES[name]};", value, tmp_path) == expected


def test_a_leaf_read_twice_is_kept_for_both_readings(tmp_path: Path) -> None:
    text = (
        "QUERY e: SELECT tb, count(*) AS n FROM left.S GROUP BY ts/10 AS tb;"
        "QUERY q: SELECT x.tb, x.n, y.n AS m FROM e x JOIN e y ON x.tb = y.tb + 3;"
    )
    assert needed(text, 8, tmp_path) == {"left": 50}


def test_nothing_is_needed_after_the_end_and_all_before_the_beginning(tmp_path: Path) -> None:
    assert needed(f"{QUERIES['LEFT_band']};", ALL, tmp_path) == {"left": ALL, "right": ALL}
    assert needed(f"{QUERIES['LEFT_band']};", None, tmp_path) == {"left": None, "right": None}
    assert needed(f"{QUERIES['unordered']};", None, tmp_path) == {"left": ALL}
    assert needed(f"{QUERIES['FULL_band_default']};", 5, tmp_path) == {"left": None, "right": None}


def test_two_clocks_of_a_packet_are_one_time() -> None:
    text = "QUERY q: SELECT tb, srcIP, last(len) FROM TCP GROUP BY time/60 AS tb, srcIP;"
    trees = Trees.of_plan(compile_set(Source(text)).optimized)
    assert [*RetentionBounds(trees).after_release(release_of("q", trees), (3,)).values()] == [
        180 * 10**9
    ]


def test_two_columns_of_a_file_are_two_times_whatever_their_names() -> None:
    text = (
        "PROTOCOL F (time UINT increasing clock(s), timestamp ULLONG increasing clock(ns), x INT);"
        "QUERY q: SELECT tb, last(x) FROM eth0.F GROUP BY time/60 AS tb;"
    )
    trees = Trees.of_plan(compile_set(Source(text)).optimized)
    assert [*RetentionBounds(trees).after_release(release_of("q", trees), (3,)).values()] == [None]


def test_clocks_that_a_protocol_declares_may_be_different_times(tmp_path: Path) -> None:
    """`fine` is no function of `ts`: the tuples are kept by the one their readers ask for."""
    text = f"{ORDERED} QUERY q: SELECT tb, last(b) FROM left.S GROUP BY ts/5 AS tb;"
    trees = Trees.of_plan(plan_of(text, tmp_path))
    release = release_of("q", trees)
    (leaf,) = RetentionBounds(trees).after_release(release, (3,))
    assert RetentionBounds(trees).after_release(release, (3,)) == {leaf: None}
    kept_by = retention_columns([release], trees)
    assert kept_by == {leaf: "ts"}
    assert RetentionBounds(trees, (), kept_by).after_release(release, (3,)) == {leaf: 15}


def test_groups_made_below_are_kept_by_their_own_key(tmp_path: Path) -> None:
    """q_low groups by ts/5; xs by the same, and q by ts/5/2."""
    text = (
        f"{ORDERED} QUERY xs: SELECT tb, a, count(*) AS n FROM left.S GROUP BY ts/5 AS tb, a;"
        "QUERY q: SELECT big, sum(n) FROM xs GROUP BY tb/2 AS big;"
    )
    split = split_plan(plan_of(text, tmp_path))
    trees = Trees.of_plan(split.plan)
    leaves = {low.name for low in split.low}
    assert RetentionBounds(trees, leaves).after_release(release_of("q", trees, leaves), (7,)) == {
        "xs_low": 14
    }


def forgetting(arrivals: Arrivals, name: str, cut: Cut, end: Cut) -> tuple[int, int]:
    """Rows to come are the same without what is not needed; (rows forgotten, rows to come)."""
    values = arrivals.reached(name, cut)
    everything = {
        leaf: arrivals.rows(leaf, end, {}).tuples
        if isinstance(leaf, str)
        else arrivals.sources(end, {}).rows(leaf)
        for leaf in arrivals.all_leaves(name)
    }
    kept = {
        leaf: arrivals.without(leaf, everything[leaf], bound)
        for leaf, bound in arrivals.needed(name, values).items()
    }
    assert kept.keys() == everything.keys()
    ranges = [(value, ALL) for value in values]
    expected = arrivals.in_range(name, end, everything, ranges)
    actual = arrivals.in_range(name, end, kept, ranges)
    assert_same_rows(expected, actual, arrivals.plan[name].rel.visible)
    forgotten = sum(map(len, everything.values())) - sum(map(len, kept.values()))
    return forgotten, len(actual)


@pytest.mark.parametrize("seed", range(16), ids=lambda s: f"seed-{s}")
def test_what_is_not_needed_can_be_forgotten(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    plan, tables = random_arrivals(seed, tmp_path)
    arrivals = Arrivals.of(plan, tables, split=seed % 2 == 0, materialised=seed % 3 != 0)
    end = the_end(tables)
    counts = []
    for _ in range(3):
        cut = Cut({n: rng.randrange(len(rows) // 3, len(rows)) for n, rows in tables.items()})
        counts += [forgetting(arrivals, s.name, cut, end) for s in arrivals.plan.visible]
    assert sum(forgotten for forgotten, _ in counts), "nothing was forgotten"
    assert sum(to_come for _, to_come in counts), "nothing was to come"
