"""`many-groups`: ten million groups of one epoch, with little memory.

One group-by of an hour of flow records by eight attributes, in which hardly two records are alike:
10 M records at scale 1. Terascope's tasks may use from 64 MB to 1 GB; DuckDB runs once as it
comes, and once with 1 GB for everything.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.budget import conclude
from bench.experiment import Contender, Prepared, Settings, Tell
from bench.peers.duckdb import DuckDb
from bench.peers.terascope import Terascope
from bench.queries78 import PROTOCOL, flow_pair
from bench.workload import same_rows

RECORDS = 10_000_000
BUDGETS_MB = (64, 256, 1024)
DUCKDB_MB = 1024
KEYS = ", ".join(
    ("srcIP", "dstIP", "srcPort", "dstPort", "input", "output", "packets", "tcp_flags")
)
GSQL = f"""{PROTOCOL}
QUERY groups:
SELECT tb, {KEYS}, COUNT(*) AS n, SUM(bytes) AS total
FROM flows.FLOW GROUP BY time/3600 AS tb, {KEYS};
"""
SQL = (
    f"SELECT DIV(time, 3600) AS tb, {KEYS}, COUNT(*) AS n, BIGINT(SUM(bytes)) AS total FROM flows"
    f" GROUP BY DIV(time, 3600), {KEYS}"
)


@dataclass(frozen=True)
class ManyGroups:
    name: str = "many-groups"
    title: str = "ten million groups of one epoch, with little memory"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        records = settings.count(RECORDS)
        tell(f"{records:,} flow records in {settings.data}")
        pair = flow_pair(settings, records, GSQL, {"groups": SQL}, "flows-many-groups.gsql")
        contenders: tuple[Contender, ...] = (
            *(Terascope(pair, f"terascope {mb} MB", memory_bytes=mb << 20) for mb in BUDGETS_MB),
            DuckDb(pair),
            DuckDb(pair, f"duckdb {DUCKDB_MB} MB", memory_mb=DUCKDB_MB),
        )
        return Prepared(
            contenders,
            same_rows(settings, DuckDb(pair), pair.full),
            (f"{records:,} flow records of one hour, one group-by by eight attributes",),
            inputs=(pair.full.parquet,),
            conclude=lambda outcomes: conclude(
                [outcome for outcome in outcomes if outcome.contender.startswith("terascope")]
            ),
        )


EXPERIMENT = ManyGroups()
