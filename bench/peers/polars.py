"""Polars: its SQL over a lazy scan, each query written by the streaming engine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bench.dialects import translate
from bench.experiment import Figures
from bench.workload import Pair, Queries, Workload


@dataclass(frozen=True)
class Polars:
    pair: Pair
    name: str = "polars"
    needs: tuple[str, ...] = ("polars",)

    def start(self, cores: int) -> Queries:
        os.environ["POLARS_MAX_THREADS"] = str(cores)  # looked at when it is imported
        import polars

        def answer(workload: Workload, output: Path) -> Figures:
            scan = polars.scan_parquet(workload.parquet)
            with polars.SQLContext({workload.table: scan}, eager=False) as session:
                for query, sql in workload.sql.items():
                    rows = session.execute(translate(sql, "polars"), eager=False)
                    rows.sink_parquet(output / f"{query}.parquet", engine="streaming")
            return {}

        return Queries(self.pair, answer)
