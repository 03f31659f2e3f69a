"""A set that runs is found by the commands, takes another parameter, and shows what is internal."""

from __future__ import annotations

import struct
import threading
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from terascope import Config, Session
from terascope.cli.running_set import wait_until
from terascope.diagnostic import StreamError
from terascope.operate.control_requests import send_request
from terascope.operate.server import fetch_status
from terascope.streaming.state.runs import find_run
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate
from tests.settings import Changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from terascope.streaming.heartbeat import BatchReport

SET = """
PARAM { floor INT; }
DEFINE { query_name 'counted'; visibility 'internal'; }
SELECT tb, srcIP, count(*) AS n FROM IPV4 WHERE len > $floor GROUP BY time/2 AS tb, srcIP;
QUERY busy: SELECT tb, srcIP, n FROM counted WHERE n > 1;
QUERY large: SELECT tb, count(*) AS n, sum(len) AS bytes FROM IPV4 WHERE len > $floor
GROUP BY time/3 AS tb;
QUERY long: SELECT time, srcIP, len FROM IPV4 WHERE len > $floor;
"""
PACKETS = 3000
HEADER, RECORD = 24, 16
"""Bytes of a capture before its first packet, and before each."""
LENGTHS = {"busy": 2, "large": 3, "long": 1, "counted": 2}
pytestmark = pytest.mark.spark


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def batch_rows(session: Session, floor: int) -> dict[str, list[tuple[Any, ...]]]:
    """As a batch gives them, the internal query included."""
    text = SET.replace(" visibility 'internal';", "")
    results = session.query(text, floor=floor).run()
    return {name: rows_of(results[name].to_arrow()) for name in LENGTHS}


def in_two(trace: Path, folder: Path) -> Path:
    """The first half of a capture in a folder; the second beside it, until it comes."""
    content = trace.read_bytes()
    at = HEADER
    while at < len(content) // 2:
        at += RECORD + struct.unpack_from("<I", content, at + 8)[0]
    folder.mkdir()
    (folder / "a.pcap").write_bytes(content[:at])
    later = trace.with_name("b.pcap")
    later.write_bytes(content[:HEADER] + content[at:])
    return later


@dataclass(frozen=True)
class Traffic:
    session: Session
    folder: Path
    later: Path


@pytest.fixture
def traffic(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Traffic:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    generate(Profile(packets=PACKETS, rate=100.0, seed=5), tmp_path / "trace.pcap")
    later = in_two(tmp_path / "trace.pcap", tmp_path / "in")
    session = Session(spark=spark, config=Config(split_bytes=20_000))
    session.source(f"eth0=pcap:{tmp_path / 'in'}")
    return Traffic(session, tmp_path / "in", later)


def test_requests_are_applied_at_one_edge_for_all_queries(traffic: Traffic, tmp_path: Path) -> None:
    session, queries = traffic.session, traffic.session.query(SET, floor=0)
    where = tmp_path / "state", tmp_path / "out"
    # Without heartbeats only tuples move time: the second half is not late, whenever it comes.
    settings: Changes = {"heartbeat": 0, "trigger": 0.2}
    all_read = threading.Event()

    def watch(report: BatchReport) -> None:
        if sum(seen.tuples for seen in report.state.seen.values()) == PACKETS:
            all_read.set()

    with queries.stream(*where, **settings, watch=watch) as running:
        run = find_run()
        assert run.checkpoint == str(tmp_path / "state")
        assert next(iter(running.subscribe("large"))).num_rows, "it has begun"
        running.subscribe("counted")
        send_request(run, "floor", "300")
        status = wait_until(run, "floor", lambda text: text == "300", 120)
        edge = datetime.fromisoformat(status.run.parameter_edges["floor"]).timestamp()
        traffic.later.rename(traffic.folder / "b.pcap")
        assert all_read.wait(120)
    with queries.stream(*where, **settings, until_idle=True) as running:
        assert running.wait(120)
        given = {
            name: [
                row for table in running.subscribe(name, from_start=True) for row in rows_of(table)
            ]
            for name in LENGTHS
        }
    assert "counted" not in {path.name for path in (tmp_path / "out").iterdir()}
    shown = given.pop("counted")
    low, high = batch_rows(session, 0), batch_rows(session, 300)
    for name, rows in given.items():
        before = [row for row in low[name] if row[0] * LENGTHS[name] < edge]
        after = [row for row in high[name] if row[0] * LENGTHS[name] >= edge]
        assert before, f"{name} has rows before the edge"
        assert after, f"{name} has rows after it"
        assert Counter(rows) == Counter(before + after), name
    # What is internal begins with a whole slice, and misses none from there on.
    first = min(row[0] for row in shown)
    wanted = [r for r in low["counted"] if first <= r[0] and r[0] * 2 < edge]
    wanted += [r for r in high["counted"] if first <= r[0] and r[0] * 2 >= edge]
    assert Counter(shown) == Counter(wanted)


def test_a_set_is_found_while_it_runs_and_not_afterwards(traffic: Traffic, tmp_path: Path) -> None:
    queries = traffic.session.query(SET, floor=0)
    with queries.stream(tmp_path / "state", speed="1x") as running:
        status = fetch_status(find_run())
        assert {query.name for query in status.queries} == {"busy", "large", "long"}
        assert running.run is not None
    with pytest.raises(StreamError, match="no set is running"):
        find_run()
    with (
        queries.stream(tmp_path / "other", speed="1x", port=None),
        pytest.raises(StreamError, match="no set is running"),
    ):
        find_run()
