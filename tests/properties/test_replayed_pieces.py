"""Old captures copied into a followed folder: a source whose clock is far from the wall clock is a
replay, which keeps its own clock.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.operate.notices import late_text
from terascope.streaming.state.state import unpacked_offset
from tests.properties.followed_folders import NOW, SECOND, Followed
from tests.properties.stream_cases import KillPoint

OLD = 1_530_000_000
"""In 2018."""
PROTOCOL = "PROTOCOL F (time UINT increasing clock(s), a INT);\n"
ALONE = PROTOCOL + "QUERY counts: SELECT tb, COUNT(*) AS n FROM old.F GROUP BY time/10 AS tb;"
BOTH = (
    PROTOCOL
    + """
QUERY counts: SELECT tb, COUNT(*) AS n FROM old.F GROUP BY time/10 AS tb;
QUERY present: SELECT tb, COUNT(*) AS n FROM live.F GROUP BY time/10 AS tb;
"""
)
WIDE = "QUERY wide: SELECT tb, COUNT(*) AS n FROM old.F GROUP BY time/10000 AS tb;"
TOGETHER = PROTOCOL + "QUERY counts: SELECT tb, COUNT(*) AS n FROM F GROUP BY time/10 AS tb;"


def is_replay(run: Followed, name: str) -> bool | None:
    return unpacked_offset(run.log.offsets[-1]).link(name).is_replay


@pytest.mark.parametrize(
    ("begin", "empty_seconds", "kill"),
    [
        (OLD, 0, None),
        (OLD, 5, None),
        (NOW + 100_000, 5, None),
        (OLD, 5, "state"),
        (OLD, 0, "noted"),
        (OLD, 5, "manifest"),
    ],
)
def test_pieces_dropped_one_after_the_other_are_all_used(
    begin: int, empty_seconds: int, kill: KillPoint | None, tmp_path: Path
) -> None:
    run = Followed(tmp_path, ALONE, ["old"])
    run.seconds(empty_seconds)
    for piece in range(4):
        run.drop("old", range(begin + 33 * piece, begin + 33 * (piece + 1)))
        run.seconds(4, kill)
    assert is_replay(run, "old") is True
    assert run.late("old") == 0
    assert len(run.counted("counts")) == 4 * 33 // 10, "what is complete by its own clock is there"
    run.finish()
    run.assert_adds_up("counts", ["old"])
    assert run.late("old") == 0


def test_without_the_limit_the_wall_clock_makes_them_late_and_they_are_counted(
    tmp_path: Path,
) -> None:
    run = Followed(tmp_path, ALONE, ["old"], replay_limit_ns=None)
    for piece in range(4):
        run.drop("old", range(OLD + 33 * piece, OLD + 33 * (piece + 1)))
        run.seconds(4)
    late = run.late("old")
    assert late > 33
    source = run.status.source("old")
    assert source is not None
    assert source.late_queries == {"counts": late}
    assert late_text(source).startswith(f"{late} tuples of old came too late (counts {late}): ")
    assert "--replay old" in late_text(source)
    run.finish()
    run.assert_adds_up("counts", ["old"])


def test_late_tuples_are_counted_for_each_query(tmp_path: Path) -> None:
    run = Followed(tmp_path, ALONE + WIDE, ["old"])
    for _ in range(25):
        run.drop("old", [run.now])
        run.seconds(1)
    run.drop("old", range(run.now - 25, run.now))
    run.seconds(1)
    status = run.status
    source = status.source("old")
    assert source is not None
    late = source.late_queries
    assert 0 < late["counts"] <= 25
    assert "wide" not in late, "its window is open"
    assert source.late == late["counts"]
    assert {q.name: q.late for q in status.queries} == {"counts": late["counts"], "wide": 0}
    run.finish()
    assert sum(run.counted("wide").values()) == run.read["old"]
    assert sum(run.counted("counts").values()) == run.read["old"] - late["counts"]


def test_a_source_of_now_is_moved_by_the_wall_clock(tmp_path: Path) -> None:
    run = Followed(tmp_path, ALONE, ["old"])
    run.drop("old", range(NOW - 40, NOW))
    run.seconds(30)
    assert is_replay(run, "old") is False
    assert max(run.counted("counts")) == (NOW - 1) // 10, "silence has closed its last window"
    run.run.close()


def test_a_limit_decides_and_off_means_never(tmp_path: Path) -> None:
    for place, (limit, replay) in enumerate([(50, True), (70, False), (None, False)]):
        folder = tmp_path / str(place)
        limit_ns = None if limit is None else limit * SECOND
        run = Followed(folder, ALONE, ["old"], replay_limit_ns=limit_ns)
        run.drop("old", range(NOW - 63, NOW - 60))  # the skew comes on top
        run.seconds(1)
        assert is_replay(run, "old") is replay, limit
        run.run.close()


def test_a_backlog_that_catches_up_with_the_wall_clock_is_live_from_then_on(
    tmp_path: Path,
) -> None:
    run = Followed(tmp_path, ALONE, ["old"], most_bytes=20_000)
    begin = NOW - 7200
    run.drop("old", range(begin, NOW))
    run.seconds(1)
    assert is_replay(run, "old") is True, "two hours are being read"
    for _ in range(12):
        run.drop("old", [run.now])
        run.seconds(1)
    assert is_replay(run, "old") is False
    run.seconds(30)
    assert max(run.counted("counts")) == (NOW + 12) // 10, "silence has closed its last window"
    run.finish()
    run.assert_adds_up("counts", ["old"])
    assert run.late("old") == 0


def test_a_live_source_that_was_away_in_an_outage_stays_live(tmp_path: Path) -> None:
    run = Followed(tmp_path, ALONE, ["old"])
    run.drop("old", [NOW - 1])
    run.seconds(2)
    run.run.close()
    run.drop("old", range(NOW, NOW + 7200))
    run.now += 7200
    run.restart()
    run.seconds(20)
    assert is_replay(run, "old") is False
    run.finish()
    run.assert_adds_up("counts", ["old"])
    assert run.late("old") == 0


def test_a_replay_and_a_live_source_that_no_query_combines_do_not_disturb_each_other(
    tmp_path: Path,
) -> None:
    run = Followed(tmp_path, BOTH, ["old", "live"], liveness_ns=3 * SECOND)
    for piece in range(4):
        run.drop("old", range(OLD + 33 * piece, OLD + 33 * (piece + 1)))
        for _ in range(8):
            run.drop("live", [run.now])
            run.seconds(1)
    assert (is_replay(run, "old"), is_replay(run, "live")) == (True, False)
    assert max(run.counted("present")) >= run.now // 10 - 2
    run.finish()
    run.assert_adds_up("counts", ["old"])
    run.assert_adds_up("present", ["live"])
    assert (run.late("old"), run.late("live")) == (0, 0)


def test_what_is_combined_waits_for_a_replay_until_the_liveness_limit(tmp_path: Path) -> None:
    run = Followed(tmp_path, TOGETHER, ["old", "live"], liveness_ns=10 * SECOND)
    run.drop("old", range(OLD, OLD + 33))
    for _ in range(8):
        run.drop("live", [run.now])
        run.seconds(1)
    run.drop("old", range(OLD + 33, OLD + 66))
    for _ in range(8):
        run.drop("live", [run.now])
        run.seconds(1)
    assert run.late("old") == 0, "nothing is late before the limit"
    assert max(run.counted("counts")) < OLD // 10 + 7, "the live source waits for the replay"
    for _ in range(25):
        run.drop("live", [run.now])
        run.seconds(1)
    assert max(run.counted("counts")) >= run.now // 10 - 2, "after it the others go on"
    run.drop("old", range(OLD + 66, OLD + 99))
    run.seconds(2)
    assert run.late("old") == 33
    run.finish()
    run.assert_adds_up("counts", ["old", "live"])


def test_old_pieces_for_a_folder_that_others_have_gone_on_without_are_late_and_counted(
    tmp_path: Path,
) -> None:
    run = Followed(tmp_path, TOGETHER, ["old", "live"])
    for _ in range(15):
        run.drop("live", [run.now])
        run.seconds(1)
    run.drop("old", range(OLD, OLD + 33))
    run.seconds(2)
    assert run.late("old") == 33
    run.finish()
    run.assert_adds_up("counts", ["old", "live"])


def test_a_declared_replay_is_waited_for_though_it_has_given_nothing(tmp_path: Path) -> None:
    run = Followed(tmp_path, TOGETHER, ["old", "live"], replays=frozenset({"old"}))
    for _ in range(15):
        run.drop("live", [run.now])
        run.seconds(1)
    run.drop("old", range(OLD, OLD + 33))
    run.seconds(2)
    assert run.late("old") == 0
    run.finish()
    run.assert_adds_up("counts", ["old", "live"])
