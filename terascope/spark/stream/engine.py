"""Spark as the engine of a stream: it distributes tasks, and Catalyst computes the high level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import starmap

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from terascope.execute.results.parts import Part
from terascope.plan.evaluate import Parameters
from terascope.plan.horizon import Horizons
from terascope.spark.mistakes import translating
from terascope.spark.passing import REPORT, report_batch, task_frame
from terascope.spark.stream.high import CatalystHighLevel
from terascope.streaming.engine import Report, TaskWork
from terascope.streaming.pipeline import Pipeline
from terascope.streaming.stored_rows import StoredRows, StoredStream


@dataclass(frozen=True)
class SparkStreamEngine:
    spark: SparkSession
    tasks: int
    """The number of tasks that run at once in a micro-batch."""

    def run_tasks(self, work: Sequence[TaskWork]) -> list[Report]:
        tasks = [partial(reported, one) for one in work]
        rows = task_frame(self.spark, tasks, REPORT).collect()
        return [(row[0], row[1]) for row in rows]

    def high_level(
        self,
        stored: StoredRows,
        leaves: Mapping[str, StoredStream],
        parameters: Parameters,
        horizons: Horizons,
    ) -> CatalystHighLevel:
        return CatalystHighLevel(self.spark, stored, leaves, parameters, horizons, self.tasks)

    def write(self, queries: Sequence[DataFrame]) -> list[Part]:
        """One job for all queries: Spark plans and runs them together."""
        with translating():
            return [Part.of(row[0]) for row in reduce(DataFrame.union, queries).collect()]


def reported(work: TaskWork) -> Iterator[pa.RecordBatch]:
    return starmap(report_batch, work())


class ForeachBatch:
    """Spark's callback for every micro-batch."""

    def __init__(self, pipeline: Pipeline, tasks: int) -> None:
        self._pipeline = pipeline
        self._tasks = tasks
        self.failure: BaseException | None = None

    def __call__(self, frame: DataFrame, number: int) -> None:
        def read() -> list[Report]:
            return [(row[0], row[1]) for row in frame.collect()]

        try:
            with translating():
                engine = SparkStreamEngine(frame.sparkSession, self._tasks)
                self._pipeline.run(number, read, engine)
        except BaseException as problem:
            self.failure = problem
            raise
