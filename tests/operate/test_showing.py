"""Internal streams that somebody follows: copies beside what is there, asked for by an order."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from terascope import Session
from terascope.diagnostic import StreamError
from terascope.operate.control_requests import (
    SHOWN,
    apply_request,
    internal_streams,
    pending_requests,
    rows_folder,
)
from terascope.pipeline import Compiled
from terascope.streaming.state.runs import MANIFEST, Run, RunFolder, birth
from terascope.streaming.state.state import StreamState
from terascope.streams import planned_stream
from tests.cli.calls import small_trace

SET = """
DEFINE { query_name 'syns'; visibility 'internal'; } SELECT time, srcIP, destIP FROM TCP WHERE SYN;
DEFINE { query_name 'counted'; visibility 'internal'; }
SELECT tb, srcIP, count(*) AS n FROM syns GROUP BY time/3 AS tb, srcIP;
QUERY busy: SELECT tb, srcIP, n FROM counted WHERE n > 1;
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    session = Session()
    trace = small_trace(tmp_path_factory.mktemp("traces") / "trace.pcap", 100)
    session.source(f"eth0=pcap:{trace}")
    return session.query(SET).compiled


def run_at(folder: Path, alive: bool = True) -> Run:
    pid = os.getpid()
    born = birth(pid) if alive else "long ago"
    internal = {"counted": str(folder / "results" / "counted")}
    return Run(pid, 1, "set.gsql", str(folder), born=born, internal=internal)


def test_copies_are_delivered_and_nothing_else_is_planned_otherwise(compiled: Compiled) -> None:
    before = planned_stream(compiled)
    after = planned_stream(compiled, StreamState(shown=["syns", "counted"]))
    assert [o.name for o in before.outputs] == ["busy"]
    assert [o.name for o in after.outputs] == ["busy", "syns" + SHOWN, "counted" + SHOWN]
    assert {low.key for low in before.low} <= {low.key for low in after.low}
    made_of = [plan.low[plan.outputs[0].low or 0] for plan in (before, after)]
    assert made_of[0].key == made_of[1].key
    assert made_of[0].texts == made_of[1].texts
    rows = compiled.showing(["counted"]).plan["counted" + SHOWN].rel.fields
    assert rows == compiled.plan["counted"].rel.fields


def test_a_set_without_them_is_as_it_was(compiled: Compiled) -> None:
    assert compiled.showing([]) is compiled
    assert compiled.showing(["busy", "unknown"]) is compiled
    assert internal_streams(compiled.plan) == ["syns", "counted"]


def test_an_order_is_taken_once(compiled: Compiled, tmp_path: Path) -> None:
    control = tmp_path / "control"
    control.mkdir()
    for place, name in enumerate(("counted", "counted", "busy", "unknown")):
        (control / f"show-{place}.json").write_text(json.dumps({"name": name}))
    state = StreamState()
    done = [
        apply_request(state, compiled.plan, request)
        for request in pending_requests(RunFolder(tmp_path))
    ]
    assert done == [True, False, False, False]
    assert state.shown == ["counted"]
    assert state.copy().shown == ["counted"]


def test_who_follows_an_internal_stream_asks_for_it_and_waits(tmp_path: Path) -> None:
    run = run_at(tmp_path)
    folder = Path(run.internal["counted"])

    def taken() -> None:
        (order,) = pending_requests(RunFolder.of(tmp_path))
        assert (order.name, order.value) == ("counted", None)
        folder.mkdir(parents=True)
        (folder / MANIFEST).touch()

    assert rows_folder(run, "counted", wait=taken) == folder
    assert rows_folder(run, "counted") == folder, "whoever comes later need not ask"


def test_a_run_that_does_not_answer_is_told(tmp_path: Path) -> None:
    times = iter(range(100))
    with pytest.raises(StreamError, match="has not begun to show 'counted' within 3 s"):
        rows_folder(run_at(tmp_path), "counted", 3, lambda: None, lambda: float(next(times)))
    with pytest.raises(StreamError, match="is internal, and nobody followed it"):
        rows_folder(run_at(tmp_path, alive=False), "counted")
    with pytest.raises(StreamError, match="no stream 'unknown'; it has: counted"):
        rows_folder(run_at(tmp_path), "unknown")
