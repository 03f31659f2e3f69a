"""Slices that stay open for long: their partials are put together, and nothing is let go early."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from terascope.config import load_config
from terascope.operate.subscription import Subscription
from terascope.session import Session
from terascope.streaming.heartbeat import BatchReport
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate
from tests.settings import Changes

pytestmark = pytest.mark.spark

FLOWS = """
QUERY flows: SELECT tb, srcIP, COUNT(*) AS n, SUM(len) AS bytes FROM PKT
GROUP BY time/3 AS tb, srcIP;
"""


def test_partials_that_are_put_together_wait_for_the_rest(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent link and no heartbeats: everything waits for the end, in few segments."""
    monkeypatch.setattr("terascope.streaming.closing.MANY_SEGMENTS", 3)
    busy, silent = tmp_path / "busy.pcap", tmp_path / "silent.pcap"
    generate(Profile(rate=300, duration=9, seed=4, snaplen=64), busy)
    raw = busy.read_bytes()
    (length,) = struct.unpack_from("<I", raw, 24 + 8)
    silent.write_bytes(raw[: 24 + 16 + length])
    reports: list[BatchReport] = []
    with Session(spark, config=load_config(split_bytes=8192)) as session:
        session.source(f"busy=pcap:{busy}")
        session.source(f"silent=pcap:{silent}")
        queries = session.query(FLOWS)
        settings: Changes = {
            "speed": "max",
            "until_idle": True,
            "heartbeat": 0,
            "trigger": 0.0,
            "batch_bytes": 16384,
            "tasks": 2,
        }
        with queries.stream(tmp_path / "state", tmp_path / "out", **settings,
                            watch=reports.append) as running:  # fmt: skip
            assert running.wait(120)
        wanted = queries.run()["flows"].to_arrow()
    assert len(reports) > 6
    assert not any(sum(report.delivered.values()) for report in reports[:-1])
    assert max(len(report.state.segments) for report in reports) <= 2 * (2 * 3)
    found = pa.concat_tables(
        Subscription(tmp_path / "out" / "flows", follow=False, from_start=True)
    )
    order = [(name, "ascending") for name in wanted.schema.names]
    assert found.sort_by(order).to_pylist() == wanted.sort_by(order).to_pylist()
