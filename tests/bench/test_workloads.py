from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.experiment import Settings
from bench.onemore import ADDED, alarm_gsql, alarm_sql
from bench.packets import latin_text, packets_to_parquet
from bench.peers.spark_grouping_sets import SparkGroupingSets
from bench.queries78 import EPOCH, PAIRS, PROTOCOL, flow_workload, gsql, sql
from bench.set50 import GSQL, SQL, packet_workload, sql_queries
from bench.workload import Pair, Workload, answers
from terascope.traffic.flow_records import generate_flows
from terascope.traffic.profile import FlowProfile, Profile
from terascope.traffic.trace import generate
from tests.bench.oracle import by_duckdb, by_reference

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return packet_workload(Settings(data=tmp_path_factory.mktemp("packets")), 4000)


def test_queries78_means_the_same_in_gsql_and_sql(tmp_path: Path) -> None:
    workload = flow_workload(Settings(data=tmp_path), 1500, gsql(PAIRS), sql(PAIRS))
    found = by_reference(workload, tmp_path / "ours")
    assert len(found) == len(PAIRS) == 78
    assert found == by_duckdb(workload, tmp_path / "theirs")
    assert min(each.rows for each in found.values()) >= 12, "one in every epoch at least"


def test_the_alarms_mean_the_same_in_gsql_and_sql(tmp_path: Path) -> None:
    text = PROTOCOL + "".join(alarm_gsql(a, b) for a, b in ADDED)
    queries = {f"{a}_{b}_alarm": alarm_sql(a, b) for a, b in ADDED}
    workload = flow_workload(Settings(data=tmp_path), 20_000, text, queries)
    found = by_reference(workload, tmp_path / "ours")
    assert found == by_duckdb(workload, tmp_path / "theirs")
    assert sum(each.rows for each in found.values()) > 0


def test_set50_means_the_same_in_gsql_and_sql(packets: Workload, tmp_path: Path) -> None:
    found = by_reference(packets, tmp_path / "ours")
    assert len(found) == 50
    theirs = by_duckdb(packets, tmp_path / "theirs")
    assert {query for query in found if found[query] != theirs[query]} == set()
    # Thresholds are made for more packets than these.
    silent = {query for query, each in found.items() if each.rows == 0}
    assert silent <= {"flooded", "busy_services", "heavy_senders", "answered_much"}


def test_set50_is_the_mix_that_was_asked_for(packets: Workload) -> None:
    text = GSQL.read_text(encoding="utf-8")
    names = [answer.query for answer in answers(packets)]
    assert names == list(sql_queries(SQL.read_text(encoding="utf-8")))
    bodies = dict(re.findall(r"QUERY (\w+):\n(.*?);\n", text, re.DOTALL))
    assert list(bodies) == names

    def kind(body: str) -> str:
        if re.search(r"(FROM|JOIN) [a-z]", body):
            return "over other queries"
        if "LIMIT" in body:
            return "top-k"
        if "HAVING" in body:
            return "having"
        return "aggregation" if "GROUP BY" in body else "selection"

    assert Counter(map(kind, bodies.values())) == {
        "selection": 15, "aggregation": 20, "having": 5, "top-k": 5, "over other queries": 5,
    }  # fmt: skip
    into_payload = [b for b in bodies.values() if kind(b) == "selection" and "_data" in b]
    assert len(into_payload) == 5
    grouped = [
        re.search(r"GROUP BY time/(\d+) AS tb(.*)", body, re.DOTALL)
        for body in bodies.values()
        if kind(body) == "aggregation"
    ]
    assert {found.group(1) for found in grouped if found} == {"10", "60", "300"}
    assert len({found.group(2) for found in grouped if found}) >= 12


def test_the_parquet_of_packets_holds_what_was_captured(packets: Workload) -> None:
    table = pq.read_table(packets.parquet)
    assert table.num_rows == 4000
    assert table.schema.field("srcIP").type == pa.uint32()
    requests = [text for text in table["payload"].to_pylist() if text and text.startswith("GET ")]
    assert requests
    assert all("\r\nHost: " in text for text in requests)


def test_captures_with_ipv6_are_refused(tmp_path: Path) -> None:
    generate(Profile(packets=100, ipv6_share=1.0), tmp_path / "six.pcap")
    with pytest.raises(Exception, match="not IPv4"):
        packets_to_parquet(tmp_path / "six.pcap", tmp_path / "six.parquet")


def test_bytes_become_latin_text() -> None:
    values = [b"plain", None, b"", bytes(range(256)), b"\xff\x00\x80"]
    expected = [None if value is None else value.decode("latin-1") for value in values]
    assert latin_text(pa.array(values, pa.binary())).to_pylist() == expected
    assert latin_text(pa.array(values, pa.binary()).slice(1, 3)).to_pylist() == expected[1:4]
    assert latin_text(pa.array([], pa.binary())).to_pylist() == []


def test_grouping_sets_cover_all_pairs(tmp_path: Path) -> None:
    workload = Workload("flows=parquet:x", tmp_path, "flows", tmp_path, {})
    one_job = SparkGroupingSets(Pair(workload, workload), EPOCH, PAIRS)
    assert len({one_job.grouping_id(a, b) for a, b in PAIRS}) == 78
    assert one_job.grouping_id(*one_job.keys) == 0
    assert one_job.grouping_id("srcIP", "dstMask") == 0b00111111111110
    assert one_job.sql("flows").partition("GROUPING SETS")[2].count("(tb, `") == 78


def test_kept_answers_are_those_of_the_data(tmp_path: Path) -> None:
    text, queries = gsql(PAIRS[:1]), sql(PAIRS[:1])
    workload = flow_workload(Settings(data=tmp_path), 1000, text, queries)
    before = workload.key
    assert flow_workload(Settings(data=tmp_path), 1000, text, queries).key == before
    generate_flows(FlowProfile(records=1000, seed=9), workload.parquet)
    assert workload.key != before
