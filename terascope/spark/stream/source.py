"""The streaming form of Terascope's data source: all live interfaces of a set as one Spark stream.

In: a `StreamSource`, which travels as an option. Out: for each micro-batch the reports of its tasks
(terascope.streaming.tasks.read). The offset counts the journal's entries of each interface and
holds a tick of the clock, so that a batch starts though every source is silent. `partitions` is a
function of two offsets, the journal and the state of the batch before: a batch that Spark runs
again reads the same tuples and gives the same result.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from terascope.connectors.arrival import arrived
from terascope.connectors.base import Edge
from terascope.connectors.live import LinkClock, Links, LiveSettings, Offset
from terascope.connectors.registry import Interface
from terascope.physical.splits import even_bundles
from terascope.spark.mistakes import telling, working
from terascope.spark.passing import REPORT, report_batch
from terascope.streaming.ownership import Beginning, Epoch, owned_epochs
from terascope.streaming.replan.tree_plans import TreesInForce, in_force
from terascope.streaming.state.runs import RunFolder
from terascope.streaming.state.state import StateFolder, packed_offset, unpacked_offset
from terascope.streaming.tasks.read import ReadTask, StreamRead, read_tuples

FORMAT = "terascope_stream"
PICKLER: Any = cloudpickle
"""A pickler without type hints; unlike pickle it takes the functions in a predicate by value."""


@dataclass(frozen=True)
class Samples:
    """The size and the interval of the samples that tasks report."""

    tuples: int
    seconds: float


@dataclass(frozen=True)
class StreamSource:
    """The live interfaces of a set, and the work of its tasks."""

    reading: StreamRead
    interfaces: tuple[Interface, ...]
    clocks: Mapping[str, LinkClock | None]
    edge: Edge | None
    settings: LiveSettings
    folder: str
    """The folder of the run, under the checkpoint."""
    tasks: int
    epochs: Mapping[int, Epoch]
    """The epochs, by the number of a stream of groups."""
    skew_ns: int
    samples: Samples | None = None
    """The samples for planning trees; None: no samples."""

    @property
    def journal(self) -> Path:
        return Path(self.folder) / "journal"

    def links(self) -> Links:
        return Links(self.interfaces, self.clocks, self.edge, self.settings, self.journal)


def stream_frame(spark: SparkSession, source: StreamSource) -> DataFrame:
    """The reports of the tasks of each micro-batch."""
    name = register(spark)
    packed = base64.b64encode(zlib.compress(PICKLER.dumps(source), 1)).decode("ascii")
    return spark.readStream.format(name).option("source", packed).load()


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

    def schema(self) -> T.StructType:
        return REPORT

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:
        packed = zlib.decompress(base64.b64decode(self.options["source"]))
        return LiveReader(cast(StreamSource, PICKLER.loads(packed)))


@dataclass
class StreamPartition(InputPartition):
    """A reading task as Spark sends it."""

    task: ReadTask


class LiveReader(DataSourceStreamReader):
    """On the driver: finds new data and plans its tasks. In the workers: `read`."""

    def __init__(self, source: StreamSource) -> None:
        self.source = source
        self._links: Links | None = None
        self._sampled: float | None = None
        """The time of the last sample."""

    @property
    def links(self) -> Links:
        if self._links is None:
            self._links = self.source.links()
        return self._links

    def __getstate__(self) -> dict[str, Any]:
        return {"source": self.source, "_links": None, "_sampled": None}

    def initialOffset(self) -> dict[str, str]:
        return packed_offset(Offset.initial(i.name for i in self.source.interfaces))

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        with telling():
            self.links.poll()
            latest = self.links.latest(unpacked_offset(start))
            folder = RunFolder(Path(self.source.folder))
            folder.note_links(self.links.states())
            folder.note_idle(latest.ended and packed_offset(latest) == start)
            return packed_offset(latest)

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        if start == end:
            return []
        with telling():
            return self.planned(start, end)

    def planned(self, start: dict[str, str], end: dict[str, str]) -> list[InputPartition]:
        first, last = unpacked_offset(start), unpacked_offset(end)
        state = StateFolder(RunFolder(Path(self.source.folder)).state).at(start)
        beginning = Beginning.of(state)
        splits = self.links.splits(first, last)
        made: list[InputPartition] = []
        planned = time.time()
        trees, sample = self._trees(), self._wanted(planned) if splits else 0
        for place, native in enumerate(self.source.reading.reads):
            names = {i.name for i in native.read.interfaces}
            ours = [s for s in splits if s.interface in names]
            ours = arrived(ours, native.read.columns, last.arrived_ns)
            parts = even_bundles(ours, self.source.tasks, self.source.edge)
            assert native.read.low is not None
            mine = owned_epochs(
                native.read.low,
                native.streams,
                self.source.epochs,
                parts,
                beginning,
                first,
                last,
                self.source.skew_ns,
                names,
            )
            for number, some in enumerate(parts):
                closed = {n: beginning.closed.get(n, ()) for n in names}
                task = ReadTask(
                    place, some, len(made), mine[number], closed, planned, json.dumps(end), trees,
                    -(-sample // len(parts)),
                )  # fmt: skip
                made.append(StreamPartition(task))
        return made

    def _trees(self) -> TreesInForce:
        """The trees that were chosen last; a repeated batch may have others."""
        known = None if self.source.samples is None else in_force(Path(self.source.folder))
        return known or TreesInForce()

    def _wanted(self, now: float) -> int:
        """The number of tuples to sample in a batch."""
        samples = self.source.samples
        if samples is None:
            return 0
        if self._sampled is not None and now - self._sampled < samples.seconds:
            return 0
        self._sampled = now
        return samples.tuples

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPartition)
        with working():
            for report in read_tuples(self.source.reading, partition.task):
                yield report_batch(*report)

    def commit(self, end: dict[str, str]) -> None:
        self.links.commit(unpacked_offset(end))
