"""Terascope itself, through its public Python API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.experiment import Figures
from bench.workload import Pair, Queries, Workload
from terascope.sharing.windows import Mode

if TYPE_CHECKING:
    from terascope.spark.session import SparkSession


@dataclass(frozen=True)
class Terascope:
    pair: Pair
    name: str = "terascope"
    needs: tuple[str, ...] = ()
    memory_bytes: int | None = None
    """What a task may use; by default as much as Terascope thinks fit."""
    share_windows: Mode = "cost"

    def start(self, cores: int) -> Queries:
        from terascope.spark.session import open_session

        spark = open_session(f"local[{cores}]")
        return self.on(spark, spark.stop)

    def on(self, spark: SparkSession, close: Callable[[], object] = lambda: None) -> Queries:
        """In a Spark that is open already."""
        import terascope
        from terascope.config import load_config

        config = load_config(memory_bytes=self.memory_bytes, share_windows=self.share_windows)

        def answer(workload: Workload, output: Path) -> Figures:
            with terascope.Session(spark, config=config) as session:
                session.source(workload.source)
                session.load(workload.gsql).write(output, format="parquet", parts=True)
            return {}

        return Queries(self.pair, answer, close)
