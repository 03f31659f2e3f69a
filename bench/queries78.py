"""`queries78`: paper 4's workload, all 78 pairs of the 13 attributes of a flow record.

Every query counts the records and sums the bytes of each pair of values in each five minutes
(paper 4, section VIII); 20 M records of one hour at scale 1, all results written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from bench.experiment import Contender, Prepared, Settings, Tell
from bench.harness import made_once
from bench.peers.clickhouse import ClickHouse
from bench.peers.duckdb import DuckDb
from bench.peers.polars import Polars
from bench.peers.spark_grouping_sets import SparkGroupingSets
from bench.peers.spark_sql import SparkSql
from bench.peers.terascope import Terascope
from bench.workload import Pair, Workload, same_rows
from terascope.traffic.flow_records import ATTRIBUTES, generate_flows
from terascope.traffic.profile import FlowProfile

RECORDS = 20_000_000
SMALL = 20_000
EPOCH = 300
PAIRS = tuple(combinations(ATTRIBUTES, 2))
PROTOCOL = """\
PROTOCOL FLOW (
    time UINT increasing clock(s),
    srcIP UINT, dstIP UINT, srcPort UINT, dstPort UINT, protocol UINT, tos UINT, tcp_flags UINT,
    input UINT, output UINT, srcAS UINT, dstAS UINT, srcMask UINT, dstMask UINT,
    packets UINT, bytes UINT
);
"""


def gsql(pairs: Iterable[tuple[str, str]]) -> str:
    queries = [
        f"QUERY {a}_{b}:\n"
        f"SELECT tb, {a}, {b}, COUNT(*) AS n, SUM(bytes) AS total\n"
        f"FROM flows.FLOW GROUP BY time/{EPOCH} AS tb, {a}, {b};\n"
        for a, b in pairs
    ]
    return "\n".join([PROTOCOL, *queries])


def sql(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {
        f"{a}_{b}": f"SELECT DIV(time, {EPOCH}) AS tb, {a}, {b}, COUNT(*) AS n,"
        f" BIGINT(SUM(bytes)) AS total FROM flows GROUP BY DIV(time, {EPOCH}), {a}, {b}"
        for a, b in pairs
    }


def flow_file(folder: Path, records: int, seed: int) -> Path:
    """The records, made once."""
    return made_once(
        folder / f"flows-{records}-seed{seed}.parquet",
        lambda path: generate_flows(FlowProfile(records=records, seed=seed), path),
    )


def flow_workload(
    settings: Settings,
    records: int,
    text: str,
    queries: dict[str, str],
    script_name: str | None = None,
) -> Workload:
    """Queries over that many records; the text goes to a file beside them."""
    parquet = flow_file(settings.data, records, settings.seed)
    script = settings.data / (script_name or f"flows-{len(queries)}-queries.gsql")
    script.write_text(text, encoding="utf-8")
    return Workload(f"flows=parquet:{parquet}", script, "flows", parquet, queries)


def flow_pair(
    settings: Settings,
    records: int,
    text: str,
    queries: dict[str, str],
    script_name: str | None = None,
) -> Pair:
    """The same, and over few records to warm up."""
    sizes = (records, min(records, SMALL))
    return Pair(*(flow_workload(settings, n, text, queries, script_name) for n in sizes))


@dataclass(frozen=True)
class Queries78:
    name: str = "queries78"
    title: str = "78 group-bys over flow records, every pair of 13 attributes in 5-minute epochs"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        records = settings.count(RECORDS)
        tell(f"{records:,} flow records in {settings.data}")
        text, queries = gsql(PAIRS), sql(PAIRS)
        pair = flow_pair(settings, records, text, queries)
        full = pair.full
        contenders: tuple[Contender, ...] = (
            Terascope(pair),
            SparkSql(pair),
            SparkGroupingSets(pair, EPOCH, PAIRS),
            DuckDb(pair),
            Polars(pair),
            ClickHouse(pair),
        )
        check = same_rows(settings, DuckDb(pair), full)
        size = full.parquet.stat().st_size / 2**20
        about = (f"{records:,} flow records of one hour, {size:,.0f} MB of Parquet, 78 queries",)
        return Prepared(contenders, check, about, inputs=(full.parquet,))


EXPERIMENT = Queries78()
