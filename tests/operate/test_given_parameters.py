"""`set` and `--param`: the one that was given last holds, also when a run is started again."""

from __future__ import annotations

from pathlib import Path

from terascope.cli.run_stream import interrupted_text
from terascope.operate.control_requests import change, current, note_given
from terascope.session import Session
from terascope.streaming.state.state import StreamState

TEXT = """
PARAM { least UINT; }
QUERY heavy: SELECT tb, COUNT(*) AS n FROM PKT GROUP BY time/10 AS tb HAVING COUNT(*) > $least;
"""


def test_the_one_that_was_given_last_holds() -> None:
    session = Session()
    session.source("eth0=pcap:nowhere.pcap")
    plan = session.query(TEXT, least=3).compiled.plan
    state = StreamState()
    note_given(state, {"least": "3"}, plan)
    assert current(state, {}) == {"least": "3"}
    assert change(state, plan, "least", "5") is not None
    assert note_given(state.copy(), {"least": "3"}, plan) == [], "the same --param as before"
    again = state.copy()
    note_given(again, {"least": "3"}, plan)
    assert current(again, {}) == {"least": "5"}, "what was set stays"
    assert note_given(again, {"least": "7"}, plan) == ["least"]
    assert current(again, {}) == {"least": "7"}, "another --param was given later"
    note_given(again, {"least": "7"}, plan)
    assert current(again, {}) == {"least": "7"}


def test_a_second_interrupt_says_what_is_true(tmp_path: Path) -> None:
    assert interrupted_text(None, None) == (
        "interrupted; nothing is kept, for there is no --checkpoint"
    )
    assert str(tmp_path / "state") in interrupted_text(tmp_path / "state", None)
    assert str(tmp_path / ".checkpoint") in interrupted_text(None, tmp_path)
