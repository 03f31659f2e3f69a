"""Partitions send tuples by ranges of time where partial groups would be more work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.config import Config
from terascope.connectors.base import Edge, Split
from terascope.execute import held_payloads
from terascope.execute.sent_tuples import Sending, TupleSender, header_of
from terascope.kernels.merge.payload import unpack_tuples
from terascope.physical.job import SourceRead
from terascope.physical.time_ranges import TimeRanges, ranges_for
from terascope.session import Session

PROTOCOL = "PROTOCOL FLOW (at UINT increasing clock(s), a UINT, b UINT, c UINT, s STRING);"
ROWS = 60_000
SECONDS = 1000


def query(name: str, keys: str, more: str = "") -> str:
    return (
        f"QUERY {name}: SELECT tb, {keys}, COUNT(*) AS k, SUM(a) AS total, MIN(c) AS least"
        f" FROM f.FLOW GROUP BY at/50 AS tb, {keys}{more};"
    )


CENTRAL = [query(f"q{i}", keys) for i, keys in enumerate(("b, c", "b, s", "c, s", "b, c, s"))]
KEPT = query("kept", "a")
ABOVE = [
    query("top", "a", " ORDER BY k DESC, a LIMIT 2"),
    "QUERY slid: SELECT b, COUNT(*) AS k FROM f.FLOW [RANGE 100 SLIDE 50] GROUP BY b;",
    "QUERY both: SELECT q0.tb, q0.b, q0.k, q2.k AS other FROM q0, q2"
    " WHERE q0.tb = q2.tb AND q0.c = q2.c AND q0.b = q0.c;",
    "QUERY over: SELECT tb, MAX(k) AS most FROM q1 GROUP BY tb;",
]
TEXT = "\n".join([PROTOCOL, *CENTRAL, KEPT, *ABOVE])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of a thousand seconds, whole and in three partitions by `a`, of which nothing is
    known but their set. Tuples are up to two seconds out of order.
    """
    made = tmp_path_factory.mktemp("sent")
    rng = np.random.default_rng(5)
    at = np.sort(rng.integers(0, SECONDS, ROWS)) + rng.integers(0, 3, ROWS)
    columns = {"at": np.sort(at)}
    columns |= {n: rng.integers(0, most, ROWS) for n, most in zip("abc", (40, 60, 50), strict=True)}
    table = pa.table(columns | {"s": rng.choice(["x", "yy", "", "zzz"], ROWS)})
    pq.write_table(table, made / "flows.parquet", row_group_size=7_000)
    (made / "parts").mkdir()
    for number in range(3):
        some = table.filter(pa.array(columns["a"] % 3 == number))
        pq.write_table(some, made / "parts" / f"{number}.parquet", row_group_size=5_000)
    return made


def rows_of(
    location: Path, by: str | None = None, text: str = TEXT, **settings: object
) -> tuple[dict[str, list[str]], str]:
    """The rows of all queries, and the explanation of the job."""
    given = {"split_bytes": 1 << 16, "share_sample": "always", "kernels": "numpy", **settings}
    config = Config.model_validate(given)
    with Session(config=config, engine="local") as session:
        session.source(f"f=parquet:{location}", by)
        queries = session.query(text)
        told = queries.explain("job")
        results = queries.run()
        return {s.name: sorted(map(repr, results[s.name].rows())) for s in queries.queries}, told


def test_tuples_are_sent_where_groups_are_many(folder: Path) -> None:
    expected, whole = rows_of(folder / "flows.parquet")
    assert "send" not in whole
    found, told = rows_of(folder / "parts", "a")
    assert found == expected
    assert "send f " in told
    assert "read f by time" in told
    groups, told = rows_of(folder / "parts", "a", send_tuples="never")
    assert groups == expected
    assert "send f " not in told


def test_one_aggregation_with_few_groups_is_sent_as_groups(folder: Path) -> None:
    text = "\n".join([PROTOCOL, query("few", "s"), KEPT])
    found, told = rows_of(folder / "parts", "a", text)
    assert found == rows_of(folder / "flows.parquet", text=text)[0]
    assert "send f " not in told
    found, told = rows_of(folder / "parts", "a", text, send_tuples="always")
    assert found == rows_of(folder / "flows.parquet", text=text)[0]
    assert "send f " in told


@pytest.mark.parametrize("settings", [{"memory_bytes": 1 << 20}, {"kernels": "numba"}])
def test_little_memory(
    settings: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_payloads, "HELD_BYTES", 1000)
    found, told = rows_of(folder / "parts", "a", send_tuples="always", **settings)
    assert "send f " in told
    assert found == rows_of(folder / "flows.parquet")[0]


def test_partitions_send_the_first_rows_of_a_ranking(folder: Path) -> None:
    """Two rows of every epoch and partition reach the ranking, not all groups."""
    text = "\n".join([PROTOCOL, ABOVE[0]])
    with Session(config=Config(kernels="numpy"), engine="local") as session:
        session.source(f"f=parquet:{folder / 'parts'}", "a")
        results = session.query(text).run()
        found = sorted(map(repr, results["top"].rows()))
        figures = results.measures
    assert found == rows_of(folder / "flows.parquet", text=text)[0]["top"]
    epochs = len(found) // 2
    (above,) = (one for name, one in figures.items() if name == "relation top")
    assert above.taken == 3 * 2 * epochs


# ---- ranges --------------------------------------------------------------------------------------


def splits(*bounds: tuple[int, int]) -> tuple[Split, ...]:
    return tuple(
        Split("parquet", f"f#{i % 2}", f"{i}.parquet", 0, 0, 1, bounds=(("at", low, high),))
        for i, (low, high) in enumerate(bounds)
    )


def read_of(edge: Edge, *bounds: tuple[int, int]) -> SourceRead:
    return SourceRead("f", (), (), None, splits(*bounds), edge=edge)


def test_ranges_end_where_epochs_end() -> None:
    read = read_of(Edge("at", 60, 10), (3, 299), (0, 310), (5, 301))
    ranges = ranges_for(read, 3)
    assert ranges.edges[0] == 0
    assert ranges.edges[-1] == 311
    assert len(ranges.edges) == 4
    assert all(edge % 60 == 0 for edge in ranges.edges[1:-1])
    assert len(ranges_for(read, 8).edges) == 6, "all epochs end there"
    assert len(ranges_for(read, 16).edges) == 17, "shorter ones for more tasks"
    assert ranges_for(read, 1).edges == (0, 311)


def test_every_value_is_in_the_range_of_its_bounds() -> None:
    ranges = TimeRanges("at", (-5, 10, 20, 33))
    values = np.arange(-5, 33)
    numbers = ranges.numbers(values)
    for number, (split,) in enumerate(ranges.splits(["f#0"])):
        ((_, low, high),) = split.bounds
        assert values[numbers == number].tolist() == list(range(low, high + 1))


def batches() -> Iterator[pa.RecordBatch]:
    rng = np.random.default_rng(1)
    for _ in range(20):
        columns = {"at": rng.integers(0, 40, 100), "a": rng.integers(0, 9, 100)}
        texts = pa.array(rng.choice(["p", "q"], 100)).dictionary_encode()
        yield pa.record_batch({**columns, "s": texts, "unused": columns["a"]})


@pytest.mark.parametrize("most", [1 << 26, 100])
def test_no_tuple_is_lost(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terascope.execute.sent_tuples.PENDING_BYTES", most)
    ranges = TimeRanges("at", (0, 10, 25, 40))
    sender = TupleSender(Sending("f", 7, ("at", "a", "s"), ranges))
    given = list(batches())
    for place, batch in enumerate(given):
        sender(batch, splits((0, 39), (0, 39))[place % 2])
    found: list[tuple[str, int, int, str]] = []
    for row in sender.rows():
        if row.payload is None:
            continue
        header = header_of(row.payload)
        ((column, low, high),) = header.bounds
        assert (row.stream, row.destination, row.kind) == (7, header.range, "tuples")
        (rows,) = unpack_tuples(row.payload)
        times = rows["at"].to_pylist()
        assert (column, low, high, len(times)) == ("at", min(times), max(times), header.rows)
        assert set(ranges.numbers(np.array(times))) == {header.range}
        found += [(header.interface, *r.values()) for r in rows.to_pylist()]
    expected = [
        (f"f#{place % 2}", r["at"], r["a"], r["s"])
        for place, batch in enumerate(given)
        for r in batch.to_pylist()
    ]
    assert sorted(found) == sorted(expected)
