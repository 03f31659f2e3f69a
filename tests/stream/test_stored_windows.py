"""Which queries over windows tasks put together, and that they read no slices for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope import Session
from terascope.physical.stream.plan import StreamPlan
from terascope.streaming.state.segments import Segment
from terascope.streaming.stored_rows import SLICES, StoredStream
from terascope.streaming.tasks.windows import DueSlices, DueWindows, Pieces
from terascope.streaming.tasks.work import DueRange
from terascope.streams import planned_stream
from tests.cli.calls import small_trace

SET = """
QUERY talkers: SELECT srcIP, count(*) AS n, sum(len) AS bytes FROM TCP [RANGE 60 SLIDE 5]
  GROUP BY srcIP HAVING count(*) > 2;
QUERY longer: SELECT srcIP, max(len) AS most, avg(len) AS mean FROM TCP [RANGE 90 SLIDE 30]
  GROUP BY srcIP;
QUERY total: SELECT wstart, count(*) AS n FROM TCP [RANGE 9 SLIDE 3];
QUERY best: SELECT srcIP, wend, count(*) AS n FROM TCP [RANGE 60 SLIDE 5] GROUP BY srcIP
  ORDER BY n DESC LIMIT 3;
QUERY middle: SELECT median(len) AS m FROM TCP [RANGE 9 SLIDE 3];
DEFINE { query_name 'filled'; empty 'emit'; }
  SELECT count(*) AS n FROM TCP [RANGE 9 SLIDE 3];
QUERY over: SELECT wend, max(n) AS n FROM talkers GROUP BY wend;
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> StreamPlan:
    trace: Path = small_trace(tmp_path_factory.mktemp("traces") / "trace.pcap", 100)
    session = Session()
    session.source(f"eth0=pcap:{trace}")
    return planned_stream(session.query(SET).compiled)


def test_windows_of_aggregates_that_can_be_merged_are_the_tasks(plan: StreamPlan) -> None:
    found = {o.name: o.windows for o in plan.outputs if o.windows is not None}
    assert set(found) == {"talkers", "longer", "total", "best", "middle"}
    same = {found[name].stream for name in ("talkers", "longer", "best")}
    assert len(same) == 1, "slices that are the same for all"


def segment(low: int, high: int) -> Segment:
    return Segment("s", "rows", 0, "f", 0, 100, 5, low, high)


def test_only_slices_of_due_windows_are_read(plan: StreamPlan) -> None:
    windows = {o.name: o.windows for o in plan.outputs}
    talkers, longer = windows["talkers"], windows["longer"]
    assert talkers is not None
    assert longer is not None
    leaf = StoredStream((), tuple(segment(at, at + 25) for at in range(0, 300, 30)))
    pieces = Pieces(plan.windows[talkers.stream], {SLICES: leaf}, talkers.slices)

    def starts(*due: DueWindows) -> list[object]:
        (made,) = DueSlices.of(due, [pieces], False).pieces
        return [s.low for s in made.leaves[SLICES].segments]

    one = DueWindows.of(talkers, DueRange(180, 185))
    assert starts(one) == [120, 150, 180]
    assert starts(one, DueWindows.of(longer, DueRange(180, 181))) == [90, 120, 150, 180]
    assert starts(DueWindows.of(talkers, DueRange(None, 60))) == [0, 30]


def test_a_window_is_let_go_by_its_begin_where_only_that_is_asked_for(plan: StreamPlan) -> None:
    total = next(o.windows for o in plan.outputs if o.name == "total")
    assert total is not None
    due = DueWindows.of(total, DueRange(30, 33))
    shift = 9 if total.by_start else 0
    assert (due.since, due.until) == (30 + shift, 33 + shift)
