"""A set as a stream in Python: stopped, gone on with, subscribed to, handed to a callback."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from terascope import Config, Session
from terascope.session import QuerySet
from terascope.streaming.heartbeat import BatchReport
from tests.cli.calls import small_trace
from tests.settings import Changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SET = """
QUERY flows: SELECT tb, srcIP, count(*) AS n FROM TCP GROUP BY time/3 AS tb, srcIP;
QUERY heavy: SELECT tb, max(n) AS most FROM flows GROUP BY tb;
QUERY syns: SELECT time, srcIP, destIP FROM TCP WHERE SYN;
"""
SETTINGS: Changes = {
    "speed": "max",
    "until_idle": True,
    "trigger": 0.0,
    "batch_bytes": 150_000,
    "tasks": 2,
}
pytestmark = pytest.mark.spark


class Taking:
    """Stores what it is called with and, once, is gone before it can say so."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.calls: list[tuple[str, int, pa.Table]] = []
        self.fail_at = fail_at

    def __call__(self, query: str, batch: int, rows: pa.Table, /) -> None:
        self.calls.append((query, batch, rows))
        if self.fail_at is not None and len(self.calls) == self.fail_at:
            raise ConnectionError("the store went away")


class Remembering(Taking):
    """The same, but it knows what it has."""

    def last(self, query: str, /) -> int | None:
        return max((b for q, b, _ in self.calls if q == query), default=None)


@pytest.fixture(scope="module")
def queries(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> QuerySet:
    trace = small_trace(tmp_path_factory.mktemp("traces") / "trace.pcap")
    session = Session(spark=spark, config=Config(split_bytes=50_000))
    session.source(f"eth0=pcap:{trace}")
    return session.query(SET)


@pytest.fixture(scope="module")
def expected(queries: QuerySet) -> dict[str, Counter[str]]:
    results = queries.run()
    return {q.name: counted([results[q.name].to_arrow()]) for q in queries.queries}


def counted(tables: list[pa.Table]) -> Counter[str]:
    return Counter(repr(tuple(row.values())) for table in tables for row in table.to_pylist())


def rows_of(calls: list[tuple[str, int, pa.Table]], query: str) -> Counter[str]:
    return counted([rows for name, _, rows in calls if name == query])


def test_a_set_that_is_stopped_goes_on_and_gives_every_row_once(
    queries: QuerySet, expected: dict[str, Counter[str]], tmp_path: Path
) -> None:
    two_done = threading.Event()

    def watch(report: BatchReport) -> None:
        if report.batch >= 1:
            two_done.set()

    first = Taking()
    with queries.stream(tmp_path / "state", None, watch=watch, callback=first, **SETTINGS) as run:
        assert two_done.wait(240)
    assert run.status().run.state == "stopped"
    assert not run.ended
    reached = run.batch
    assert {batch for _, batch, _ in first.calls} <= set(range(reached + 1))

    second = Remembering(fail_at=len(first.calls) + 2)
    second.calls = list(first.calls)
    said: list[str] = []
    with queries.stream(
        tmp_path / "state", None, say=said.append, callback=second, **SETTINGS
    ) as run:
        new = run.subscribe("flows")
        assert run.wait(240)
        everything = run.subscribe("flows", from_start=True, follow=False)
        status = run.status()
    for query, rows in expected.items():
        assert rows_of(second.calls, query) == rows, query
    assert counted(list(everything)) == expected["flows"]
    assert {batch.number for batch, _ in new.batches()} == {
        batch for query, batch, _ in second.calls if query == "flows" and batch > reached
    }
    (line,) = said
    assert "starts again in 1 s from its checkpoint: the store went away" in line
    assert (status.run.state, status.run.restarts) == ("stopped", 1)
    assert {q.name: q.rows for q in status.queries} == {
        name: rows.total() for name, rows in expected.items()
    }
    assert status.sources[0].tuples == 1500
    assert {q.closed_until for q in status.queries} == {"the end"}


def test_a_callback_that_did_not_acknowledge_is_called_again(
    queries: QuerySet, expected: dict[str, Counter[str]], tmp_path: Path
) -> None:
    taking = Taking(fail_at=1)
    running = queries.stream(
        tmp_path / "state", tmp_path / "out", "csv", callback=taking, **SETTINGS
    )
    with running:
        assert running.wait(240)
    (query, batch, rows), (again, same, equal), *rest = taking.calls
    assert (query, batch, rows) == (again, same, equal)
    for name, wanted in expected.items():
        assert rows_of([(again, same, equal), *rest], name) == wanted, name
    numbers = [batch for _, batch, _ in taking.calls]
    assert numbers == sorted(numbers)
    notes = sorted((tmp_path / "state" / "terascope" / "callback").iterdir())
    assert [path.name for path in notes] == ["flows.json", "heavy.json", "syns.json"]
