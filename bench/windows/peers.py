"""`windows-peers`: 32 sliding windows over three million flow records, against other engines.

All read the same Parquet and write every query's rows as Parquet, Flink the same as CSV; answers
are compared. We are measured twice, with windows that share slices where that costs less, and with
slices of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.console import RenderableType

from bench.compare import EachItsOwn
from bench.experiment import Check, Contender, Outcome, Prepared, Settings, Tell
from bench.peers.duckdb import DuckDb
from bench.peers.flink import NAME as FLINK
from bench.peers.flink import Flink, FromCsv, flink_lacks
from bench.peers.spark_sql import SparkSql
from bench.peers.terascope import Terascope
from bench.queries78 import flow_pair
from bench.windows.sliding import (
    WINDOWS,
    duckdb_sql,
    flink_sql,
    gsql,
    name,
    spark_sql,
)
from bench.workload import Pair, same_rows
from terascope.sharing.slices import Periodic

RECORDS = 3_000_000
READ = ("time", "srcIP", "bytes")
RESULTS = ("wstart", "wend", "srcIP", "n", "total", "largest")
OURS, UNSHARED, SPARK = "terascope", "terascope_unshared", "spark_window"
TARGET = 10.0
"""How many times as long as we Spark should take."""


def window_pair(settings: Settings, records: int) -> Pair:
    """For us, and in the words of DuckDB."""
    queries = {name(window): duckdb_sql(window) for window in WINDOWS}
    script = f"flows-{len(WINDOWS)}-windows.gsql"
    return flow_pair(settings, records, gsql(WINDOWS), queries, script)


def said(pair: Pair, words: Callable[[Periodic], str]) -> Pair:
    """The same in other words."""
    queries = {name(window): words(window) for window in WINDOWS}
    return Pair(replace(pair.full, sql=queries), replace(pair.small, sql=queries))


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    seconds = {o.contender: o.median for o in outcomes if o.median is not None}
    shown: list[RenderableType] = []
    if OURS in seconds and SPARK in seconds:
        times = seconds[SPARK] / seconds[OURS]
        shown.append(f"{SPARK} takes {times:.1f} times as long (the target: {TARGET:.0f})")
    if OURS in seconds and UNSHARED in seconds:
        times = seconds[UNSHARED] / seconds[OURS]
        shown.append(f"without sharing we take {times:.2f} times as long")
    return shown


@dataclass(frozen=True)
class WindowsPeers:
    name: str = "windows-peers"
    title: str = "32 sliding windows over flow records, by source"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        records = settings.count(RECORDS)
        tell(f"{records:,} flow records in {settings.data}")
        pair = window_pair(settings, records)
        contenders: list[Contender] = [
            Terascope(pair, OURS),
            Terascope(pair, UNSHARED, share_windows="unshared"),
            SparkSql(said(pair, spark_sql), SPARK),
            DuckDb(pair),
        ]
        rows = same_rows(settings, DuckDb(pair), pair.full)
        checks: dict[str, Check] = {contender.name: rows for contender in contenders}
        lacking = flink_lacks()
        if lacking is None:
            contenders.append(Flink(said(pair, flink_sql), READ, RESULTS))
            checks[FLINK] = FromCsv(rows, RESULTS)
        size = pair.full.parquet.stat().st_size / 2**20
        about = (
            f"{records:,} flow records of one hour, {size:,.0f} MB of Parquet;"
            f" {len(WINDOWS)} queries by source address: count, sum and maximum",
        )
        return Prepared(
            tuple(contenders),
            EachItsOwn(checks),
            about,
            {} if lacking is None else {FLINK: lacking},
            inputs=(pair.full.parquet,),
            conclude=conclude,
        )


EXPERIMENT = WindowsPeers()
