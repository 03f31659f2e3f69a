"""Data written by the advice: the same answers, and the queries are finished in partitions."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.advise.written import write_partitions
from terascope.diagnostic import OutputError, SourceError
from terascope.session import Session
from tests.cli.calls import call, small_trace
from tests.partitioning.query_sets import FLOW_PAIRS

TYPED = """
PROTOCOL F (at UINT increasing clock(s), srcIP IP, host STRING, bytes ULLONG);
QUERY by_net: SELECT tb, net, COUNT(*) AS n, SUM(bytes) AS total FROM f.F
GROUP BY at/10 AS tb, srcIP & 0xFFFFFFF0 AS net;
QUERY by_host: SELECT tb, srcIP, host, COUNT(*) AS n FROM f.F GROUP BY at/10 AS tb, srcIP, host;
"""


def table() -> pa.Table:
    numbers = range(3000)
    return pa.table(
        {
            "at": [n // 50 for n in numbers],
            "srcIP": [f"10.0.{n * 7919 % 20}.{n * 31 % 6 * 16}" for n in numbers],
            "host": [f"h{n % 3}" for n in numbers],
            "bytes": [n * 37 % 1500 for n in numbers],
        }
    )


def tables_of(kind: str, folder: Path) -> Path:
    path = folder / f"f.{kind}"
    if kind == "parquet":
        pq.write_table(table(), path)
    else:
        rows = table().to_pylist()
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_numbers_of_64_bits_place_tuples(kind: str, tmp_path: Path) -> None:
    text = TYPED.split("QUERY")[0] + (
        "QUERY sizes: SELECT tb, bytes, COUNT(*) AS n FROM f.F GROUP BY at/10 AS tb, bytes;"
    )
    source = f"f={kind}:{tables_of(kind, tmp_path)}"
    with Session(engine="local") as session:
        session.source(source)
        queries = session.query(text)
        write_partitions(queries.advise(into=4), tmp_path / "parts")
        expected = queries.run()["sizes"].rows()
    with Session(engine="local") as session:
        session.source(f"f=parquet:{tmp_path / 'parts' / 'f'}")
        assert session.query(text).run()["sizes"].rows() == expected


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_declared_types_place_the_values(kind: str, tmp_path: Path) -> None:
    """The files hold addresses as text, the queries declare them as IP."""
    source = f"f={kind}:{tables_of(kind, tmp_path)}"
    with Session(engine="local") as session:
        session.source(source)
        queries = session.query(TYPED)
        advice = queries.advise(into=4)
        assert advice.recommended.sets == {"f": ["srcIP & 0xFFFFFFF0"]}
        write_partitions(advice, tmp_path / "parts")
        whole = queries.run()
        expected = {name: whole[name].to_arrow() for name in ("by_net", "by_host")}
    with Session(engine="local") as session:
        session.source(f"f=parquet:{tmp_path / 'parts' / 'f'}")
        split = session.query(TYPED)
        assert "each partition finishes by_net, by_host" in split.explain("job")
        found = split.run()
        for name, rows in expected.items():
            assert found[name].to_arrow().equals(rows)


def test_every_source_has_a_folder(tmp_path: Path) -> None:
    packets = small_trace(tmp_path / "t.pcap")
    (tmp_path / "set.gsql").write_text(FLOW_PAIRS)
    flags = ("--source", f"eth0=pcap:{packets}", "--into", "3", "--layout", tmp_path / "out")
    called = call("advise", tmp_path / "set.gsql", *flags)
    assert called.code == 0, called.err
    assert (tmp_path / "out" / "eth0" / "partitions.json").is_file()
    assert "3 partitions by srcIP" in called.err
    again = call("advise", tmp_path / "set.gsql", *flags)
    assert again.code == 1
    assert "is not empty" in again.err


def test_split_by_the_advice(tmp_path: Path) -> None:
    packets = small_trace(tmp_path / "t.pcap")
    (tmp_path / "set.gsql").write_text(FLOW_PAIRS)
    flags = ("--by", "auto", "--queries", tmp_path / "set.gsql", "--into", "2")
    called = call("split", f"eth0=pcap:{packets}", *flags, tmp_path / "parts")
    assert called.code == 0, called.err
    assert "2 partitions by srcIP" in called.out
    (tmp_path / "other.gsql").write_text(FLOW_PAIRS.replace("FROM TCP", "FROM eth1.TCP"))
    other = ("--by", "auto", "--queries", tmp_path / "other.gsql", "--into", "2")
    called = call("split", f"eth0=pcap:{packets}", *other, tmp_path / "more")
    assert called.code == 1


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="'TCP' is not bound"):
        write_partitions(Session().query(FLOW_PAIRS).advise(), tmp_path / "out")
    packets = small_trace(tmp_path / "t.pcap")
    session = Session()
    session.source(f"eth0=pcap:{packets}")
    advice = session.query(FLOW_PAIRS).advise(into=2)
    write_partitions(advice, tmp_path / "out")
    with pytest.raises(OutputError, match="not empty"):
        write_partitions(advice, tmp_path / "out")
    parts = Session()
    parts.source(f"eth0=pcap:{tmp_path / 'out' / 'eth0'}")
    with pytest.raises(SourceError, match="partitioned already"):
        write_partitions(parts.query(FLOW_PAIRS).advise(), tmp_path / "more")
