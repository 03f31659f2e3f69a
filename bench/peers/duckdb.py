"""DuckDB: one COPY for each query, from the Parquet file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.dialects import translate
from bench.experiment import Figures
from bench.workload import Pair, Queries, Workload


@dataclass(frozen=True)
class DuckDb:
    pair: Pair
    name: str = "duckdb"
    needs: tuple[str, ...] = ("duckdb",)
    memory_mb: int | None = None
    """Its memory limit; by default most of the machine."""

    def start(self, cores: int) -> Queries:
        import duckdb

        # Nobody's results have an order.
        config: dict[str, Any] = {"threads": cores, "preserve_insertion_order": False}
        if self.memory_mb is not None:
            config["memory_limit"] = f"{self.memory_mb}MB"
        session = duckdb.connect(config=config)

        def answer(workload: Workload, output: Path) -> Figures:
            scan = f"read_parquet('{workload.parquet}')"
            session.execute(f"CREATE OR REPLACE VIEW {workload.table} AS FROM {scan}")
            for query, sql in workload.sql.items():
                path = output / f"{query}.parquet"
                copy = f"COPY ({translate(sql, 'duckdb')}) TO '{path}' (FORMAT parquet)"
                session.execute(copy).fetchall()
            return {}

        return Queries(self.pair, answer, session.close)
