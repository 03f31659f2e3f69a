"""Which queries tasks compute from closed rows, and that a range lets go what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from terascope import Session
from terascope.analysis.moving import ALL
from terascope.physical.stream.plan import RowPipelines, StreamPlan
from terascope.streaming.tasks.work import DueRange
from terascope.streams import planned_stream
from tests.cli.calls import small_trace

SET = """
QUERY here: SELECT tb, srcIP, count(*) AS n FROM eth0.TCP GROUP BY time/3 AS tb, srcIP;
QUERY there: SELECT tb, srcIP, count(*) AS n FROM eth1.TCP GROUP BY time/3 AS tb, srcIP;
QUERY both: MERGE here.tb : there.tb FROM here, there;
QUERY busy: SELECT tb, n + 1 AS more FROM both WHERE n > 2;
QUERY syns: SELECT time, srcIP FROM TCP WHERE SYN;
QUERY summed: SELECT tb, sum(n) AS n FROM both GROUP BY tb;
QUERY sliding: SELECT count(*) AS n FROM eth0.TCP [RANGE 9 SLIDE 3];
QUERY best: SELECT tb, n FROM both ORDER BY n DESC LIMIT 2;
QUERY best_of_minutes: SELECT srcIP, count(*) AS n, wend FROM eth0.TCP [RANGE 60 SLIDE 60]
GROUP BY srcIP ORDER BY n DESC LIMIT 2;
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> StreamPlan:
    trace: Path = small_trace(tmp_path_factory.mktemp("traces") / "trace.pcap", 100)
    session = Session()
    session.source(f"eth0=pcap:{trace}")
    session.source(f"eth1=pcap:{trace}")
    return planned_stream(session.query(SET).compiled)


def test_rows_that_are_filtered_projected_and_merged_are_the_tasks(plan: StreamPlan) -> None:
    found = {o.name: o.plan for o in plan.outputs if isinstance(o.plan, RowPipelines)}
    assert set(found) == {"both", "busy", "syns"}
    assert {one.placement for one in found.values()} == {"close"}
    assert len(found["both"].inputs) == len(found["busy"].inputs) == 2
    assert len(found["syns"].inputs) == 1, "one low-level stream of two interfaces"


def test_every_query_has_a_placement(plan: StreamPlan) -> None:
    placed = {o.name: o.placement for o in plan.outputs}
    assert {name for name, place in placed.items() if place == "spark"} == {
        "summed",
        "best",
        "best_of_minutes",
    }
    assert placed["here"] == placed["sliding"] == "close"


def test_no_query_waits_for_the_end(plan: StreamPlan) -> None:
    releases = {o.name: o.release for o in plan.outputs if o.release is not None}
    assert "best_of_minutes" in releases
    assert "at_end" not in {release.kind for release in releases.values()}


@pytest.mark.parametrize(
    ("low", "high", "descending", "kept"),
    [
        (None, 3, False, [1, 2]),
        (2, 4, False, [2, 3]),
        (2, ALL, False, [2, 3, 4, None]),
        (None, ALL, False, [1, 2, 3, 4, None]),
        (2, None, False, []),
        (None, 2, True, [3, 4]),
        (3, 1, True, [2, 3]),
        (3, ALL, True, [1, 2, 3, None]),
    ],
)
def test_a_range_lets_go(low: Any, high: Any, descending: bool, kept: list[int | None]) -> None:
    values = pa.array([1, 2, 3, 4, None])
    assert values.filter(DueRange(low, high, descending).has(values)).to_pylist() == kept
