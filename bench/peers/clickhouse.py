"""ClickHouse, in the process (chdb): one INSERT into a Parquet file for each query."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.dialects import translate
from bench.experiment import Figures
from bench.workload import Pair, Queries, Workload


@dataclass(frozen=True)
class ClickHouse:
    pair: Pair
    name: str = "clickhouse"
    needs: tuple[str, ...] = ("chdb",)

    def start(self, cores: int) -> Queries:
        from chdb.session import Session

        session = Session()
        session.query(f"SET max_threads = {cores}")
        session.query("SET engine_file_truncate_on_insert = 1")
        session.query("SET join_use_nulls = 1")  # a missing side is NULL, as in SQL

        def answer(workload: Workload, output: Path) -> Figures:
            session.query(
                f"CREATE OR REPLACE VIEW {workload.table} AS"
                f" SELECT * FROM file('{workload.parquet}', Parquet)"
            )
            for query, sql in workload.sql.items():
                path = output / f"{query}.parquet"
                session.query(
                    f"INSERT INTO FUNCTION file('{path}', Parquet) {translate(sql, 'clickhouse')}"
                )
            return {}

        return Queries(self.pair, answer, session.close)
