"""A source that is faster than the pipeline: what is not read yet is seen as backlog and lag, a
micro-batch reads no more than it may, and when the source slows down the run catches up. Nothing
is late on the way: in = used + late + malformed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from prometheus_client.core import Metric

from terascope.operate.causes import causes
from terascope.operate.metrics import StatusCollector
from tests.properties.followed_folders import NOW, SECOND, Followed

TEXT: Final = """
PROTOCOL F (time UINT increasing clock(s), a INT);
QUERY counts: SELECT tb, COUNT(*) AS n FROM F GROUP BY time AS tb;
"""
BATCH_BYTES: Final = 3000
TUPLES: Final = 500
"""A second, of which a micro-batch takes less than half."""
BUSY: Final = 12


def value(metrics: list[Metric], name: str) -> float:
    (sample,) = (s for family in metrics for s in family.samples if s.name == name)
    return float(sample.value)


@pytest.mark.parametrize("killed", [False, True])
def test_backlog_and_lag_grow_and_are_caught_up(tmp_path: Path, killed: bool) -> None:
    followed = Followed(
        tmp_path, TEXT, ["eth0"], most_bytes=BATCH_BYTES, split_bytes=1024, heartbeat_ns=SECOND
    )
    backlogs, lags = [], []
    for second in range(BUSY):
        followed.drop("eth0", [NOW + second] * TUPLES)
        followed.seconds(1, kill="manifest" if killed and second % 4 == 3 else None)
        told = list(StatusCollector(lambda: followed.status).collect())
        backlogs.append(value(told, "terascope_source_backlog_bytes"))
        lags.append(value(told, "terascope_query_lag_seconds") if second > 2 else 0.0)
        assert followed.status.sources[0].backlog_bytes == backlogs[-1]
    assert backlogs == sorted(backlogs)
    assert backlogs[-1] > 1.5 * backlogs[BUSY // 2] > 0
    assert lags == sorted(lags)
    assert lags[-1] > BUSY // 2
    query = followed.status.query("counts")
    assert query is not None
    assert causes(followed.status, query)[0].kind == "backlog"

    waits = 0
    while followed.status.sources[0].backlog_bytes:
        followed.seconds(1)
        waits += 1
        assert waits < 10 * BUSY, "it does not catch up"
    followed.seconds(5)
    query = followed.status.query("counts")
    assert query is not None
    assert (query.lag_seconds or 0) <= 4, "only the skew and the last window are left"
    sizes = [sum(h.bytes for b in r.beats for h in b.interfaces.values()) for r in followed.heard]
    assert max(sizes) <= BATCH_BYTES, sizes
    assert min(sizes[2 : 2 + BUSY]) > BATCH_BYTES // 2, "a batch takes what it may"
    assert followed.late("eth0") == 0
    followed.finish()
    followed.assert_adds_up("counts", ["eth0"])
