"""The contenders of these experiments: a set as a stream, and the same set as a batch.

In: sources, a query set, and how it runs. Out: the rows of every query as Parquet, figures and
series. The batch is the yardstick: a stream must give the same rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from bench.compare import Answer, EachItsOwn, SameRows, reference_key
from bench.experiment import Contender, Figures, Outcome, Settings
from bench.streams.usage import Sampler, cpu_seconds
from bench.streams.watching import Batches, MemoryOverTime, read_series, write_series
from bench.workload import KINDS
from terascope.diagnostic import Source
from terascope.pipeline import compile_set
from terascope.session import Session

if TYPE_CHECKING:
    from terascope.spark.session import SparkSession

CHECKPOINT = "_checkpoint"
PATIENCE_SECONDS = 1800.0


@dataclass(frozen=True)
class Feed:
    """A set, and what it reads."""

    gsql: str
    sources: Mapping[str, str]
    """Interface -> KIND:LOCATION."""
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    split_bytes: int = 4 << 20

    def session(self, spark: SparkSession | None) -> Session:
        """With all sources bound."""
        from terascope.config import load_config

        session = Session(spark, config=load_config(split_bytes=self.split_bytes))
        for name, text in self.sources.items():
            session.source(f"{name}={text}")
        for name, members in self.sets.items():
            session.set(name, *members)
        return session

    def answers(self) -> tuple[Answer, ...]:
        """The columns of every visible query."""
        bound = self.session(None).bindings
        plan = compile_set(Source(self.gsql, "set"), bound).plan
        return tuple(
            Answer(stream.name, {f.name: KINDS[f.type] for f in stream.rel.visible})
            for stream in plan.visible
        )

    @property
    def key(self) -> str:
        """Changes with the queries and the data."""
        return reference_key(self.gsql, *(f"{k}={v}" for k, v in self.sources.items()))


@dataclass(frozen=True)
class Streamed:
    """A set that runs as a stream until its sources have been read."""

    name: str
    feed: Feed
    settings: Mapping[str, Any]
    small: Feed
    """To warm up with."""
    sample_seconds: float = 1.0
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Streaming:
        from terascope.spark.session import open_session, stream_settings

        master = f"local[{cores}]"
        spark = open_session(master, settings=stream_settings(master))
        return self.on(spark, spark.stop)

    def on(self, spark: SparkSession, close: Callable[[], object] = lambda: None) -> Streaming:
        """In a Spark that is open already."""
        return Streaming(self, spark, close)


class Streaming:
    """That contender in its process."""

    def __init__(
        self, contender: Streamed, spark: SparkSession, close: Callable[[], object]
    ) -> None:
        self._contender = contender
        self._spark = spark
        self._close = close

    def warm(self) -> None:
        fast = {**self._contender.settings, "speed": "max", "trigger": 0.0}
        with TemporaryDirectory(prefix="terascope-bench-") as folder:
            self._stream(self._contender.small, fast, Path(folder))

    def run(self, output: Path) -> Figures:
        return self._stream(self._contender.feed, self._contender.settings, output)

    def _stream(self, feed: Feed, settings: Mapping[str, Any], output: Path) -> Figures:
        session = feed.session(self._spark)
        queries = session.query(feed.gsql)
        checkpoint = output / CHECKPOINT
        memory = MemoryOverTime(checkpoint / "terascope" / "slices")
        before, began = cpu_seconds(os.getpid()), time.monotonic()
        batches = Batches()
        with Sampler(self._contender.sample_seconds, memory.sample):
            running = queries.stream(
                checkpoint, output, watch=batches.note, **{**settings, "until_idle": True}
            )
            with running:
                over = running.wait(PATIENCE_SECONDS)
        if not over:
            raise TimeoutError(f"the stream did not end in {PATIENCE_SECONDS:g} s")
        run = running.status().run
        if run.restarts:
            raise RuntimeError(f"the stream was restarted: {run.last_error}")
        took = time.monotonic() - began
        session.close()
        write_series(output, batches.series(), memory.series)
        figures = batches.figures() | memory.figures()
        return figures | {
            "cpu_seconds": cpu_seconds(os.getpid()) - before,
            "per_second": figures["tuples"] / took,
        }

    def close(self) -> None:
        self._close()


@dataclass(frozen=True)
class Batched:
    """The same set as a batch."""

    feed: Feed
    small: Feed
    name: str = "terascope, batch"
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Batching:
        from terascope.spark.session import open_session

        spark = open_session(f"local[{cores}]")
        return self.on(spark, spark.stop)

    def on(self, spark: SparkSession, close: Callable[[], object] = lambda: None) -> Batching:
        """In a Spark that is open already."""
        return Batching(self, spark, close)


class Batching:
    """That contender in its process."""

    def __init__(
        self, contender: Batched, spark: SparkSession, close: Callable[[], object]
    ) -> None:
        self._contender = contender
        self._spark = spark
        self._close = close

    def warm(self) -> None:
        with TemporaryDirectory(prefix="terascope-bench-") as folder:
            self._batch(self._contender.small, Path(folder))

    def run(self, output: Path) -> Figures:
        return self._batch(self._contender.feed, output)

    def _batch(self, feed: Feed, output: Path) -> Figures:
        before, began = cpu_seconds(os.getpid()), time.monotonic()
        with feed.session(self._spark) as session:
            total = session.query(feed.gsql).write(output, "parquet", parts=True).total
        took = time.monotonic() - began
        return {
            "tuples": total.tuples,
            "bytes_read": total.bytes_read,
            "cpu_seconds": cpu_seconds(os.getpid()) - before,
            "per_second": total.tuples / took,
        }

    def close(self) -> None:
        self._close()


class WithSeries:
    """A check that also keeps what was seen over time."""

    def __init__(self, check: SameRows | EachItsOwn) -> None:
        self._check = check

    def look(self, outcome: Outcome, output: Path) -> None:
        read_series(outcome, output)
        self._check.look(outcome, output)

    def judge(self, outcomes: list[Outcome]) -> None:
        self._check.judge(outcomes)


def same_as_batch(settings: Settings, feed: Feed, small: Feed) -> SameRows:
    """Streams must give the rows of the batch."""
    reference: Contender = Batched(feed, small)
    return SameRows(
        feed.answers(),
        reference,
        settings.data / f"expected-{feed.key}.json",
        settings.data / "work" / "reference",
        settings.cores,
    )
