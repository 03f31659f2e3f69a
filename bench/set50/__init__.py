"""`set50`: fifty standing queries of a network operator over ten million packets.

15 selections (5 into the payload), 20 aggregations over 17 sets of keys and three lengths of epoch,
5 with HAVING, 5 top-k, 5 over other queries; two sets of keys have more than a million groups at
scale 1. We read the capture, the others the same packets from Parquet. All packets are IPv4, so
that the others can hold addresses as numbers, which suits them best.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bench.experiment import Contender, Prepared, Settings, Tell
from bench.harness import made_once
from bench.packets import packets_to_parquet
from bench.peers.clickhouse import ClickHouse
from bench.peers.duckdb import DuckDb
from bench.peers.polars import Polars
from bench.peers.spark_sql import SparkSql
from bench.peers.terascope import Terascope
from bench.workload import Pair, Workload, same_rows
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate

PACKETS = 10_000_000
SMALL = 20_000
SECONDS = 1200.0
"""At every scale, so that there are as many epochs; smaller scales have fewer packets in each."""
SNAPLEN = 256
"""As monitors do: headers and the beginning of the payload."""
GSQL = Path(__file__).parent / "queries.gsql"
SQL = Path(__file__).parent / "queries.sql"
HEADING = re.compile(r"^-- (\w+)$", re.MULTILINE)


def sql_queries(text: str) -> dict[str, str]:
    """The queries of queries.sql by the names above them."""
    parts = HEADING.split(text)[1:]
    bodies = (body.partition(";")[0].strip() for body in parts[1::2])
    return dict(zip(parts[::2], bodies, strict=True))


def packet_profile(packets: int, seed: int) -> Profile:
    return Profile(
        packets=packets,
        duration=SECONDS,
        seed=seed,
        hosts=max(100, packets // 250),
        servers=max(20, packets // 4000),
        mean_flow=12.0,
        ipv6_share=0.0,
        snaplen=SNAPLEN,
    )


def packet_workload(settings: Settings, packets: int) -> Workload:
    """The capture and its Parquet, both made once."""
    stem = f"packets-{packets}-seed{settings.seed}"
    profile = packet_profile(packets, settings.seed)
    capture = made_once(settings.data / f"{stem}.pcap", lambda path: generate(profile, path))
    parquet = made_once(
        settings.data / f"{stem}.parquet", lambda path: packets_to_parquet(capture, path)
    )
    queries = sql_queries(SQL.read_text(encoding="utf-8"))
    return Workload(f"link=pcap:{capture}", GSQL, "packets", parquet, queries)


@dataclass(frozen=True)
class Set50:
    name: str = "set50"
    title: str = "50 monitoring queries over packets: selections, aggregations, top-k, joins"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        packets = settings.count(PACKETS)
        tell(f"{packets:,} packets in {settings.data}")
        full = packet_workload(settings, packets)
        pair = Pair(full, packet_workload(settings, min(packets, SMALL)))
        contenders: tuple[Contender, ...] = (
            Terascope(pair),
            SparkSql(pair),
            DuckDb(pair),
            Polars(pair),
            ClickHouse(pair),
        )
        check = same_rows(settings, DuckDb(pair), full)
        capture = full.parquet.with_suffix(".pcap")
        sizes = [path.stat().st_size / 2**20 for path in (capture, full.parquet)]
        about = (
            f"{packets:,} packets of 20 minutes: {sizes[0]:,.0f} MB of pcap for us,"
            f" {sizes[1]:,.0f} MB of Parquet for the others; 50 queries",
        )
        absent = {"spark_grouping_sets": "the queries do not differ in their keys alone"}
        return Prepared(contenders, check, about, absent, inputs=(capture, full.parquet))


EXPERIMENT = Set50()
