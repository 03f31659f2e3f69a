"""Plain Structured Streaming: a query of its own for each query of a set, all at once.

In: SQL over packets, in Parquet files of equally many packets, one for each micro-batch. Out: a
Parquet sink for each query. A group-by in epochs becomes one over event-time windows with a
watermark, in append mode. What Spark cannot say of a stream (top-k, joins of aggregations) is
replaced by the aggregation beneath it, which is less work for Spark.

The last file holds one packet of long after, so that all windows close; it is in no result.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol, cast

from bench.dialects import translate
from bench.experiment import Figures
from bench.streams.usage import cpu_seconds

if TYPE_CHECKING:
    from terascope.spark.session import SparkSession

EPOCH = re.compile(r"DIV\(time, (\d+)\)")
BENEATH = "SELECT DIV(time"
CHECKPOINT = "_checkpoint"
WARM_QUERIES = 5
"""All of them would take as long as a run."""


class Started(Protocol):
    """A streaming query of Spark."""

    def processAllAvailable(self) -> None: ...

    def stop(self) -> None: ...


def simplest(sql: str) -> str:
    """The query itself, or the first aggregation beneath it."""
    start = sql.find(BENEATH)
    if start <= 0:
        return sql
    depth = 0
    for at in range(start, len(sql)):
        depth += {"(": 1, ")": -1}.get(sql[at], 0)
        if depth < 0:
            return sql[start:at].strip()
    return sql[start:]


def is_whole(sql: str) -> bool:
    """Whether a stream of Spark answers all of it."""
    return simplest(sql) == sql


def closes(sql: str) -> bool:
    """Whether the last packet closes its last window. Spark brings a filter below the watermark;
    where no such packet passes, time stands still.
    """
    return "GROUP BY" not in sql or "WHERE" not in sql


def windowed(sql: str) -> str:
    """Epochs as windows: the group-by has the window, the columns its number."""
    columns, group, rest = sql.partition("GROUP BY")
    if not group:
        return sql
    columns = EPOCH.sub(r"(CAST(window.start AS BIGINT) DIV \1)", columns, count=1)
    return columns + group + EPOCH.sub(r"window(at, '\1 seconds')", rest, count=1)


@dataclass(frozen=True)
class PacketFiles:
    """Packets in files, one for each micro-batch, and the queries over them."""

    folder: Path
    packets: int
    table: str
    sql: Mapping[str, str]


@dataclass(frozen=True)
class SparkStreaming:
    files: PacketFiles
    small: PacketFiles
    name: str = "spark_streaming"
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> PlainStreams:
        from bench.peers import AS_SPARK_STARTS
        from terascope.spark.session import open_session

        # As for plain Spark SQL, our settings suit it better than its own 200 partitions.
        spark = open_session(f"local[{cores}]", "plain Structured Streaming", AS_SPARK_STARTS)
        return self.on(spark, spark.stop)

    def on(self, spark: SparkSession, close: Callable[[], object] = lambda: None) -> PlainStreams:
        """In a Spark that is open already."""
        return PlainStreams(self, spark, close)


class PlainStreams:
    """All queries at once, each reading the files for itself."""

    def __init__(
        self, contender: SparkStreaming, spark: SparkSession, close: Callable[[], object]
    ) -> None:
        self._contender = contender
        self._spark = spark
        self._close = close

    def warm(self) -> None:
        with TemporaryDirectory(prefix="terascope-bench-") as folder:
            small = self._contender.small
            some = dict(list(small.sql.items())[:: len(small.sql) // WARM_QUERIES])
            self._answer(replace(small, sql=some), Path(folder))

    def run(self, output: Path) -> Figures:
        return self._answer(self._contender.files, output)

    def _answer(self, files: PacketFiles, output: Path) -> Figures:
        before, began = cpu_seconds(os.getpid()), time.monotonic()
        schema = self._spark.read.parquet(str(files.folder)).schema
        stream = (
            self._spark.readStream.schema(schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(files.folder))
            .selectExpr("*", "timestamp_seconds(time) AS at")
            .withWatermark("at", "0 seconds")
        )
        stream.createOrReplaceTempView(files.table)
        queries = [self._start(name, sql, output) for name, sql in files.sql.items()]
        try:
            for query in queries:
                query.processAllAvailable()
        finally:
            for query in queries:
                query.stop()
        took = time.monotonic() - began
        return {
            "tuples": files.packets,
            "cpu_seconds": cpu_seconds(os.getpid()) - before,
            "per_second": files.packets / took,
        }

    def _start(self, name: str, sql: str, output: Path) -> Started:
        rows = self._spark.sql(translate(windowed(simplest(sql)), "spark"))
        started = (
            rows.writeStream.format("parquet")
            .outputMode("append")
            .option("path", str(output / name))
            .option("checkpointLocation", str(output / CHECKPOINT / name))
            .start()
        )
        return cast(Started, started)

    def close(self) -> None:
        self._close()
