"""The streaming form of Terascope's data source: all live interfaces of a set as one Spark stream.

In: a `StreamSource`, which travels as an option. Out: for each micro-batch the reports of its tasks
(terascope.streaming.tasks.read). terascope.streaming.live_source finds new data and plans tasks.

A data source of PySpark cannot say where a partition should be read. Where the hosts of partitions
are known, the micro-batch has one task that only gives the reading tasks, and the driver starts
these on their hosts (terascope.spark.stream.located_reads).

For every stream Spark starts two processes that create the source and pickle its reader, and throws
them away. This module imports what reads a stream only when a stream is read: those processes end a
second earlier, and so does every start and restart of a stream.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit

    from terascope.streaming.live_source import LiveSource, StreamSource
    from terascope.streaming.tasks.read import ReadTask

FORMAT = "terascope_stream"
LOCATED: Final = "located"
"""The kind of a report that is a reading task, for the driver to start on the host of its data."""
REPORT = "kind string, text string"
"""The schema of the reports of tasks."""
PICKLER: Any = cloudpickle
"""A pickler without type hints; unlike pickle it takes the functions in a predicate by value."""


def stream_frame(spark: SparkSession, source: StreamSource) -> DataFrame:
    """The reports of the tasks of each micro-batch."""
    return spark.readStream.format(register(spark)).option("source", packed(source)).load()


def packed(item: StreamSource | ReadTask) -> str:
    """A source as the text of an option, or a task as that of a report."""
    return base64.b64encode(zlib.compress(PICKLER.dumps(item), 1)).decode("ascii")


def unpacked(text: str) -> Any:
    return PICKLER.loads(zlib.decompress(base64.b64decode(text)))


def register(spark: SparkSession) -> str:
    """Register the data source in the session, and return its name there.

    Spark checks in the active session whether a name is taken, and looks the source up in its own.
    Where these are two sessions and the other one has the source, this session needs another name.
    """
    for name in chain([FORMAT], (f"{FORMAT}{n}" for n in count(2))):
        own = type(TerascopeStream.__name__, (TerascopeStream,), {"format_name": name})
        try:
            spark.dataSource.register(own)
        except AnalysisException as problem:
            if problem.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
        else:
            return name
    raise AssertionError("names do not end")


class TerascopeStream(DataSource):
    """Spark's view of a StreamSource."""

    format_name = FORMAT

    @classmethod
    def name(cls) -> str:
        return cls.format_name

    def schema(self) -> str:
        return REPORT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LiveReader(self.options["source"])


@dataclass
class StreamPartition(InputPartition):
    """Reading tasks as Spark sends them."""

    tasks: tuple[ReadTask, ...]


class LiveReader(DataSourceStreamReader):
    """On the driver: finds new data and plans its tasks. In the workers: `read`."""

    def __init__(self, packed: str) -> None:
        self._packed = packed

    def __getstate__(self) -> dict[str, str]:
        return {"_packed": self._packed}

    @cached_property
    def source(self) -> StreamSource:
        source: StreamSource = unpacked(self._packed)
        return source

    @cached_property
    def live(self) -> LiveSource:
        from terascope.streaming.live_source import LiveSource

        return LiveSource(self.source)

    def initialOffset(self) -> dict[str, str]:
        from terascope.streaming.live_source import initial_offset

        return initial_offset(self.source)

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        from terascope.spark.mistakes import telling

        with telling():
            return self.live.latest(start)

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        from terascope.spark.mistakes import telling

        if start == end:
            return []
        with telling():
            tasks = self.live.tasks(start, end)
        if self.source.is_located:
            return [StreamPartition(tuple(tasks))]
        return [StreamPartition((task,)) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from terascope.spark.mistakes import working
        from terascope.spark.write import report_batch
        from terascope.streaming.tasks.read import read_tuples

        assert isinstance(partition, StreamPartition)
        with working():
            for task in partition.tasks:
                if self.source.is_located:
                    yield report_batch(LOCATED, packed(task))
                    continue
                for report in read_tuples(self.source, task):
                    yield report_batch(*report)

    def commit(self, end: dict[str, str]) -> None:
        self.live.commit(end)
