"""Tuples that come too late for rows that are merged, joined or grouped above the low level: they
are named as those of closed groups are, and in = used + late.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.operate.notices import late_text
from tests.properties.followed_folders import NOW, Followed
from tests.properties.stream_cases import KillPoint
from tests.properties.stream_results import rows_of

PROTOCOL = "PROTOCOL F (time UINT increasing clock(s), a INT);\n"
MERGED = "QUERY merged: MERGE x.time : y.time FROM a.F x, b.F y;\n"
USED_BY_ROW = {
    "selection of two sources": "QUERY q: SELECT time, a FROM F;",
    "merge": MERGED.replace("merged", "q"),
    "selection of a merge": MERGED + "QUERY q: SELECT time, a FROM merged WHERE a >= 0;",
}
USED_BY_COUNT = {
    "groups of a merge": MERGED
    + "QUERY q: SELECT tb, COUNT(*) AS n FROM merged GROUP BY time/5 AS tb;",
    "windows of a merge": MERGED + "QUERY q: SELECT wend, COUNT(*) AS n FROM merged EVERY 5;",
    "groups of two sources that live on": "QUERY q: SELECT tb, COUNT(*) AS n FROM F"
    " GROUP BY time/5 AS tb CLOSING_WHEN n = 0;",
    "groups of a merge that live on": MERGED
    + "QUERY q: SELECT tb, COUNT(*) AS n FROM merged GROUP BY time/5 AS tb CLOSING_WHEN n = 0;",
}


def disturbed(run: Followed, kill: KillPoint | None = None) -> int:
    """Both sources give a tuple a second; then some of b come, of all ages. Returns when."""
    for place in range(20):
        run.drop("a", [run.now])
        run.drop("b", [run.now])
        if place == 15:
            run.drop("b", range(run.now - 14, run.now))
        run.seconds(1, kill if place >= 14 else None)
    return NOW + 15


def told(run: Followed) -> int:
    """How many tuples of b are told to be late for q, wherever that is told."""
    status = run.status
    source, query = status.source("b"), status.query("q")
    assert source is not None
    assert query is not None
    assert query.late == source.late_queries.get("q", 0)
    if source.late:
        assert f"{source.late} tuples of b came too late" in late_text(source)
        assert f"q {query.late}" in late_text(source)
    return query.late


@pytest.mark.parametrize(
    ("text", "kill"),
    list(zip(USED_BY_ROW.values(), (None, "state", "manifest"), strict=True)),
    ids=USED_BY_ROW,
)
def test_rows_of_tuples_are_there_or_late(
    text: str, kill: KillPoint | None, tmp_path: Path
) -> None:
    run = Followed(tmp_path, PROTOCOL + text, ["a", "b"])
    disturbed(run, kill)
    late = told(run)
    assert 5 < late < 14, "some are, and some are within the skew"
    run.finish()
    rows = rows_of(tmp_path / "out" / "q")
    assert len(rows) + late == sum(run.read.values())
    assert (run.late("a"), run.late("b")) == (0, late)
    assert len(rows_of(tmp_path / "late" / "b")) == late, "they are kept apart"


@pytest.mark.parametrize("text", USED_BY_COUNT.values(), ids=USED_BY_COUNT)
def test_groups_above_have_all_but_late_tuples(text: str, tmp_path: Path) -> None:
    run = Followed(tmp_path, PROTOCOL + text, ["a", "b"])
    disturbed(run)
    late = told(run)
    assert 0 < late < 14
    run.finish()
    used = sum(int(str(row[1])) for row in rows_of(tmp_path / "out" / "q"))
    assert used + late == sum(run.read.values())


JOINS = {
    "by equality": ("x.time = y.time", 0),
    "by a band": ("y.time >= x.time AND y.time <= x.time + 3", 3),
}


@pytest.mark.parametrize(("on", "reach"), JOINS.values(), ids=JOINS)
def test_a_tuple_that_has_missed_a_pair_is_late(on: str, reach: int, tmp_path: Path) -> None:
    """Each late tuple lost pairs, and each pair that is not there had a late tuple."""
    text = f"QUERY q: SELECT x.time, y.time FROM a.F x INNER JOIN b.F y ON {on};"
    run = Followed(tmp_path, PROTOCOL + text, ["a", "b"])
    when = disturbed(run)
    late = told(run)
    run.finish()
    found: dict[int, int] = {}
    for _, y in rows_of(tmp_path / "out" / "q"):
        assert isinstance(y, int)
        found[y] = found.get(y, 0) + 1
    lost = 0
    for y in range(when - 14, when):
        whole = 2 * len([x for x in range(NOW, y + 1) if x >= y - reach])
        lost += found.get(y, 0) < whole
    assert late == lost > 5


FALLING = {
    "groups": "QUERY q: SELECT tb, COUNT(*) AS n FROM a.F GROUP BY time/10 AS tb;",
    "merge": MERGED.replace("merged", "q"),
    "groups of a merge": MERGED
    + "QUERY q: SELECT tb, COUNT(*) AS n FROM merged GROUP BY time/10 AS tb;",
}


@pytest.mark.parametrize("text", FALLING.values(), ids=FALLING)
def test_where_time_falls_larger_values_are_late(text: str, tmp_path: Path) -> None:
    names = ["a", "b"] if "MERGE" in text else ["a"]
    run = Followed(tmp_path, "PROTOCOL F (time INT decreasing, a INT);" + text, names)
    for place in range(6):
        for name in names:
            run.drop(name, range(1000 - 10 * place, 990 - 10 * place, -1))
        if place == 4:
            run.drop("a", [999, 985, 970])
        run.seconds(1)
    source = run.status.source("a")
    assert source is not None
    assert source.late_queries["q"] == source.late == 3
    assert "banded_decreasing(n)" in late_text(source)
    run.finish()
    rows = rows_of(tmp_path / "out" / "q")
    used = sum(int(str(row[1])) for row in rows) if "COUNT" in text else len(rows)
    assert used + 3 == sum(run.read.values())
