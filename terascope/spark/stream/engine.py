"""Spark as the engine of a stream: it distributes tasks, and Catalyst computes the high level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from terascope.execute.results.parts import Part
from terascope.plan.evaluate import Parameters
from terascope.plan.horizon import Horizons
from terascope.spark.mistakes import translating, working
from terascope.spark.passing import REPORT, report_batch
from terascope.spark.stream.high import CatalystHighLevel
from terascope.streaming.engine import Report, TaskWork
from terascope.streaming.pipeline import Pipeline
from terascope.streaming.stored_rows import StoredRows, StoredStream


@dataclass(frozen=True)
class Tasks:
    """Pieces of work, one for each task of a job."""

    work: Sequence[TaskWork]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with working():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for report in self.work[number]():
                        yield report_batch(*report)


@dataclass(frozen=True)
class SparkStreamEngine:
    spark: SparkSession
    tasks: int
    """The number of tasks that run at once in a micro-batch."""

    def run_tasks(self, work: Sequence[TaskWork]) -> list[Report]:
        numbers = self.spark.range(0, len(work), 1, len(work))
        return [(row[0], row[1]) for row in numbers.mapInArrow(Tasks(work), REPORT).collect()]

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
