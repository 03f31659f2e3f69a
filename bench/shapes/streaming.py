"""A query set as a stream, from the start of its first micro-batch until its sources are read.

In: the text of a set, its source, into how many micro-batches it is cut, and a Spark session. Out:
the processor time of the driver, of Spark's JVM and of the workers together, and the micro-batches
that there were.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench.streams.streamed import Feed, Streamed

if TYPE_CHECKING:
    from terascope.spark.session import SparkSession

TASKS = 2
SELDOM = 3600.0
"""Seconds between two looks at memory, which is not what is measured here."""


@dataclass(frozen=True)
class StreamRan:
    """What a stream took and gave."""

    seconds: float
    batches: int
    rows: int


def run_stream(text: str, bound: str, batches: int, spark: SparkSession) -> StreamRan:
    """Stream a set over all of its source, in about so many micro-batches of equal size."""
    name, _, location = bound.partition("=")
    each = max(1, -(-held_bytes(Path(location.partition(":")[2])) // batches))
    feed = Feed(text, {name: location}, split_bytes=max(4096, -(-each // TASKS)))
    settings = {"speed": "max", "trigger": 0.0, "batch_bytes": each, "tasks": TASKS}
    with TemporaryDirectory(prefix="terascope-bench-") as folder:
        contender = Streamed("stream", feed, settings, feed, SELDOM)
        figures = contender.on(spark).run(Path(folder))
        return StreamRan(figures["cpu_seconds"], round(figures["batches"]), round(figures["rows"]))


def held_bytes(place: Path) -> int:
    """Of a file, or of the files in a folder."""
    return (
        sum(p.stat().st_size for p in place.iterdir()) if place.is_dir() else place.stat().st_size
    )
