"""The one Spark data source of Terascope: any SourceRead of a Job as a DataFrame.

In: a `SourceRead`, which travels as an option. Out: its columns c0, c1, ... and a last column
`#meta`. Tuples have a NULL there; the last row of every partition has nothing but `#meta`, the
JSON of what reading it saw (bytes, tuples, malformed ones, how far time moved), so that the counts
come with the one pass over the data.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from terascope.connectors.base import Column, ReadReport, Split, arrow_type
from terascope.connectors.registry import read_split
from terascope.low.arrow_filter import keep
from terascope.physical.job import SourceRead
from terascope.spark.frame import place, spark_type
from terascope.spark.mistakes import telling

FORMAT = "terascope"
META = "#meta"
PICKLER: Any = cloudpickle
"""Has no type hints of its own; unlike pickle it takes the functions in a predicate by value."""

BUNDLE_BYTES = 32 << 20
"""Splits smaller than this are read together by one task."""

Reports = dict[str, ReadReport]
"""What reading saw, by interface."""


def source_frame(spark: SparkSession, read: SourceRead, tasks: int) -> DataFrame:
    """The tuples of a read (and its `#meta` rows), not yet computed."""
    name = register(spark)
    packed = base64.b64encode(PICKLER.dumps(read)).decode("ascii")
    return spark.read.format(name).option("read", packed).option("tasks", str(tasks)).load()


def register(spark: SparkSession) -> str:
    """Make the data source known to the session, and return the name it has there.

    Spark looks for a name that is taken in the active session, and for the source in its own. Where
    these are two sessions and the other one has the source, ours needs another name.
    """
    for name in chain([FORMAT], (f"{FORMAT}{n}" for n in count(2))):
        source = type("TerascopeSource", (TerascopeSource,), {"format_name": name})
        try:
            spark.dataSource.register(source)
        except AnalysisException as problem:
            if problem.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
        else:
            return name
    raise AssertionError("names do not end")


class TerascopeSource(DataSource):
    """Spark's view of a SourceRead."""

    format_name = FORMAT

    @classmethod
    def name(cls) -> str:
        return cls.format_name

    def schema(self) -> T.StructType:
        return read_schema(unpack(self.options))

    def reader(self, schema: T.StructType) -> DataSourceReader:
        return SplitReader(unpack(self.options), int(self.options.get("tasks", "1")))


def unpack(options: Mapping[str, str]) -> SourceRead:
    return cast(SourceRead, PICKLER.loads(base64.b64decode(options["read"])))


def read_schema(read: SourceRead) -> T.StructType:
    fields = [T.StructField(place(i), spark_type(c.type)) for i, c in enumerate(read.columns)]
    return T.StructType([*fields, T.StructField(META, T.StringType())])


@dataclass
class Bundle(InputPartition):
    """The splits one task reads, one after the other."""

    splits: tuple[Split, ...]


class SplitReader(DataSourceReader):
    def __init__(self, read: SourceRead, tasks: int) -> None:
        self.source = read
        self.tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        return [Bundle(splits) for splits in bundles(self.source.splits, self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Bundle)
        return read_bundle(self.source, partition.splits)


def bundles(splits: Sequence[Split], tasks: int) -> list[tuple[Split, ...]]:
    """Neighbouring splits put together until they are worth a task."""
    if len(splits) <= tasks:
        return [(split,) for split in splits] or [()]
    weights = split_bytes(splits)
    enough = min(BUNDLE_BYTES, sum(weights) / tasks)
    given: list[tuple[Split, ...]] = []
    current: list[Split] = []
    filled = 0.0
    for split, weight in zip(splits, weights, strict=True):
        if current and filled + weight > enough:
            given.append(tuple(current))
            current, filled = [], 0.0
        current.append(split)
        filled += weight
    return [*given, tuple(current)]


def split_bytes(splits: Sequence[Split]) -> list[float]:
    """The size of each split: its share of its file, for a connector may count in row groups."""
    units: Counter[str] = Counter()
    for split in splits:
        units[split.path] += split.end - split.start
    sizes = {path: file_bytes(path) for path in units}
    return [sizes[s.path] * (s.end - s.start) / max(1, units[s.path]) for s in splits]


def file_bytes(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return BUNDLE_BYTES


# ---- in the worker -------------------------------------------------------------------------------


def read_bundle(read: SourceRead, splits: Iterable[Split]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema(
        [(place(i), arrow_type(c.type)) for i, c in enumerate(read.columns)] + [(META, pa.string())]
    )
    reports: Reports = {}
    with telling():
        for split in splits:
            report = ReadReport()
            for batch in read_split(split, read.columns, report):
                note_clocks(batch, read.clocks, report)
                if read.predicate is not None:
                    batch = keep(batch, read.predicate)
                if batch.num_rows:
                    yield with_meta(batch, schema)
            add_report(reports, split.interface, report)
    yield meta_row(reports, read.columns, schema)


def note_clocks(batch: pa.RecordBatch, clocks: Iterable[str], report: ReadReport) -> None:
    """How far the clocks moved, before any tuple is dropped."""
    for clock in clocks:
        place_of_clock = batch.schema.get_field_index(clock)
        latest = pc.max(batch.column(place_of_clock)).as_py() if place_of_clock >= 0 else None
        if latest is not None:
            report.horizon[clock] = max(report.horizon.get(clock, latest), latest)


def with_meta(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    empty = pa.nulls(batch.num_rows, pa.string())
    return pa.RecordBatch.from_arrays([*batch.columns, empty], schema=schema)


def meta_row(reports: Reports, columns: Sequence[Column], schema: pa.Schema) -> pa.RecordBatch:
    told = pa.array([reports_to_json(reports)], pa.string())
    nothing = [pa.nulls(1, arrow_type(c.type)) for c in columns]
    return pa.RecordBatch.from_arrays([*nothing, told], schema=schema)


# ---- reports -------------------------------------------------------------------------------------


def add_report(reports: Reports, interface: str, report: ReadReport) -> None:
    total = reports.setdefault(interface, ReadReport())
    total.bytes_read += report.bytes_read
    total.tuples += report.tuples
    total.malformed.update(report.malformed)
    for clock, latest in report.horizon.items():
        total.horizon[clock] = max(total.horizon.get(clock, latest), latest)


def reports_to_json(reports: Reports) -> str:
    return json.dumps(
        {
            interface: {
                "bytes_read": r.bytes_read,
                "tuples": r.tuples,
                "malformed": dict(r.malformed),
                "horizon": r.horizon,
            }
            for interface, r in reports.items()
        }
    )


def reports_from_json(texts: Iterable[str]) -> Reports:
    """What all partitions saw, put together."""
    reports: Reports = {}
    for text in texts:
        for interface, told in json.loads(text).items():
            seen = ReadReport(told["bytes_read"], told["tuples"], Counter(told["malformed"]))
            seen.horizon = told["horizon"]
            add_report(reports, interface, seen)
    return reports
