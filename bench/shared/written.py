"""Query sets run as a user runs them, through Spark and with results written as Parquet.

In: GSQL and a source. Out: a contender whose figures are seconds of the clock: of all its sets, and
of the one that took longest.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from bench.experiment import Figures
from bench.shared.sets import TUPLES

if TYPE_CHECKING:
    import terascope
    from terascope.spark.session import SparkSession


@dataclass(frozen=True)
class WrittenContender:
    """One or more sets, each for itself."""

    name: str
    texts: tuple[str, ...]
    source: str
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> WrittenRunning:
        from terascope.spark.session import open_session

        spark = open_session(f"local[{cores}]")
        return WrittenRunning(self, spark)


class WrittenRunning:
    def __init__(self, contender: WrittenContender, spark: SparkSession) -> None:
        self._contender = contender
        self._spark = spark

    def warm(self) -> None:
        """Compiles kernels, and starts Spark's workers."""
        with tempfile.TemporaryDirectory() as folder:
            self.run(Path(folder))

    def run(self, output: Path) -> Figures:
        seconds: list[float] = []
        tuples = rows = 0
        with self._session() as session:
            for number, text in enumerate(self._contender.texts):
                began = perf_counter()
                results = session.query(text).write(output / str(number), "parquet", parts=True)
                seconds.append(perf_counter() - began)
                tuples += results.total.tuples
                rows += sum(results.written.values())
                results.close()
        (output / TUPLES).write_text(json.dumps({"tuples": tuples, "rows": rows}))
        return {"written_s": sum(seconds), "longest_s": max(seconds)}

    def close(self) -> None:
        self._spark.stop()

    def _session(self) -> terascope.Session:
        import terascope

        session = terascope.Session(self._spark)
        session.source(self._contender.source)
        return session
