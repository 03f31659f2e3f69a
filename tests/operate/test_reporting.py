"""From what batches did to a status: the reporter, over reports made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from terascope.analysis.watermarks import Watermarks
from terascope.connectors.live import LinkOffset, LinkState, Offset
from terascope.operate.causes import causes
from terascope.operate.query_report import covered, moment_ns
from terascope.operate.reporting import Process, Rates, Reporter, used_memory
from terascope.operate.source_report import RunFacts
from terascope.operate.status import RunStatus, Status
from terascope.physical.stream.plan import StreamPlan
from terascope.physical.stream.rules import SetTexts, plan_stream
from terascope.plan.expr import Col
from terascope.session import Session
from terascope.streaming.closing import ingest_heartbeats, scan_watermarks
from terascope.streaming.heartbeat import BatchReport, Heartbeat
from terascope.streaming.state.segments import Segment
from terascope.streaming.state.state import InterfaceReport, StreamProgress, StreamState

BEGIN = 1_700_000_000
"""2023-11-14 22:13:20 UTC."""
GSQL = """
QUERY talkers: SELECT tb, srcIP, COUNT(*) AS n FROM PKT GROUP BY time/10 AS tb, srcIP;
QUERY again: SELECT tb, COUNT(*) AS many FROM talkers GROUP BY tb;
QUERY syns: SELECT time, srcIP FROM eth0.TCP WHERE SYN;
QUERY sliding: SELECT srcIP, COUNT(*) AS c FROM UDP [RANGE '6 sec' SLIDE '3 sec'] GROUP BY srcIP;
QUERY pairs: SELECT a.tb, a.srcIP FROM talkers a, talkers b
    WHERE a.srcIP = b.srcIP AND a.tb = b.tb + 1;
"""


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


class Clock:
    """The time that a test says."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def planned(text: str, *interfaces: str) -> StreamPlan:
    session = Session()
    for name in interfaces:
        session.source(f"{name}=pcap:nowhere/{name}.pcap")
    compiled = session.query(text).compiled
    return plan_stream(compiled.job(live=True), SetTexts(compiled.texts()))


@pytest.fixture(scope="module")
def plan() -> StreamPlan:
    return planned(GSQL, "eth0", "eth1")


class Driven:
    """A run whose batches are made here."""

    def __init__(self, plan: StreamPlan, live: bool = True, heartbeat: float = 1.0) -> None:
        self.plan = plan
        self.clock = Clock(BEGIN)
        run = RunStatus(7, BEGIN, "set.gsql", "/state", None, heartbeat_seconds=heartbeat)
        facts = RunFacts(run, live, {"least": "3"})
        self.reporter = Reporter(plan, facts, self.clock, lambda: (1000, 50))
        self.state = StreamState(
            streams={stream.key: StreamProgress() for stream in plan.low},
            queries={output.name: StreamProgress() for output in plan.outputs},
        )
        self.batch = -1

    def run(
        self,
        at: float,
        heard: dict[str, InterfaceReport],
        quiet: Mapping[str, float | None],
        segments: tuple[Segment, ...] = (),
        until: int | None = None,
        ended: bool = False,
        seconds: float = 0.5,
    ) -> BatchReport:
        """A batch that is done `at` seconds after the beginning. `until`: how far groups closed."""
        self.batch += 1
        self.clock.now = BEGIN + at
        offset = Offset(
            {n: LinkOffset(0, None if q is None else ns(BEGIN + q)) for n, q in quiet.items()},
            now_ns=ns(BEGIN + at),
            ended=ended,
        )
        counters = {
            "tuples": sum(h.tuples for h in heard.values()),
            "passed": [10, 4, 2],
            "evicted": [0, 1, 0],
            "partials": [3, 0, 0],
        }
        names = [stream.name for stream in self.plan.low]
        hops = [("source", 1.0), ("low level", 2.0), ("slice store", 2.5)]
        beat = Heartbeat(0, heard, counters, names, hops, 77)
        state = self.state.copy()
        ingest_heartbeats(state, [beat], offset)
        state.batch, state.segments = self.batch, list(segments)
        for stream in self.plan.low:
            if stream.groups is not None:
                state.streams[stream.key].until = until
        for output in self.plan.outputs:
            if output.low is not None:
                key = self.plan.low[output.low].key
                state.queries[output.name].until = state.streams[key].until
        self.state = state
        watermarks = Watermarks(self.plan.trees, scan_watermarks(state.seen, 0, ended))
        report = BatchReport(
            self.batch, offset, state, [beat], {}, watermarks, seconds, [("sinks", 3.0)]
        )
        self.reporter.ingest(report)
        return report

    def status(self, *links: LinkState, rows: dict[str, int] | None = None) -> Status:
        return self.reporter.status(replace(self.reporter.facts.run, state="running"), links, rows)


def heard(tuples: int, first: float, last: float, **more: int) -> InterfaceReport:
    return InterfaceReport(
        tuples,
        tuples * 100,
        more.get("late", 0),
        {"cut": more["malformed"]} if "malformed" in more else {},
        smallest={"time": int(BEGIN + first), "timestamp": ns(BEGIN + first)},
        largest={"time": int(BEGIN + last), "timestamp": ns(BEGIN + last)},
        disorder={"time": 0, "timestamp": more.get("behind", 0)},
    )


def groups(plan: StreamPlan, low: int, high: int, rows: int = 5, length: int = 100) -> Segment:
    key = next(s.key for s in plan.low if s.groups is not None)
    return Segment(key, "groups", 0, f"{low}.slices", 0, length, rows, low, high)


# ---- sources -------------------------------------------------------------------------------------


def test_nothing_is_known_before_the_first_batch(plan: StreamPlan) -> None:
    status = Driven(plan).status(LinkState("eth1", 300, 1, 1, "cannot read it", None))
    assert [(s.name, s.kind, s.watermarks, s.clock) for s in status.sources] == [
        ("eth0", "pcap", {}, True),
        ("eth1", "pcap", {}, True),
    ]
    assert status.sources[1].stalled == "cannot read it"
    assert status.sources[1].backlog_bytes == 300
    assert status.run.batch == -1
    assert [q.name for q in status.queries] == ["talkers", "again", "syns", "sliding", "pairs"]
    assert Status.from_json(status.to_json()) == status


def test_rates_counts_and_watermarks_of_sources(plan: StreamPlan) -> None:
    run = Driven(plan)
    run.run(2, {"eth0": heard(100, 0, 1.9)}, {"eth0": 2, "eth1": 2}, seconds=2.0)
    run.run(
        4,
        {"eth0": heard(300, 1.9, 3.5, late=2, malformed=3, behind=40)},
        {"eth0": 3, "eth1": 1},
    )
    eth0, eth1 = run.status(LinkState("eth0", 55, 2, 1, None, None)).sources
    assert eth0.rate == pytest.approx(400 / 4)
    assert (eth0.tuples, eth0.bytes, eth0.late, eth0.malformed) == (400, 40_000, 2, 3)
    assert eth0.watermarks == {"timestamp": ns(BEGIN + 3.5), "time": BEGIN + 3}
    assert eth0.watermark_ns == ns(BEGIN + 3.5)
    assert (eth0.disorder_observed, eth0.disorder_declared, eth0.disorder_unit) == (40, 0, "ns")
    assert eth0.backlog_bytes == 55
    assert eth0.silent_seconds == 0
    assert eth1.watermark_ns == ns(BEGIN + 2), "a watermark never goes back"
    assert (eth1.rate, eth1.silent_seconds) == (0.0, 2.0)


def test_a_source_without_heartbeats_is_stalled(plan: StreamPlan) -> None:
    run = Driven(plan)
    for at in range(12):
        run.run(at, {"eth0": heard(1, at, at)}, {"eth0": at, "eth1": min(at, 2)})
        eth0, eth1 = run.status().sources
        assert eth0.stalled is None
        assert (eth1.stalled is not None) == (at > 2 + 3 + 3), at
    assert eth1.stalled == "no heartbeat for 9.0 s"
    assert (eth0.heartbeat, eth1.heartbeat) == (12, 3)
    waiting = run.status(LinkState("eth1", 10, 1, 1, None, None)).sources[1]
    assert waiting.stalled is None, "it waits for its turn"


def test_slow_batches_and_no_heartbeats_stall_nobody(plan: StreamPlan) -> None:
    slow, mute = Driven(plan), Driven(plan, heartbeat=0.0)
    for run in (slow, mute):
        for at in (0, 30, 60):
            run.run(at, {"eth0": heard(1, at, at)}, {"eth0": at, "eth1": 0}, seconds=29.0)
        assert run.status().sources[1].stalled is None


# ---- queries -------------------------------------------------------------------------------------


def test_queries_are_closed_as_far_as_their_windows(plan: StreamPlan) -> None:
    run = Driven(plan)
    tb = BEGIN // 10
    held = (groups(plan, tb + 1, tb + 2), groups(plan, tb + 2, tb + 4, rows=7))
    run.run(25, {"eth0": heard(9, 0, 25)}, {"eth0": 25, "eth1": 24}, held, until=tb + 2)
    run.clock.now = BEGIN + 26
    status = run.status(rows={"talkers": 11})
    talkers = status.query("talkers")
    assert talkers is not None
    assert (talkers.rows, talkers.last_epoch) == (11, str(tb + 1))
    assert talkers.closed_until == "2023-11-14 22:13:40"
    assert talkers.closed_until_ns == ns(BEGIN + 20)
    assert talkers.lag_seconds == pytest.approx(6)
    assert (talkers.pending_rows, talkers.pending_bytes, talkers.open_slices) == (12, 200, 3)
    again = status.query("again")
    assert again is not None
    assert again.closed_until == talkers.closed_until
    syns = status.query("syns")
    assert syns is not None
    assert syns.closed_until_ns == ns(BEGIN + 25), "a selection waits for nothing"
    assert (syns.pending_rows, syns.holds) == (0, ())
    assert (status.store.segments, status.store.files, status.store.groups) == (2, 2, 12)
    assert status.store.open_slices == 3


def test_bounds_of_spark_queries_as_time(plan: StreamPlan) -> None:
    run = Driven(plan)
    tb = BEGIN // 10
    # Windows that end before that are complete: the last of them ends at BEGIN + 1.
    run.state.queries["sliding"].bounds = [BEGIN + 4]
    run.state.queries["pairs"].bounds = [tb + 1]
    run.run(12, {"eth0": heard(9, 0, 12)}, {"eth0": 12, "eth1": 12}, until=tb + 1)
    status = run.status()
    sliding, pairs = status.query("sliding"), status.query("pairs")
    assert sliding is not None
    assert (sliding.closed_until_ns, sliding.last_epoch) == (ns(BEGIN + 1), None)
    assert pairs is not None
    assert (pairs.closed_until_ns, pairs.last_epoch) == (ns(BEGIN + 10), str(tb))


def test_the_slowest_input_holds_back(plan: StreamPlan) -> None:
    run = Driven(plan)
    tb = BEGIN // 10
    held = (groups(plan, tb, tb + 3),)
    for at in range(40):
        quiet = {"eth0": float(at), "eth1": min(at, 5.0)}
        run.run(at, {"eth0": heard(1, at, at)}, quiet, held, until=tb)
    status = run.status()
    talkers, syns = status.query("talkers"), status.query("syns")
    assert talkers is not None
    (hold,) = talkers.holds
    assert (hold.input, hold.watermark) == ("eth1", "2023-11-14 22:13:25")
    assert hold.behind_seconds == pytest.approx(34)
    assert causes(status, talkers)[0].kind == "stalled"
    assert syns is not None
    assert syns.holds == ()


def test_slices_that_wait_for_the_run_itself_are_told_apart(plan: StreamPlan) -> None:
    run = Driven(plan)
    tb = BEGIN // 10
    for at in (0, 60):
        run.run(
            at, {"eth0": heard(1, at, at)}, {"eth0": at, "eth1": at}, (groups(plan, tb, tb + 6),),
            until=tb,
        )  # fmt: skip
    status = run.status()
    talkers = status.query("talkers")
    assert talkers is not None
    assert talkers.holds == ()
    assert [cause.kind for cause in causes(status, talkers)] == ["flush"]


def test_a_window_that_is_not_over_is_held_back_by_nothing(plan: StreamPlan) -> None:
    run = Driven(plan)
    tb = BEGIN // 10
    run.run(21, {"eth0": heard(1, 0, 1)}, {"eth0": 5, "eth1": 5}, (groups(plan, tb + 2, tb + 2),),
            until=tb + 2)  # fmt: skip
    run.clock.now = BEGIN + 29
    talkers = run.status().query("talkers")
    assert talkers is not None
    assert talkers.closes_ns == ns(BEGIN + 30)
    assert (talkers.holds, talkers.flushing) == ((), False)
    assert causes(run.status(), talkers) == ()
    run.clock.now = BEGIN + 60
    talkers = run.status().query("talkers")
    assert talkers is not None
    assert {hold.input for hold in talkers.holds} == {"eth0", "eth1"}, "now it should be closed"


def test_a_run_that_is_well_or_over_holds_nothing_back(plan: StreamPlan) -> None:
    run = Driven(plan, live=False)
    run.run(25, {"eth0": heard(9, 0, 25)}, {"eth0": 25, "eth1": 25}, until=BEGIN // 10 + 2)
    assert {q.holds for q in run.status().queries} == {()}
    run.clock.now += 1000
    assert run.status().run.now_ns == ns(BEGIN + 25), "a replay has a time of its own"
    run.run(26, {}, {"eth0": 26, "eth1": 26}, ended=True)
    queries = run.status().queries
    assert {q.closed_until for q in queries} == {"the end"}
    assert {q.lag_seconds for q in queries} == {None}


def test_rows_that_wait_for_the_end_say_so(plan: StreamPlan) -> None:
    (sliding,) = [output for output in plan.outputs if output.name == "sliding"]
    assert sliding.release is not None
    at_end = replace(sliding, release=replace(sliding.release, kind="at_end", parts=()))
    run = Driven(replace(plan, outputs=(at_end,)))
    run.run(1, {"eth0": heard(1, 0, 1)}, {"eth0": 1, "eth1": 1})
    status = run.status()
    (query,) = status.queries
    assert query.closed_until is None
    assert causes(status, query)[0].what == "its rows are known when all sources have ended"


# ---- the low level, memory -----------------------------------------------------------------------


def test_low_level_counters_add_up(plan: StreamPlan) -> None:
    run = Driven(plan)
    for at in (1, 2):
        run.run(at, {"eth0": heard(50, 0, 1)}, {"eth0": 1, "eth1": 1})
    first, second, *_ = run.status().low
    assert set(first.queries) == {"talkers", "again", "pairs"}
    assert second.queries == ("syns",)
    assert (first.tuples_in, first.passed, first.selectivity) == (100, 20, 0.2)
    assert (first.partials, second.evicted) == (6, 2)
    assert first.cost_ns == pytest.approx(2 * 0.5e9 / 100)
    traces = run.status().traces
    assert [t.id for t in traces] == ["0-0", "1-0"]
    assert [hop for hop, _ in traces[0].hops] == ["source", "low level", "slice store", "sinks"]


def test_after_a_restart_the_checkpoint_is_known_before_the_first_batch(plan: StreamPlan) -> None:
    before = Driven(plan)
    tb = BEGIN // 10
    held = (groups(plan, tb + 2, tb + 4, rows=7),)
    before.run(25, {"eth0": heard(9, 0, 25)}, {"eth0": 25, "eth1": 24}, held, until=tb + 2)
    after = Driven(plan)
    after.reporter.follow(plan, before.state)
    status = after.status(rows={"talkers": 11})
    assert (status.store.open_slices, status.store.segments) == (3, 1)
    talkers = status.query("talkers")
    assert talkers is not None
    assert (talkers.open_slices, talkers.pending_rows, talkers.rows) == (3, 7, 11)
    assert talkers.closed_until == "2023-11-14 22:13:40"


def test_the_run_itself(plan: StreamPlan) -> None:
    run = Driven(plan)
    run.run(1, {}, {"eth0": 1, "eth1": 1})
    failed = replace(
        run.reporter.facts.run, state="restarting", restarts=2, last_error="disk full", batch=41
    )
    told = run.reporter.status(failed).run
    assert (told.state, told.restarts, told.last_error) == ("restarting", 2, "disk full")
    assert (told.batch, told.batch_seconds) == (0, 0.5)
    assert (told.driver_memory_bytes, told.worker_memory_bytes) == (1000, 77)
    assert run.status().parameters == {"least": "3"}
    assert Driven(plan).reporter.status(failed).run.batch == 41


def test_a_set_that_changes_is_followed(plan: StreamPlan) -> None:
    run = Driven(plan)
    run.run(2, {"eth0": heard(50, 0, 2)}, {"eth0": 2, "eth1": 2})
    changed = planned("QUERY other: SELECT time, len FROM eth0.PKT;", "eth0")
    state = run.state.copy()
    state.streams = {stream.key: StreamProgress() for stream in changed.low}
    state.queries = {"other": StreamProgress()}
    run.reporter.follow(changed, state)
    status = run.status()
    assert [q.name for q in status.queries] == ["other"]
    assert [s.name for s in status.sources] == ["eth0"]
    assert status.queries[0].closed_until_ns == ns(BEGIN + 2)
    assert [low.queries for low in status.low] == [("other",)]


def test_groups_that_live_on_are_held_too() -> None:
    plan = planned(
        "QUERY q: SELECT tb, srcIP, COUNT(*) AS n FROM PKT GROUP BY time/10 AS tb, srcIP"
        " CLOSING_WHEN COUNT(*) > 3;",
        "eth0",
    )
    (living,) = plan.running
    run = Driven(plan)
    kept = Segment(living.key, "rows", 0, "x.slices", 0, 40, 4, 1, 2)
    run.run(2, {"eth0": heard(5, 0, 2)}, {"eth0": 2}, (kept,))
    (query,) = run.status().queries
    assert (query.pending_rows, query.pending_bytes, query.open_slices) == (4, 40, 0)


def test_memory_of_a_family_of_processes() -> None:
    family = [
        Process(1, 0, "init", 1),
        Process(2, 1, "python", 10),
        Process(3, 2, "java", 100),
        Process(4, 3, "python", 1000),
        Process(5, 4, "python", 10_000),
        Process(6, 1, "python", 100_000),
    ]
    assert used_memory(2, family) == (110, 11_000)


def test_rates_are_those_of_the_last_seconds() -> None:
    rates = Rates(span=10)
    assert rates.at(0) == {}
    rates.add(0, 1, {"a": 100})
    assert rates.at(1) == {"a": 100.0}
    rates.add(9, 10, {"a": 10, "b": 20})  # what came since 1 is in it
    assert rates.at(10) == {"a": 11.0, "b": 2.0}
    assert rates.at(15) == {"a": pytest.approx(10 / 14), "b": pytest.approx(20 / 14)}
    assert rates.at(20) == {}


def test_spans_are_counted_once() -> None:
    assert covered([]) == 0
    assert covered([(5, 7), (1, 2), (6, 9), (6, 6)]) == 7
    assert covered([(3, 2)]) == 0


def test_moments_are_found_through_expressions(plan: StreamPlan) -> None:
    rel = plan.trees.streams["talkers"]
    tb = Col("tb", rel.type_of("tb"))
    assert moment_ns(tb, BEGIN // 10, rel, plan.trees) == ns(BEGIN)
    assert moment_ns(Col("n", rel.type_of("n")), 5, rel, plan.trees) is None
    assert moment_ns(tb, None, rel, plan.trees) is None


def test_a_declared_disorder_is_taken_off(tmp_path: Path) -> None:
    session = Session()
    session.source(f"log=csv:{tmp_path}/log.csv")
    (tmp_path / "log.csv").write_text("at,n\n1,2\n")
    compiled = session.query(
        "PROTOCOL LOG (at UINT clock(s) banded_increasing(5), n UINT);"
        " QUERY q: SELECT tb, COUNT(*) AS c FROM log.LOG GROUP BY at/10 AS tb;"
    ).compiled
    plan = plan_stream(compiled.job(live=True), SetTexts(compiled.texts()))
    run = Driven(plan)
    seen = InterfaceReport(
        3, 30, largest={"at": BEGIN + 9}, smallest={"at": BEGIN}, disorder={"at": 2}
    )
    run.run(9, {"log": seen}, {"log": None})
    (log,) = run.status().sources
    assert (log.watermarks, log.watermark_ns) == ({"at": BEGIN + 4}, ns(BEGIN + 4))
    assert (log.disorder_observed, log.disorder_declared, log.disorder_unit) == (2, 5, "s")
    assert log.clock
