"""A set that runs is found by the commands, takes another parameter, and shows what is internal."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from terascope import Config, Session
from terascope.cli.set import leave_order, wait_until
from terascope.connectors.generate import Profile, generate
from terascope.running import StreamSettings
from terascope.session import QuerySet
from terascope.stream.client import fetch_status
from terascope.stream.runs import find_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SET = """
PARAM { floor INT; }
DEFINE { query_name 'counted'; visibility 'internal'; }
SELECT tb, srcIP, count(*) AS n FROM IPV4 WHERE len > $floor GROUP BY time/2 AS tb, srcIP;
QUERY busy: SELECT tb, srcIP, n FROM counted WHERE n > 1;
QUERY large: SELECT tb, count(*) AS n, sum(len) AS bytes FROM IPV4 WHERE len > $floor
GROUP BY time/3 AS tb;
QUERY long: SELECT time, srcIP, len FROM IPV4 WHERE len > $floor;
"""
LENGTHS = {"busy": 2, "large": 3, "long": 1, "counted": 2}
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session_orders")]


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def batch_rows(session: Session, floor: int) -> dict[str, list[tuple[Any, ...]]]:
    """As a batch gives them, the internal query included."""
    text = SET.replace(" visibility 'internal';", "")
    results = session.query(text, floor=floor).run()
    return {name: rows_of(results[name].to_arrow()) for name in LENGTHS}


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Session:
    trace = tmp_path_factory.mktemp("traces") / "trace.pcap"
    generate(Profile(packets=6000, rate=100.0, seed=5), trace)
    made = Session(spark=spark, config=Config(split_bytes=20_000))
    made.source(f"eth0=pcap:{trace}")
    return made


@pytest.fixture(scope="module")
def queries(session: Session) -> QuerySet:
    return session.query(SET, floor=0)


def test_orders_are_taken_at_one_edge_for_all_queries(
    session: Session, queries: QuerySet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    settings = StreamSettings(speed="4x", until_idle=True, trigger_seconds=0.2)
    with queries.stream(tmp_path / "state", tmp_path / "out", settings=settings) as running:
        run = find_run()
        assert run.checkpoint == str(tmp_path / "state")
        assert next(iter(running.subscribe("large"))).num_rows, "it has begun"
        followed = running.subscribe("counted")
        leave_order(run, "floor", "300")
        status = wait_until(run, "floor", lambda text: text == "300", 30)
        edge = datetime.fromisoformat(status.run.parameter_edges["floor"]).timestamp()
        assert not running.wait(0), "the edge lies within the trace"
        assert running.wait(120)
        shown = [row for table in followed for row in rows_of(table)]
        given = {
            name: [row for table in running.subscribe(name) for row in rows_of(table)]
            for name in ("busy", "large", "long")
        }
        assert "counted" not in {path.name for path in (tmp_path / "out").iterdir()}
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


def test_a_set_is_found_while_it_runs_and_not_afterwards(
    queries: QuerySet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    with queries.stream(tmp_path / "state", settings=StreamSettings(speed="1x")) as running:
        status = fetch_status(find_run())
        assert {query.name for query in status.queries} == {"busy", "large", "long"}
        assert running.run is not None
    with pytest.raises(Exception, match="no set is running"):
        find_run()
    quiet = StreamSettings(speed="1x", port=None)
    with (
        queries.stream(tmp_path / "other", settings=quiet),
        pytest.raises(Exception, match="no set is running"),
    ):
        find_run()
