"""Why a window is open, and what is advised."""

from __future__ import annotations

from dataclasses import replace

import pytest

from terascope.operate.causes import causes, expectation
from terascope.operate.status import Hold, QueryStatus, SourceStatus, Status
from tests.operate.statuses import STATUS, TALKERS, run_status

HELD = Hold("eth0", "100", 35.0)


def held_by(source: SourceStatus, hold: Hold = HELD) -> tuple[Status, QueryStatus]:
    query = QueryStatus("talkers", lag_seconds=40.0, open_slices=3, holds=(hold,))
    return Status(run_status(), (source,), (query,)), query


ETH0 = SourceStatus("eth0", "csv")


@pytest.mark.parametrize(
    ("source", "kind", "what", "advice"),
    [
        (
            replace(ETH0, stalled="permission denied", backlog_bytes=5, silent_seconds=99),
            "stalled",
            "is stalled: permission denied",
            "see to eth0",
        ),
        (
            replace(ETH0, backlog_bytes=3_400_000),
            "backlog",
            "has 3.4 MB that are not read yet",
            "it is being read",
        ),
        (
            replace(ETH0, silent_seconds=35.0, clock=False),
            "silent",
            "has been silent for 35 s, and none of its columns is a clock",
            "declare clock() on the time column in the PROTOCOL of eth0",
        ),
        (
            replace(ETH0, silent_seconds=35.0),
            "silent",
            "has been silent for 35 s",
            "the clock moves its watermark on",
        ),
        (
            replace(ETH0, disorder_declared=60_000, disorder_unit="ms", disorder_observed=12),
            "disorder",
            "may give tuples that are up to 1 min late",
            "declare less disorder for eth0: 12 ms is what was seen so far",
        ),
        (replace(ETH0, disorder_declared=5), "other", "has no later watermark", "nothing"),
        (
            replace(ETH0, disorder_declared=99, disorder_unit="packets"),
            "other",
            "has no later watermark",
            "nothing",
        ),
    ],
)
def test_a_source(source: SourceStatus, kind: str, what: str, advice: str) -> None:
    (cause,) = causes(*held_by(source))
    assert (cause.kind, cause.input, cause.watermark, cause.behind_seconds) == (
        *(kind, "eth0", "100", 35.0),
    )
    assert cause.what == what
    assert advice in cause.advice


def test_what_the_run_says_is_believed_where_nothing_better_is_known() -> None:
    reasoned = replace(HELD, reason="waits for its first tuple")
    assert causes(*held_by(ETH0, reasoned))[0].what == "waits for its first tuple"
    stalled = replace(ETH0, stalled="gone")
    assert causes(*held_by(stalled, reasoned))[0].what == "is stalled: gone"


def test_another_stream_of_the_set_and_an_input_nobody_knows() -> None:
    above = QueryStatus("heavy", holds=(Hold("talkers", "100", 40.0), Hold("moon", None, None)))
    stream, unknown = causes(replace(STATUS, queries=(above, TALKERS)), above)
    assert (stream.kind, stream.advice[-21:]) == ("stream", "terascope why talkers")
    assert (unknown.kind, unknown.watermark) == ("other", None)


def test_order_is_that_of_the_holds() -> None:
    assert [cause.input for cause in causes(STATUS, TALKERS)] == ["eth1", "eth0"]


def test_a_slow_flush_is_the_run_itself() -> None:
    waiting = QueryStatus("talkers", lag_seconds=40.0, open_slices=7, flushing=True)
    (cause,) = causes(STATUS, waiting)
    assert (cause.kind, cause.input) == ("flush", None)
    assert cause.what == "7 slices are complete and not written yet; batches take 0.31 s"
    assert causes(STATUS, replace(waiting, lag_seconds=2.0)) == ()
    assert causes(STATUS, replace(waiting, flushing=False)) == (), "its window is not over yet"


def test_without_heartbeats_silence_is_not_blamed_on_the_source() -> None:
    status, query = held_by(replace(ETH0, silent_seconds=35.0))
    (cause,) = causes(replace(status, run=replace(status.run, heartbeat_seconds=0.0)), query)
    assert cause.kind == "mute"
    assert "heartbeats are off: silence closes no window" in cause.what
    assert "--heartbeat 1s" in cause.advice


def test_a_source_that_is_gone_and_a_replay() -> None:
    gone = replace(ETH0, stalled="'/x' is not there", away=True, waited_for_seconds=120.0)
    (cause,) = causes(*held_by(gone))
    assert (cause.kind, cause.what) == ("away", "cannot be read: '/x' is not there")
    assert "the others wait for it for 2 min (--liveness)" in cause.advice
    (cause,) = causes(*held_by(replace(gone, waited_for_seconds=None, left_behind=True)))
    assert "the others go on without it" in cause.advice
    (cause,) = causes(*held_by(replace(ETH0, replay=True, replay_behind_seconds=86400.0)))
    assert cause.kind == "replay"
    assert cause.what.startswith("is a replay: its tuples are 1 d behind the clock")


HEALTHY = QueryStatus(
    "talkers", closed_until="x", inputs=("eth0",), closes_ns=1_700_001_250 * 10**9
)


@pytest.mark.parametrize(
    ("source", "heartbeat", "words"),
    [
        (ETH0, 1.0, "ends at 2023-11-14 22:34:10, and closes at about 2023-11-14 22:34:12, after"),
        (
            replace(ETH0, disorder_declared=60.0),
            1.0,
            "closes at about 2023-11-14 22:35:12, after the skew of 2.0 s and the declared disorder"
            " of 1 min, with the next heartbeat",
        ),
        (ETH0, 0.0, "heartbeats are off, so that silence does not close it: run with --heartbeat"),
        (replace(ETH0, replay=True), 1.0, "closes with a tuple of eth0 of then or later: a replay"),
        (replace(ETH0, begun=False), 1.0, "there is no window yet: eth0 has given no tuple"),
    ],
)
def test_a_healthy_window_says_when_it_closes(
    source: SourceStatus, heartbeat: float, words: str
) -> None:
    run = replace(run_status(), heartbeat_seconds=heartbeat, skew_seconds=2.0)
    assert words in expectation(Status(run, (source,), (HEALTHY,)), HEALTHY)


def test_before_the_first_batch_nothing_is_said_to_be_well() -> None:
    assert "not done yet" in expectation(Status(run_status(batch=-1)), QueryStatus("talkers"))
