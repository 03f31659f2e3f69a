from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from terascope.traffic.flow_records import ATTRIBUTES, ROW_GROUP, generate_flows
from terascope.traffic.profile import FlowProfile, ProfileError
from tests.cli.calls import call

pytestmark = pytest.mark.bench

RECORDS = 600_000


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flows") / "flows.parquet"
    report = generate_flows(FlowProfile(records=RECORDS), path)
    assert report.counts == (RECORDS,)
    assert report.bytes == path.stat().st_size
    return path


@pytest.fixture(scope="module")
def ask(flows: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as session:
        session.execute(f"CREATE TABLE flows AS FROM read_parquet('{flows}')")
        yield session


def rows(session: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    return session.execute(sql).fetchall()


def zipf_exponent(session: duckdb.DuckDBPyConnection, keys: str) -> float:
    """The slope of the rank-frequency curve in logarithms, where counts are no noise."""
    counts = rows(session, f"SELECT count(*) AS n FROM flows GROUP BY {keys} ORDER BY n DESC")
    ordered = np.array([n for (n,) in counts])
    ordered = ordered[ordered >= 8]
    ranks = np.unique(np.geomspace(3, len(ordered), 80).astype(int))
    return -float(np.polyfit(np.log(ranks), np.log(ordered[ranks - 1]), 1)[0])


@pytest.mark.parametrize(
    ("keys", "exponent"),
    [
        ("srcIP", 0.85),
        ("dstIP", 0.85),
        ("srcIP, dstIP", 0.67),
        ("srcIP, dstIP, srcPort, dstPort", 0.48),
        ("tos", 0.0),
    ],
)
def test_popularity_is_that_of_the_paper(
    ask: duckdb.DuckDBPyConnection, keys: str, exponent: float
) -> None:
    assert zipf_exponent(ask, keys) == pytest.approx(exponent, abs=0.08)


def test_other_exponents(tmp_path: Path) -> None:
    profile = FlowProfile(
        records=300_000, source_exponent=0.7, pair_exponent=0.5, tuple_exponent=0.3
    )
    generate_flows(profile, tmp_path / "f.parquet")
    with duckdb.connect() as session:
        session.execute(f"CREATE VIEW flows AS FROM read_parquet('{tmp_path}/f.parquet')")
        assert zipf_exponent(session, "srcIP") == pytest.approx(0.7, abs=0.1)
        assert zipf_exponent(session, "srcIP, dstIP") == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("of", "follows"),
    [
        ("srcIP", ("srcAS", "srcMask", "input")),
        ("dstIP", ("dstAS", "dstMask", "output")),
        ("srcAS", ("input",)),
        ("srcIP, dstIP, srcPort, dstPort", ("protocol",)),
    ],
)
def test_what_a_router_adds_follows_from_the_address(
    ask: duckdb.DuckDBPyConnection, of: str, follows: tuple[str, ...]
) -> None:
    for name in follows:
        shares = f"SELECT count(DISTINCT {name}) AS n FROM flows GROUP BY {of}"
        [(mixed, all_groups)] = rows(
            ask, f"SELECT count(*) FILTER (n > 1), count(*) FROM ({shares})"
        )
        # Two conversations of a pair may by chance have the same ports.
        assert mixed <= (0.002 * all_groups if "," in of else 0), name


def test_an_address_is_the_same_on_both_sides(ask: duckdb.DuckDBPyConnection) -> None:
    both = (
        "SELECT count(*), count(*) FILTER (s.a = d.a AND s.m = d.m)"
        " FROM (SELECT DISTINCT srcIP AS ip, srcAS AS a, srcMask AS m FROM flows) s"
        " JOIN (SELECT DISTINCT dstIP AS ip, dstAS AS a, dstMask AS m FROM flows) d USING (ip)"
    )
    [(met, agreeing)] = rows(ask, both)
    assert met == agreeing > 1000


def test_services_have_their_protocols(ask: duckdb.DuckDBPyConnection) -> None:
    [(wrong,)] = rows(
        ask,
        "SELECT count(*) FROM flows WHERE (protocol <> 6 AND tcp_flags <> 0)"
        " OR (protocol = 1 AND (srcPort <> 0 OR dstPort <> 2048))"
        " OR (protocol = 6 AND 53 IN (srcPort, dstPort))",
    )
    assert wrong < RECORDS * 1e-4  # a port chosen freely is never below 1024
    shares = dict(rows(ask, f"SELECT protocol, count(*) / {RECORDS} FROM flows GROUP BY 1"))
    assert set(shares) == {1, 6, 17}
    assert shares[6] > 0.5 > shares[17] > 0.1 > shares[1] > 0


def test_time_packets_and_bytes(flows: Path, ask: duckdb.DuckDBPyConnection) -> None:
    times = pq.read_table(flows, columns=["time"])["time"].to_numpy().astype(np.int64)
    assert (np.diff(times) >= 0).all()
    assert len(np.unique(times // 300)) == 12
    assert times[-1] - times[0] == 3599
    [(fewest, thinnest, fattest)] = rows(
        ask, "SELECT min(packets), min(bytes / packets), max(bytes / packets) FROM flows"
    )
    assert fewest == 1
    assert thinnest >= 40
    assert fattest <= 1500


def test_the_file_has_narrow_types_and_row_groups(flows: Path) -> None:
    file = pq.ParquetFile(flows)
    assert file.metadata.row_group(0).num_rows == ROW_GROUP == 131_072
    assert {str(field.type) for field in file.schema_arrow} == {"uint32", "uint16", "uint8"}
    assert not any(field.nullable for field in file.schema_arrow)
    assert set(ATTRIBUTES) < set(file.schema_arrow.names)
    assert len(ATTRIBUTES) == 13


def test_the_seed_decides(tmp_path: Path) -> None:
    def made(name: str, **settings: int) -> Any:
        generate_flows(FlowProfile(records=2000, **settings), tmp_path / name)
        return pq.read_table(tmp_path / name)

    assert made("a").equals(made("b"))
    assert not made("a").equals(made("c", seed=2))


@pytest.mark.parametrize("records", [1, 63, 5000])
def test_few_records(tmp_path: Path, records: int) -> None:
    generate_flows(FlowProfile(records=records), tmp_path / "few.parquet")
    assert pq.read_metadata(tmp_path / "few.parquet").num_rows == records


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"records": 0}, "records must lie between"),
        ({"pair_exponent": 1.0}, "pair_exponent must be at least 0 and less than 1"),
        ({"start_time": 2**32 - 5}, "after 2106"),
    ],
)
def test_bad_settings_are_explained(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        FlowProfile(**settings)


def test_the_command(tmp_path: Path) -> None:
    called = call("generate", tmp_path / "f.parquet", "--flows", "2k", "--duration", "60")
    assert called.code == 0
    assert "2,000 flow records" in called.out
    assert pq.read_metadata(tmp_path / "f.parquet").num_rows == 2000
    for wrong in (
        ("generate", tmp_path / "f.pcap", "--flows", "2k"),
        ("generate", tmp_path / "f.parquet", "--flows", "many"),
        ("generate", tmp_path / "f.parquet", "--flows", "2k", "--rate", "5"),
        ("generate", tmp_path / "f.parquet", "--flows", "0"),
    ):
        assert call(*wrong).code == 2
    assert call("generate", tmp_path / "no" / "f.parquet", "--flows", "2k").code == 1
