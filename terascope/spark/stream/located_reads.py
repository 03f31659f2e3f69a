"""The reading tasks of a micro-batch, each on the host that holds its partition.

In: the frame of a micro-batch, and the source of the stream. Out: the reports of its reading tasks.
PySpark's data sources have no preferred hosts: where the hosts of partitions are known, the frame
has the tasks instead of their reports, and a job over located numbers runs them. A task that fails,
or whose host is lost, runs again elsewhere, as any task of Spark does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame

from terascope.connectors.base import partition_of
from terascope.spark.located import located_numbers
from terascope.spark.mistakes import translating, working
from terascope.spark.stream.source import LOCATED, unpacked
from terascope.spark.write import read_reports
from terascope.streaming.context import Report
from terascope.streaming.live_source import StreamSource
from terascope.streaming.tasks.read import ReadTask, read_tuples


def batch_reports(frame: DataFrame, source: StreamSource) -> list[Report]:
    """The reports of the reading tasks of a micro-batch."""
    reports = read_reports(frame)
    if not source.is_located:
        return reports
    tasks: list[ReadTask] = [unpacked(text) for kind, text in reports if kind == LOCATED]
    if not tasks:
        return []
    hosts = [hosts_of(task, source) for task in tasks]

    def run(numbers: Iterable[int]) -> Iterator[Report]:
        with working():
            for number in numbers:
                yield from read_tuples(source, tasks[number])

    with translating():
        return located_numbers(frame.sparkSession, hosts).mapPartitions(run).collect()


def hosts_of(task: ReadTask, source: StreamSource) -> tuple[str, ...]:
    """The hosts that hold the data of a task; none: it has none, or the data of several."""
    numbers = {partition_of(split.interface) for split in task.splits}
    if len(numbers) != 1:
        return ()
    (number,) = numbers
    return () if number is None or number >= len(source.hosts) else source.hosts[number]
