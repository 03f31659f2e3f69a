"""A source that disappears: its watermark stops, everybody hears of it, and the liveness limit says
when the others go on without it; what it gives when it is back is used or counted as late.
"""

from __future__ import annotations

import errno
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from terascope.diagnostic import QueryError, Source
from terascope.operate.causes import causes
from terascope.operate.metrics import StatusCollector
from terascope.operate.notices import late_text
from terascope.pipeline import compile_set
from terascope.streaming.sources import liveness_limits
from tests.properties.followed_folders import NOW, SECOND, Followed
from tests.properties.stream_results import rows_of

SET = """
PROTOCOL F (time UINT increasing clock(s), a INT);
QUERY counts: SELECT tb, COUNT(*) AS n FROM F GROUP BY time/10 AS tb;
"""
LIMIT = 20


class Losing(ABC):
    """A way in which a folder is lost, and found again."""

    def __init__(self, run: Followed, stack: ExitStack) -> None:
        self.run, self.stack = run, stack
        self.folder = run.of("b")

    @abstractmethod
    def lose(self) -> None: ...

    @abstractmethod
    def find(self) -> None: ...


class Renamed(Losing):
    def lose(self) -> None:
        self.folder.rename(self.folder.with_name("elsewhere"))

    def find(self) -> None:
        self.folder.with_name("elsewhere").rename(self.folder)


class Unmounted(Losing):
    """An empty folder of another file system stands where the files were."""

    def lose(self) -> None:
        other = Path(self.stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        if other.stat().st_dev == self.folder.stat().st_dev:
            pytest.skip("there is only one file system")
        self.folder.rename(self.folder.with_name("mounted"))
        self.folder.symlink_to(other)

    def find(self) -> None:
        self.folder.unlink()
        self.folder.with_name("mounted").rename(self.folder)


class Forbidden(Losing):
    """Whoever runs the tests as root may read everything: the answer of the system is made up."""

    def lose(self) -> None:
        listed = Path.iterdir

        def refused(path: Path) -> Iterator[Path]:
            if path == self.folder:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return listed(path)

        self.patched = patch.object(Path, "iterdir", refused)
        self.patched.start()
        self.stack.callback(patch.stopall)

    def find(self) -> None:
        self.patched.stop()


WAYS: list[tuple[Callable[[Followed, ExitStack], Losing], str]] = [
    (Renamed, "is gone"),
    (Unmounted, "is it unmounted?"),
    (Forbidden, "Permission denied"),
]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def started(folder: Path) -> Followed:
    run = Followed(folder, SET, ["a", "b"], liveness_ns=LIMIT * SECOND)
    for _ in range(15):
        run.drop("a", [run.now])
        run.drop("b", [run.now])
        run.seconds(1)
    return run


def busy(run: Followed, seconds: int) -> None:
    for _ in range(seconds):
        run.drop("a", [run.now])
        run.seconds(1)


@pytest.mark.parametrize(("way", "reason"), WAYS)
def test_before_the_limit_everybody_waits_and_nothing_is_late(
    way: Callable[[Followed, ExitStack], Losing], reason: str, tmp_path: Path, stack: ExitStack
) -> None:
    run = started(tmp_path)
    losing = way(run, stack)
    losing.lose()
    lost = run.now
    busy(run, 1)
    source = run.status.source("b")
    assert source is not None
    assert source.away
    assert reason in (source.stalled or "")
    assert source.waited_for_seconds == pytest.approx(LIMIT - 1, abs=1)
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: run.status))
    assert 'terascope_source_away{source="b"} 1.0' in generate_latest(registry).decode()
    busy(run, LIMIT - 5)
    assert max(run.counted("counts")) < lost // 10, "windows wait for what it may have"
    query = run.status.query("counts")
    assert query is not None
    assert causes(run.status, query)[0].kind == "away"
    losing.find()
    run.drop("b", range(lost, run.now))
    busy(run, 15)
    assert (run.late("a"), run.late("b")) == (0, 0)
    source = run.status.source("b")
    assert source is not None
    assert (source.away, source.stalled, source.left_behind) == (False, None, False)
    run.finish()
    run.assert_adds_up("counts", ["a", "b"])
    assert (run.late("a"), run.late("b")) == (0, 0)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_after_the_limit_the_others_go_on_and_it_rejoins(
    is_restarted: bool, tmp_path: Path, stack: ExitStack
) -> None:
    run = started(tmp_path)
    losing = Renamed(run, stack)
    losing.lose()
    lost = run.now
    busy(run, LIMIT // 2)
    if is_restarted:
        run.restart()
    busy(run, LIMIT)
    source = run.status.source("b")
    assert source is not None
    assert (source.away, source.left_behind) == (True, True)
    assert max(run.counted("counts")) >= run.now // 10 - 2, "the others go on without it"
    losing.find()
    run.drop("b", range(lost, run.now))
    busy(run, 2)
    late = run.late("b")
    assert late > LIMIT - 5
    for _ in range(15):
        run.drop("b", [run.now])
        busy(run, 1)
    assert run.late("b") == late, "its watermark is that of the others again"
    source = run.status.source("b")
    assert source is not None
    assert (source.away, source.left_behind) == (False, False)
    assert "a longer --liveness" in late_text(source), "though it is back since"
    run.drop("b", [run.now - 16])
    busy(run, 1)
    assert run.late("b") == late + 1
    source = run.status.source("b")
    assert source is not None
    assert "--liveness" not in late_text(source), "this one is merely slow"
    run.finish()
    run.assert_adds_up("counts", ["a", "b"])


def test_a_source_alone_waits_for_itself(tmp_path: Path, stack: ExitStack) -> None:
    text = SET.replace("FROM F", "FROM b.F")
    run = Followed(tmp_path, text, ["b"], liveness_ns=LIMIT * SECOND)
    run.drop("b", [NOW])
    run.seconds(3)
    losing = Renamed(run, stack)
    losing.lose()
    run.seconds(3 * LIMIT)
    losing.find()
    run.drop("b", [NOW + 4, NOW + 50])
    run.seconds(20)
    run.finish()
    run.assert_adds_up("counts", ["b"])
    assert run.late("b") == 0


def test_pieces_that_were_found_and_not_read_are_read_when_the_folder_is_back(
    tmp_path: Path, stack: ExitStack
) -> None:
    run = started(tmp_path)
    run.drop("b", [run.now])
    run.run.live.links.poll()  # it is in the journal, and no batch has it
    losing = Renamed(run, stack)
    losing.lose()
    busy(run, 5)
    losing.find()
    busy(run, 5)
    run.finish()
    run.assert_adds_up("counts", ["a", "b"])
    assert run.late("b") == 0


def test_the_liveness_timeout_of_a_query_is_that_of_its_sources(
    tmp_path: Path, stack: ExitStack
) -> None:
    text = SET.replace("QUERY counts:", "DEFINE { query_name 'counts'; liveness_timeout 6; }")
    assert liveness_limits(compile_set(Source(text)).plan) == {}, "no source is bound"
    run = Followed(tmp_path, text, ["a", "b"], liveness_ns=1000 * SECOND)
    assert liveness_limits(run.compiled.plan) == {"a": 6.0, "b": 6.0}
    for _ in range(5):
        run.drop("a", [run.now])
        run.drop("b", [run.now])
        run.seconds(1)
    Renamed(run, stack).lose()
    busy(run, 4)
    source = run.status.source("b")
    assert source is not None
    assert source.waited_for_seconds == pytest.approx(2, abs=1)
    assert not source.left_behind
    busy(run, 20)
    source = run.status.source("b")
    assert source is not None
    assert source.left_behind
    assert max(run.counted("counts")) >= run.now // 10 - 2
    run.run.close()


def test_of_several_limits_the_shortest_counts() -> None:
    text = """
    DEFINE { query_name 'x'; liveness_timeout '2m'; } SELECT time FROM a.TCP;
    DEFINE { query_name 'y'; liveness_timeout off; } SELECT time FROM x;
    DEFINE { query_name 'z'; liveness_timeout 30; } SELECT time FROM b.TCP;
    QUERY both: MERGE x.time : z.time FROM x, z;
    DEFINE { query_name 'u'; liveness_timeout 1.5; } SELECT time FROM both;
    """
    limits = {"a": 120.0, "b": 30.0}
    assert liveness_limits(compile_set(Source(text.split("QUERY both")[0])).plan) == limits
    assert liveness_limits(compile_set(Source(text)).plan) == {"a": 1.5, "b": 1.5}
    with pytest.raises(QueryError, match="soon"):
        compile_set(Source("DEFINE { liveness_timeout soon; } SELECT time FROM TCP"))


CLOCKLESS = "PROTOCOL F (time UINT increasing, a INT);"
COUNT = "SELECT tb, COUNT(*) AS n FROM {} GROUP BY time/10 AS tb;"
COMBINED = {
    "merge": "QUERY m: MERGE x.time : y.time FROM a.F x, b.F y; QUERY q: " + COUNT.format("m"),
    "join of tuples": "QUERY q: SELECT x.time, 1 AS n FROM a.F x LEFT JOIN b.F y"
    " ON x.time = y.time;",
    "band": "QUERY q: SELECT x.time, 1 AS n FROM a.F x LEFT JOIN b.F y"
    " ON y.time >= x.time AND y.time <= x.time + 3;",
    "join of groups": f"QUERY ga: {COUNT.format('a.F')} QUERY gb: {COUNT.format('b.F')}"
    " QUERY q: SELECT x.tb, x.n FROM ga x LEFT JOIN gb y ON x.tb = y.tb;",
}


@pytest.mark.parametrize("text", COMBINED.values(), ids=COMBINED)
def test_a_source_without_a_clock_is_left_behind_as_well(
    text: str, tmp_path: Path, stack: ExitStack
) -> None:
    run = Followed(tmp_path, CLOCKLESS + text, ["a", "b"], liveness_ns=6 * SECOND)
    run.drop("a", range(15))
    run.drop("b", range(15))
    run.seconds(1)
    losing = Renamed(run, stack)
    losing.lose()
    for place in range(15, 30, 5):
        run.drop("a", range(place, place + 5))
        run.seconds(1)
    held = [row[0] for row in rows_of(tmp_path / "out" / "q")]
    assert max(map(to_time(text), held), default=0) <= 15, "before the limit they wait"
    run.restart()
    for place in range(30, 60, 5):
        run.drop("a", range(place, place + 5))
        run.seconds(1)
    found = [row[0] for row in rows_of(tmp_path / "out" / "q")]
    assert max(map(to_time(text), found)) >= 40, "after it they go on"
    losing.find()
    run.drop("b", range(15, 60))
    run.drop("b", range(60, 70))
    run.drop("a", range(60, 70))
    run.seconds(2)
    source = run.status.source("b")
    assert source is not None
    late = source.late_queries["q"]
    assert 20 < late < 55, "what is behind the others is late, the rest is not"
    assert "--liveness" in late_text(source)
    run.finish()
    if "MERGE" in text:
        assert sum(int(str(r[1])) for r in rows_of(tmp_path / "out" / "q")) + late == sum(
            run.read.values()
        )


def to_time(text: str) -> Callable[[object], int]:
    """The time of a row by its first column, which may be that of ten."""
    return (lambda v: int(str(v)) * 10) if "tb" in text else (lambda v: int(str(v)))
