"""`get_system_time` in a stream: tuples have the time of their micro-batch, whoever runs it again;
epochs of arrival close by the wall clock alone, and no tuple is late for them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from terascope.streaming.state.state import unpacked_offset
from tests.properties.declared_orders import assert_in_order, declared_orders
from tests.properties.followed_folders import NOW, SECOND, Followed
from tests.properties.stream_cases import KillPoint
from tests.properties.stream_results import rows_of

OLD = 1_530_000_000
PROTOCOL = """
PROTOCOL F { uint time get_csv_uint_pos1 (increasing, clock(s)); int a get_csv_int_pos2;
             uint came get_system_time (increasing); };
PROTOCOL G { int a get_csv_int_pos2; ullong came get_system_time (clock(ms)); };
"""
COUNTS = "QUERY counts: SELECT tb, COUNT(*) AS n FROM F GROUP BY came/10 AS tb;"
TIMELESS = "QUERY counts: SELECT tb, COUNT(*) AS n FROM G GROUP BY came/10000 AS tb;"
LISTED = "QUERY listed: SELECT time, came, a FROM F;"
ABOVE = """
QUERY chosen: SELECT time, came FROM F WHERE a >= 0;
QUERY counts: SELECT tb, COUNT(*) AS n FROM chosen GROUP BY came/10 AS tb;
"""


@pytest.mark.parametrize(
    ("text", "kill"),
    [(COUNTS, None), (COUNTS, "noted"), (TIMELESS, "manifest"), (ABOVE, "state")],
)
def test_epochs_of_arrival_hold_whole_micro_batches(
    text: str, kill: KillPoint | None, tmp_path: Path
) -> None:
    """Also of two sources whose own clocks are years apart, one of which runs backwards."""
    run = Followed(tmp_path, PROTOCOL + text, ["a", "b"])
    expected: Counter[int] = Counter()
    for piece in range(5):
        run.drop("a", range(OLD - 50 * piece, OLD - 50 * piece + 30))
        expected[(run.now + 1) // 10] += 30
        run.seconds(2, kill)
        run.drop("b", [run.now, run.now + 1])
        expected[(run.now + 1) // 10] += 2
        run.seconds(3, kill)
    counted = run.counted("counts")
    assert set(counted) == set(range(NOW // 10, run.now // 10)), "silence closes them, too"
    query = run.status.query("counts")
    assert query is not None
    assert query.late == 0
    run.finish()
    assert run.counted("counts") == expected


def test_arrival_does_not_fall_when_the_wall_clock_is_set_back(tmp_path: Path) -> None:
    run = Followed(tmp_path, PROTOCOL + COUNTS, ["a"])
    for place in range(30):
        if place == 15:
            run.now -= 100
            run.restart()
        run.drop("a", [NOW + place])
        run.seconds(1)
    times = [unpacked_offset(offset).arrived_ns for offset in run.log.offsets]
    assert times == sorted(times)
    run.finish()
    run.assert_adds_up("counts", ["a"])
    assert run.late("a") == 0


@pytest.mark.parametrize("interfaces", [["a"], ["a", "b"]])
def test_rows_with_their_arrival_keep_every_declared_order(
    interfaces: list[str], tmp_path: Path
) -> None:
    """A tuple that waits for another source is passed by one that arrived later: of several sources
    the rows are in order of their own time only.
    """
    run = Followed(tmp_path, PROTOCOL + LISTED, interfaces)
    for place in range(12):
        for lag, name in enumerate(interfaces):
            if place >= 2 * lag:
                run.drop(name, [NOW + place - 2 * lag, NOW + place - 2 * lag])
        run.seconds(1)
    run.finish()
    orders = declared_orders(run.compiled)["listed"]
    assert set(orders) >= {"time"}
    assert ("came" in orders) == (len(interfaces) == 1)
    rows = rows_of(run.folder / "out" / "listed")
    assert len(rows) == sum(run.read.values())
    assert assert_in_order(rows, ["time", "came", "a"], orders, "listed") >= len(rows) - 1
    planned = {report.offset.arrived_ns // SECOND for report in run.heard}
    assert {row[1] for row in rows} <= planned | {run.now}


def test_a_source_that_is_gone_does_not_hold_epochs_of_arrival(tmp_path: Path) -> None:
    run = Followed(tmp_path, PROTOCOL + COUNTS, ["a", "b"])
    run.drop("a", [run.now])
    run.drop("b", [run.now])
    run.seconds(2)
    run.of("b").rename(tmp_path / "elsewhere")
    run.seconds(30)
    assert sum(run.counted("counts").values()) == 2
    (tmp_path / "elsewhere").rename(run.of("b"))
    run.drop("b", range(NOW, NOW + 5))
    run.seconds(2)
    run.finish()
    run.assert_adds_up("counts", ["a", "b"])
    assert run.late("b") == 0
