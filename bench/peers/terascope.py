"""Terascope itself, through its public Python API."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.experiment import Figures
from bench.workload import Pair, Queries, Workload


@dataclass(frozen=True)
class Terascope:
    pair: Pair
    name: str = "terascope"
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Queries:
        import terascope
        from terascope.spark.session import open_session

        spark = open_session(f"local[{cores}]")

        def answer(workload: Workload, output: Path) -> Figures:
            with terascope.Session(spark) as session:
                session.source(workload.source)
                session.load(workload.gsql).run().write(output, "parquet")
            return {}

        return Queries(self.pair, answer, spark.stop)
