"""Engines that answer the questions of peer_queries.py, and write what they found as Parquet.

In: files of packets. Out: DATASET-QUESTION.parquet with tb, srcIP and value, and the seconds of
each. A value of heavy hitters is a list in the form of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.experiment import Figures
from bench.holistic.peer_queries import (
    DUCKDB,
    GSQL,
    HITTERS,
    KLL_K,
    MAP_LOG,
    PERCENT,
    PERCENTILE,
    SPARK,
    SPARK_KLL,
    TABLE,
    TOP,
)

Datasets: TypeAlias = Mapping[str, Path]
Answer: TypeAlias = Callable[[Path, str, Path], object]
"""Answers a question over a file, and writes a file or a folder of that name."""
TERASCOPE, SPARK_NAME, KLL_NAME = "terascope", "spark", "spark_kll"
DUCKDB_NAME, DATASKETCHES = "duckdb", "datasketches"


def answer_of(dataset: str, question: str) -> str:
    return f"{dataset}-{question}"


@dataclass(frozen=True)
class PeerContender:
    name: str
    datasets: Mapping[str, Path]
    small: Path
    """Few packets to warm up with."""
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> PeerRun:
        return PeerRun(self, *ENGINES[self.name](cores))


class PeerRun:
    def __init__(
        self,
        contender: PeerContender,
        questions: tuple[str, ...],
        answer: Answer,
        close: Callable[[], object],
    ) -> None:
        self._contender = contender
        self._questions = questions
        self._answer = answer
        self._close = close

    def warm(self) -> None:
        with TemporaryDirectory(prefix="terascope-bench-") as scratch:
            for question in self._questions:
                self._answer(self._contender.small, question, Path(scratch) / question)

    def run(self, output: Path) -> Figures:
        found: dict[str, float] = {}
        for dataset, path in self._contender.datasets.items():
            for question in self._questions:
                name = answer_of(dataset, question)
                began = perf_counter()
                self._answer(path, question, output / f"{name}.parquet")
                found[name] = perf_counter() - began
        return found

    def close(self) -> None:
        self._close()


Started: TypeAlias = tuple[tuple[str, ...], Answer, Callable[[], object]]
"""The questions that an engine answers, how, and how it is closed."""


def terascope_engine(cores: int) -> Started:
    import terascope
    from terascope.spark.session import open_session

    spark = open_session(f"local[{cores}]")

    def answer(path: Path, question: str, output: Path) -> None:
        with TemporaryDirectory(prefix="terascope-bench-") as scratch:
            script = Path(scratch) / "udafs.gsql"
            script.write_text(GSQL[question], encoding="utf-8")
            with terascope.Session(spark) as session:
                session.source(f"packets=parquet:{path}")
                session.load(script).write(output, format="parquet", parts=True)

    return tuple(GSQL), answer, spark.stop


def spark_engine(queries: Mapping[str, str], cores: int) -> Started:
    from bench.peers import AS_SPARK_STARTS
    from terascope.spark.session import open_session

    spark = open_session(f"local[{cores}]", "plain Spark SQL", AS_SPARK_STARTS)

    def answer(path: Path, question: str, output: Path) -> None:
        spark.read.parquet(str(path)).createOrReplaceTempView(TABLE)
        spark.sql(queries[question]).write.mode("overwrite").parquet(str(output))

    return tuple(queries), answer, spark.stop


def duckdb_engine(cores: int) -> Started:
    import duckdb

    session = duckdb.connect(config={"threads": cores, "preserve_insertion_order": False})

    def answer(path: Path, question: str, output: Path) -> None:
        session.execute(f"CREATE OR REPLACE VIEW {TABLE} AS FROM read_parquet('{path}')")
        session.execute(f"COPY ({DUCKDB[question]}) TO '{output}' (FORMAT parquet)").fetchall()

    return tuple(DUCKDB), answer, session.close


def datasketches_engine(cores: int) -> Started:
    """The Python package: numpy sorts packets by group, and each group has a sketch. One core."""
    del cores

    def answer(path: Path, question: str, output: Path) -> None:
        column = "len" if question == PERCENTILE else "destIP"
        table = pq.read_table(path, columns=["tb", "srcIP", column])
        epochs, sources, values = (c.to_numpy() for c in table.columns)
        order = np.lexsort((sources, epochs))
        epochs, sources, values = epochs[order], sources[order], values[order]
        changes = np.flatnonzero(np.diff(epochs) | np.diff(sources)) + 1
        edges = np.concatenate([[0], changes, [len(values)]])
        sketched = kll_median if question == PERCENTILE else frequent_items
        found = [sketched(values[a:b]) for a, b in pairwise(edges)]
        first = edges[:-1]
        columns = {"tb": epochs[first], "srcIP": sources[first], "value": found}
        pq.write_table(pa.table(columns), output)

    return (PERCENTILE, HITTERS), answer, lambda: None


def kll_median(values: Any) -> int:
    import datasketches

    sketch = datasketches.kll_ints_sketch(KLL_K)
    sketch.update(values.astype(np.int32))
    return int(sketch.get_quantile(PERCENT / 100))


def frequent_items(values: Any) -> list[int]:
    import datasketches

    sketch = datasketches.frequent_items_sketch(MAP_LOG)
    for value in values.tolist():
        sketch.update(value)
    kind = datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES
    return [item for item, *_ in sketch.get_frequent_items(kind)[:TOP]]


ENGINES: Final[Mapping[str, Callable[[int], Started]]] = {
    TERASCOPE: terascope_engine,
    SPARK_NAME: lambda cores: spark_engine(SPARK, cores),
    KLL_NAME: lambda cores: spark_engine(SPARK_KLL, cores),
    DUCKDB_NAME: duckdb_engine,
    DATASKETCHES: datasketches_engine,
}
PACKAGES: Final = {DUCKDB_NAME: ("duckdb",), DATASKETCHES: ("datasketches",)}
