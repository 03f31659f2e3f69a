"""A slow callback: the run waits for it, says so, and holds no more than a batch in memory; when it
is faster again everything is caught up, and every row has come once, in order.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pyarrow as pa
from prometheus_client import CollectorRegistry, generate_latest

import terascope.running as running_sets
from terascope.operate.causes import causes
from terascope.operate.metrics import StatusCollector
from terascope.operate.status import Status
from terascope.operate.subscription import CallbackSink
from terascope.running import RunningSet
from terascope.spark.stream.runner import Runner
from terascope.streaming.heartbeat import BatchReport
from tests.properties.followed_folders import NOW, SECOND, Followed
from tests.properties.plain_streams import Killed
from tests.properties.stream_results import rows_of

TEXT: Final = """
PROTOCOL F (time UINT increasing clock(s), a INT);
QUERY counts: SELECT tb, COUNT(*) AS n FROM F GROUP BY time AS tb;
QUERY kinds: SELECT tb, a, COUNT(*) AS n FROM F GROUP BY time AS tb, a;
"""
QUERIES: Final = ("counts", "kinds")
BATCH_BYTES: Final = 4000
TUPLES: Final = 60
"""A second: five seconds of it are more than a batch reads."""


class Slow:
    """A callback that takes its time, which is the source's, too."""

    def __init__(self, folder: Path) -> None:
        self.followed = Followed(
            folder, TEXT, ["eth0"], most_bytes=BATCH_BYTES, split_bytes=1024, heartbeat_ns=SECOND
        )
        self.rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in QUERIES}
        self.batches: dict[str, list[int]] = {name: [] for name in QUERIES}
        self.takes = 0
        self.kill: Callable[[], bool] = lambda: False
        self.tables: list[weakref.ref[pa.Table]] = []
        self.most_alive = 0
        self.seen: list[tuple[Status, Status]] = []
        """Before and after the time that a call took, but within it."""
        self.running: RunningSet
        self.opened()

    def made(self, told: Callable[[BatchReport], None]) -> Runner:
        del told
        return self.followed.run.runner

    def opened(self) -> None:
        """A run whose batches are those of a plain one."""
        sink = partial(CallbackSink, clock=lambda: float(self.followed.now))
        with patch.object(Runner, "start"), patch.object(running_sets, "CallbackSink", sink):
            while True:
                self.running = RunningSet(self.made, self.followed.reporter, callback=self)
                try:
                    self.running._begin()
                except Killed:
                    self.followed.restart()
                else:
                    return

    def __call__(self, query: str, batch: int, rows: pa.Table, /) -> None:
        self.tables.append(weakref.ref(rows))
        self.most_alive = max(self.most_alive, sum(one() is not None for one in self.tables))
        before = self.status
        self.pass_time(self.takes)
        self.seen.append((before, self.status))
        if self.kill():
            raise Killed("callback")
        self.batches[query].append(batch)
        self.rows[query] += zip(*(c.to_pylist() for c in rows.columns), strict=True)

    @property
    def status(self) -> Status:
        links = self.followed.run.live.links.states()
        backlogs = {link.name: link.backlog_bytes for link in links}
        told = self.running.status()
        sources = (replace(s, backlog_bytes=backlogs[s.name]) for s in told.sources)
        return replace(told, sources=tuple(sources))

    def pass_time(self, seconds: int) -> None:
        """The source does not wait."""
        for _ in range(seconds):
            self.followed.now += 1
            self.followed.drop("eth0", [self.followed.now - 1] * TUPLES)

    def trigger(self) -> None:
        """A second passes, and a batch is run."""
        self.pass_time(1)
        self.idle()

    def idle(self) -> None:
        run = self.followed.run
        known = len(run.reports)
        run.step()
        for report in run.reports[known:]:
            self.hear(report)

    def hear(self, report: BatchReport) -> None:
        try:
            self.running._batch(report)
        except Killed:
            self.followed.restart()
            self.opened()


def test_a_slow_callback_loses_nothing_and_is_seen(tmp_path: Path) -> None:
    slow = Slow(tmp_path)
    followed = slow.followed
    for _ in range(4):
        slow.trigger()
    assert slow.status.sources[0].backlog_bytes == 0
    kills = iter([False, False, True, False, True])
    slow.takes, slow.kill = 5, lambda: next(kills, False)
    backlogs = []
    for _ in range(6):
        slow.trigger()
        backlogs.append(slow.status.sources[0].backlog_bytes)
    assert backlogs[-1] > backlogs[1] > 0, "what was not read meanwhile is backlog"
    assert backlogs == sorted(backlogs)

    # What is seen while a call is at work.
    before, after = slow.seen[-1]
    assert before.run.callback is not None
    assert after.run.callback is not None
    assert (before.run.callback.seconds, after.run.callback.seconds) == (0.0, 5.0)
    assert after.run.callback.query in QUERIES
    query = after.query("counts")
    assert query is not None
    earlier = before.query("counts")
    assert earlier is not None
    assert query.lag_seconds == (earlier.lag_seconds or 0) + 5
    (cause,) = causes(after, query)
    assert cause.kind == "callback"
    assert "for 5.0 s, and the run waits for it" in cause.what
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: after))
    assert "terascope_callback_waiting_seconds 5.0" in generate_latest(registry).decode()
    assert slow.status.run.callback is None, "no call is at work now"
    assert slow.status.run.callback_seconds >= 10

    # It is fast again.
    slow.takes = 0
    for _ in range(200):
        if not slow.status.sources[0].backlog_bytes:
            break
        followed.now += 1
        slow.idle()
    assert slow.status.sources[0].backlog_bytes == 0, "it does not catch up"
    for _ in range(5):
        followed.now += 1
        slow.idle()
    assert followed.late("eth0") == 0
    assert slow.most_alive <= 2 * len(QUERIES), "batches that were taken stay in memory"
    for name in QUERIES:
        assert slow.batches[name] == sorted(set(slow.batches[name]))
        assert slow.rows[name] == rows_of(followed.folder / "out" / name)
    times = [row[0] for row in slow.rows["counts"]]
    assert times == list(range(NOW, NOW + len(times)))
    assert sum(int(str(row[1])) for row in slow.rows["counts"]) == followed.read["eth0"]
    followed.finish()
    followed.assert_adds_up("counts", ["eth0"])


def test_many_batches_that_wait_come_one_by_one(tmp_path: Path) -> None:
    """A callback that was away for long."""
    slow = Slow(tmp_path)
    slow.running._sink = None
    for _ in range(30):
        slow.pass_time(1)
        slow.followed.step()
    assert slow.rows["counts"] == []
    slow.opened()
    assert len(slow.batches["counts"]) > 20
    assert slow.most_alive <= 2 * len(QUERIES)
    assert slow.rows["counts"] == rows_of(slow.followed.folder / "out" / "counts")
    slow.followed.run.runner.close()
