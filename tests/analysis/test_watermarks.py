"""How far streams are complete: by hand for every operator, and against the reference for any set.

A failing seed is in the test's name and can be run alone.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from terascope.analysis.moving import ALL
from terascope.analysis.order import Trees
from terascope.analysis.release import complete_below, release_of
from terascope.analysis.watermarks import Seen, Watermarks
from terascope.functions.base import Value
from terascope.plan.expr import Col
from terascope.plan.rel import Aggregate, Scan, walk
from tests.analysis.arrivals import Arrivals, Cut, plan_of, the_end
from tests.analysis.stream_sets import BAND, EPOCHS, random_arrivals
from tests.oracle.compare import assert_same_rows

PROTOCOL = (
    "PROTOCOL S (ts INT increasing clock(s), fine LLONG banded_increasing(10) clock(ms), "
    "back INT decreasing, real FLOAT increasing, a INT, b INT);"
)
SEEN = {
    "left": {"ts": 100, "#ts": 5000, "fine": 5000, "back": -100, "real": 8.0},
    "right": {"ts": 87, "#ts": 4000, "fine": 4000, "back": -90, "real": 6.0},
}


def seen(scan: Scan) -> Seen:
    """The least of what the interfaces have come to."""
    each = [SEEN[name] for name in scan.interfaces]
    return {n: (max if n == "back" else min)(values[n] for values in each) for n in each[0]}


def promised(query: str, column: str, folder: Path) -> Value:
    plan = plan_of(f"{PROTOCOL}\n{query}", folder)
    trees = Trees.of_plan(plan)
    rel = trees.streams["q"]
    return Watermarks(trees, seen).of(Col(column, rel.type_of(column)), rel)


@pytest.mark.parametrize(
    ("query", "column", "expected"),
    [
        ("SELECT ts, b FROM left.S WHERE b > 3", "ts", 100),
        ("SELECT ts, b FROM [both].S", "ts", 87),
        ("SELECT fine AS late FROM left.S", "late", 4990),
        ("SELECT fine/100 AS late FROM left.S", "late", 49),
        ("SELECT ts/60 AS tb FROM left.S", "tb", 1),
        ("SELECT ts + fine AS two FROM left.S", "two", 5090),
        ("SELECT back FROM left.S", "back", -100),
        ("SELECT ts - back AS gap FROM left.S", "gap", 200),
        ("SELECT 0 - ts AS turned FROM left.S", "turned", -100),
        ("SELECT real * 0.5 AS half FROM left.S", "half", 4.0),
        ("SELECT b FROM left.S", "b", None),
        ("SELECT tb, count(*) FROM left.S GROUP BY ts/60 AS tb", "tb", 1),
        ("SELECT tb, count(*) FROM left.S GROUP BY back/7 AS tb", "tb", -15),
        ("SELECT tb, a, count(*) FROM left.S GROUP BY ts/9 AS tb, CUBE(a)", "tb", 11),
        ("SELECT tb, a, count(*) FROM left.S GROUP BY ts/9 AS tb, a CLOSING_WHEN count(*) = 0",
         "tb", 11),
        ("SELECT tb, a, count(*) AS n FROM left.S GROUP BY ts/9 AS tb, a ORDER BY n LIMIT 1",
         "tb", 11),
        # Windows [t-10, t): those that end by 100 are complete, and the next begins after 90.
        ("SELECT count(*) FROM left.S [RANGE 10 SLIDE 5]", "wend", 105),
        ("SELECT count(*) FROM left.S [RANGE 10 SLIDE 5]", "wstart", 95),
        # Slices of 30 and 7: [74, 104) contains 100.
        ("SELECT count(*) FROM left.S [SLICES 30, 7]", "wstart", 74),
        ("SELECT x.ts, x.b FROM left.S x JOIN right.S y ON x.ts = y.ts", "ts", 87),
        ("SELECT x.ts, y.ts AS other FROM left.S x JOIN right.S y ON x.ts = y.ts + 5", "other", 87),
        ("SELECT x.ts, y.ts AS other FROM left.S x JOIN right.S y ON x.ts/2 = y.ts + 5", "other",
         45),
        ("SELECT x.ts, y.ts AS other FROM left.S x JOIN right.S y ON x.ts/2 = y.ts + 5", "ts", 100),
        ("SELECT x.back FROM left.S x JOIN right.S y ON x.back = y.back", "back", -90),
        ("SELECT x.ts, y.b FROM left.S x JOIN right.S y ON y.ts BETWEEN x.ts - 3 AND x.ts + 2",
         "ts", 85),
        ("SELECT x.ts, x.b FILTER_JOIN(ts, 3) FROM right.S x, left.S y WHERE x.a = y.a", "ts", 87),
    ],
)  # fmt: skip
def test_promises_pass_through_operators(
    query: str, column: str, expected: Value, tmp_path: Path
) -> None:
    assert promised(f"QUERY q: {query};", column, tmp_path) == expected


@pytest.mark.parametrize(
    ("query", "column", "expected"),
    [
        ("QUERY q: MERGE x.ts : y.ts SLACK 4 FROM left.S x, right.S y;", "ts", 83),
        ("QUERY q: MERGE x.back : y.back SLACK 4 FROM left.S x, right.S y;", "back", -86),
        ("QUERY w: SELECT count(*) AS n FROM left.S [RANGE 5 SLIDE 5];"
         "QUERY q: SELECT sum(n) FROM w [RANGE 20 SLIDE 10];", "wend", 110),
        ("QUERY w: SELECT count(*) AS n FROM left.S [RANGE 5 SLIDE 5];"
         "QUERY q: SELECT sum(n) FROM w [RANGE 20 SLIDE 10];", "wstart", 90),
        # Elements that end by 100 are complete, and no other ends in the slice [74, 104).
        ("QUERY w: SELECT count(*) AS n FROM left.S [RANGE 5 SLIDE 5];"
         "QUERY q: SELECT sum(n) FROM w [SLICES 30, 7];", "wstart", 104),
        # A window has no horizon: groups that are alive may still get rows.
        ("QUERY w: SELECT a, count(*) AS n FROM left.S [RANGE 5 SLIDE 5] GROUP BY a;"
         "QUERY q: SELECT tb, a, count(*) FROM w GROUP BY wend/10 AS tb, a "
         "CLOSING_WHEN count(*) = 0;", "tb", None),
        (EPOCHS + "QUERY q: SELECT tb, y.n FROM xs x FULL JOIN ys y ON x.tb = y.tb;", "tb", 17),
        # A missing left side is filled with 0, and 0 says nothing of time.
        (EPOCHS + "DEFINE { query_name 'q'; outer_fill 'default'; } "
         "SELECT x.tb, y.n FROM xs x FULL JOIN ys y ON x.tb/2 = y.tb;", "tb", None),
    ],
)  # fmt: skip
def test_promises_pass_through_streams(
    query: str, column: str, expected: Value, tmp_path: Path
) -> None:
    assert promised(query, column, tmp_path) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("INNER", (85,)), ("LEFT", (85,)), ("RIGHT", (87,)), ("FULL", (85, 87))],
)
def test_a_band_join_waits_for_the_last_partner(
    kind: str, expected: tuple[int, ...], tmp_path: Path
) -> None:
    """y.ts is within [x.ts - 3, x.ts + 2]; time has come to 100 on the left, to 87 on the right."""
    text = f"{PROTOCOL} QUERY q: {BAND.format(kind=kind)};"
    trees = Trees.of_plan(plan_of(text, tmp_path))
    assert complete_below(release_of("q", trees), Watermarks(trees, seen)) == expected

    def swapped(scan: Scan) -> Seen:
        return {"ts": 87 if scan.interfaces == ("left",) else 100}

    late = {"INNER": (87,), "LEFT": (87,), "RIGHT": (84,), "FULL": (87, 84)}
    assert complete_below(release_of("q", trees), Watermarks(trees, swapped)) == late[kind]


def test_nothing_is_promised_before_every_interface_was_heard_of(tmp_path: Path) -> None:
    plan = plan_of(f"{PROTOCOL} QUERY q: SELECT ts FROM [both].S;", tmp_path)
    trees = Trees.of_plan(plan)
    rel = trees.streams["q"]
    assert Watermarks(trees, lambda _: {}).of(Col("ts", rel.type_of("ts")), rel) is None


def test_an_ended_stream_is_complete_and_a_join_waits_for_both(tmp_path: Path) -> None:
    text = f"{PROTOCOL} QUERY q: SELECT x.ts, y.b FROM left.S x JOIN right.S y ON x.ts = y.ts;"
    trees = Trees.of_plan(plan_of(text, tmp_path))
    rel = trees.streams["q"]
    column = Col("ts", rel.type_of("ts"))

    def left_ended(scan: Scan) -> Seen:
        return ALL if scan.interfaces == ("left",) else seen(scan)

    assert Watermarks(trees, left_ended).of(column, rel) == 87
    assert Watermarks(trees, lambda _: ALL).of(column, rel) is ALL
    # Unordered columns too: everything is complete.
    assert Watermarks(trees, lambda _: ALL).of(Col("b", rel.type_of("b")), rel) is ALL


def test_gaps_are_known_up_to_the_last_row_that_has_tuples(tmp_path: Path) -> None:
    text = (
        f"{PROTOCOL} DEFINE {{ query_name 'q'; empty 'emit'; }} "
        "SELECT tb, count(*) FROM left.S WHERE b > 3 GROUP BY ts/10 AS tb;"
    )
    trees = Trees.of_plan(plan_of(text, tmp_path))
    rel = next(r for r in walk(trees.streams["q"]) if isinstance(r, Aggregate))
    key = Col("tb", rel.type_of("tb"))
    assert Watermarks(trees, seen).of(key, rel) is None
    assert Watermarks(trees, seen, present=lambda _: 6).of(key, rel) == 6
    assert Watermarks(trees, seen, present=lambda _: 15).of(key, rel) == 10


@pytest.mark.parametrize("seed", range(16), ids=lambda s: f"seed-{s}")
def test_what_is_promised_never_changes(seed: int, tmp_path: Path) -> None:
    """Rows that are complete after a cut are the rows that stand there in the end."""
    rng = random.Random(seed)
    plan, tables = random_arrivals(seed, tmp_path)
    arrivals = Arrivals.of(plan, tables, split=seed % 2 == 0)
    end = the_end(tables)
    complete = 0
    for _ in range(2):
        cut = Cut({name: rng.randrange(len(rows) + 1) for name, rows in tables.items()})
        for stream in arrivals.plan.visible:
            ranges = [(None, value) for value in arrivals.reached(stream.name, cut)]
            now = arrivals.in_range(stream.name, cut, {}, ranges)
            finally_ = arrivals.in_range(stream.name, end, {}, ranges)
            assert_same_rows(finally_, now, stream.rel.visible)
            complete += len(now)
    assert complete, "nothing was complete: the test would say nothing"
