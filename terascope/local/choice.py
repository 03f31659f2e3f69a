"""The engine of a batch: this process, or Spark.

In: a Job, the setting `engine`, and whether Spark is running already. Out: the engine and the
reason, as text for the user. With `auto` the local engine takes a Job when its estimated work is
less than the start of Spark.

The constants are seconds of one core, measured on a machine of two cores (docs/decisions.md, "Small
batches run without Spark"). They need not be exact: near the break-even both engines take about as
long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from terascope.execute.low_level import EngineName
from terascope.execute.relations import arrow_operator
from terascope.physical.job import Job, SourceRead
from terascope.physical.splits import split_bytes
from terascope.plan.rel import Read, walk

EngineSetting: TypeAlias = Literal["local", "spark", "auto"]

SPARK_START_SECONDS: Final = 8.0
"""A cold run of a small set took 10.1 s with Spark (docs/benchmarks.md, start). About 2 s of that
are imports and planning, which every engine needs."""
SPARK_JOB_SECONDS: Final = 0.2
"""The time of the same set in a session with a running Spark, less the work itself."""
LOCAL_SECONDS: Final = 0.1
"""Loading kernels, opening files, writing and sorting results."""
BYTE_SECONDS: Final = {"pcap": 1.0e-9, "parquet": 1.0e-8, "csv": 1.2e-8, "json": 8.0e-9}
"""Decoding a byte of a source."""
OTHER_BYTE_SECONDS: Final = 1.2e-8
PACKED_TIMES: Final = 5.0
"""The bytes in a compressed file for each of its own."""
BYTES_OF_TUPLE: Final = {"pcap": 110.0, "parquet": 15.0, "csv": 60.0, "json": 120.0}
OTHER_BYTES_OF_TUPLE: Final = 50.0
QUERY_SECONDS: Final = 3.0e-8
"""A tuple in a query of the low level."""
REFERENCE_SECONDS: Final = 1.0e-5
"""A tuple in an operator that only the reference interpreter has."""


@dataclass(frozen=True)
class EngineRequest:
    """The settings about engines, before a Job is known."""

    setting: EngineSetting = "auto"
    spark_because: str = ""
    """Why only Spark can be meant, such as a master that the user gave."""


@dataclass(frozen=True)
class EngineChoice:
    """The engine of a run, and why."""

    engine: EngineName
    reason: str

    def __str__(self) -> str:
        return f"engine {self.engine}: {self.reason}"


def choose_engine(job: Job, request: EngineRequest, spark_runs: bool = False) -> EngineChoice:
    """`spark_runs`: Spark is open already."""
    refused = not_local(job)
    if request.setting != "auto":
        return EngineChoice(request.setting, f"set by --engine {request.setting}")
    if request.spark_because or refused is not None:
        return EngineChoice("spark", request.spark_because or refused or "")
    work = local_seconds(job)
    start = SPARK_JOB_SECONDS if spark_runs else SPARK_START_SECONDS
    begin = f"{start:g} s to {'begin' if spark_runs else 'start'}"
    if work < start:
        return EngineChoice("local", f"about {work:.1f} s of work, Spark would need {begin}")
    return EngineChoice("spark", f"about {work:.0f} s of work for one core, Spark needs {begin}")


def not_local(job: Job) -> str | None:
    """Why the local engine cannot run a job; None: it can."""
    for read in job.reads:
        if read.low is None:
            names = ", ".join(interface.name for interface in read.interfaces)
            return f"the tuples of {names} are processed by Spark"
    return None


def local_seconds(job: Job) -> float:
    """The estimated work of a job on one core, without Spark."""
    tuples = sum(map(about_tuples, job.reads))
    queries = sum(
        about_tuples(read) * len(read.low.queries) for read in job.reads if read.low is not None
    )
    slow = sum(
        not isinstance(rel, Read) and arrow_operator(rel, job.parameters) is None
        for top in job.streams.values()
        for rel in walk(top)
    )
    decoding = sum(map(decoding_seconds, job.reads))
    return LOCAL_SECONDS + decoding + QUERY_SECONDS * queries + REFERENCE_SECONDS * slow * tuples


def decoding_seconds(read: SourceRead) -> float:
    kind = read.interfaces[0].kind
    return unpacked_bytes(read) * BYTE_SECONDS.get(kind, OTHER_BYTE_SECONDS)


def about_tuples(read: SourceRead) -> float:
    kind = read.interfaces[0].kind
    return unpacked_bytes(read) / BYTES_OF_TUPLE.get(kind, OTHER_BYTES_OF_TUPLE)


def unpacked_bytes(read: SourceRead) -> float:
    """The bytes of a source, compressed files as large as they are when unpacked."""
    sizes = zip(read.splits, split_bytes(read.splits), strict=True)
    return sum(
        size * (PACKED_TIMES if s.path.endswith((".gz", ".zst")) else 1) for s, size in sizes
    )
