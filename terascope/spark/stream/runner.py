"""Running a set as a stream: set-up, and the start of one Structured Streaming query.

In: a StreamPlan, the live interfaces, the folders of state and results. Out: a `Runner`, which can
be waited for and stopped between two batches. With the offsets, the journal and the states under
the checkpoint another process can resume.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from terascope.config import Config
from terascope.connectors.arrival import is_arrival
from terascope.connectors.live import LinkClock, LiveSettings
from terascope.diagnostic import OutputError, as_mistake
from terascope.execute.partition_check import check_of
from terascope.execute.prepare import prepare, prepare_windows
from terascope.execute.reading_task import NativeRead
from terascope.files import PRIVATE, escaped, folder_mode, make_folder, open_file, output_mode
from terascope.physical.delivery import PartFormat, Sink
from terascope.physical.job import SourceRead
from terascope.physical.rules.choose_strategies import levels_of
from terascope.physical.rules.finish_in_tasks import stream_numbers
from terascope.physical.stream.plan import StreamPlan
from terascope.plan.rel import Field
from terascope.spark.mistakes import translated, translating
from terascope.spark.session import is_alive
from terascope.spark.stream.engine import SparkStreamEngine
from terascope.spark.stream.located_reads import batch_reports
from terascope.spark.stream.source import stream_frame
from terascope.streaming.batch import Pipeline
from terascope.streaming.context import RunContext
from terascope.streaming.heartbeat import BatchReport
from terascope.streaming.live_source import StreamSource, stream_epochs
from terascope.streaming.replan.replanning import Replanner
from terascope.streaming.replan.window_plans import WindowPlans
from terascope.streaming.replan.window_replanning import WindowReplanner
from terascope.streaming.sources import LATE, kept_fields, partners
from terascope.streaming.state.manifest import GrowingResult
from terascope.streaming.state.resume import resumed_state
from terascope.streaming.state.runs import RunFolder
from terascope.streaming.state.state import StateFolder, StreamState

HOMES_EACH: Final = 2
"""Where a source has many partitions: the tasks that read them in a micro-batch, for each that runs
at once. A task costs Spark 20 ms."""


@dataclass(frozen=True)
class StreamRun:
    """The folders of a stream's state and results, and all its settings."""

    checkpoint: Path
    output: Path | None = None
    """The folder of results; None: they are kept under the checkpoint."""
    format: PartFormat = "parquet"
    live: LiveSettings = field(default_factory=LiveSettings)
    config: Config = field(default_factory=Config)


class Runner:
    """A running set."""

    def __init__(
        self,
        spark: SparkSession,
        plan: StreamPlan,
        run: StreamRun,
        watch: Callable[[BatchReport], None] | None = None,
        windows: WindowPlans | None = None,
    ) -> None:
        """`windows`: the compositions of its windows, which are saved with the run."""
        self.plan = plan
        self.run, self._config, config = run, run.config, run.config
        self._mode = output_mode(config.outputs == "shared")
        self._spark = spark
        self.folder = RunFolder.of(run.checkpoint)
        self._lock = locked(self.folder.path)
        folder = str((run.output or self.folder.results).absolute())
        self.sink = Sink(folder, run.format, config.compiled, config.memory_bytes, self._mode)
        self._tell = watch or (lambda report: None)
        self.replanner = Replanner(plan.deliveries.reads, self.folder.path, config)
        self._query: StreamingQuery | None = None
        self._failure: BaseException | None = None
        self.windows: WindowReplanner | None = None
        try:
            self.results = self._open_results()
            if windows is not None:
                windows.save(self.folder.path)
                self.windows = WindowReplanner(plan, windows, config, self.folder.path)
            self.pipeline = self._pipeline()
        except BaseException:
            self.close()
            raise

    def _watch(self, report: BatchReport) -> None:
        self.replanner.ingest(report.beats, report.samples)
        if self.windows is not None:
            self.windows.ingest(report)
        self._tell(report)

    def _open_results(self) -> dict[str, GrowingResult]:
        def opened(folder: Path, name: str, fields: Sequence[Field]) -> GrowingResult:
            return GrowingResult(folder, name, self.run.format, fields, self._mode)

        found = {
            output.name: opened(self.sink.folder_of(output.name), output.name, output.fields)
            for output in self.plan.outputs
        }
        if self._config.late is not None:
            for read in self.plan.deliveries.reads:
                assert read.low is not None
                fields = kept_fields(read.low.columns)
                for interface in read.interfaces:
                    name = LATE + interface.name
                    folder = self._config.late.absolute() / escaped(interface.name)
                    found[name] = opened(folder, name, fields)
        newest = newest_batch(self.run.checkpoint)
        for result in found.values():
            if result.last_batch > newest:
                raise OutputError(
                    f"'{result.folder}' has rows of batch {result.last_batch}, of which"
                    f" '{self.run.checkpoint}' knows nothing: they are of another run; choose"
                    " another --output, or go on from the --checkpoint they are of"
                )
        for result in found.values():
            result.sweep()
        return found

    def _pipeline(self) -> Pipeline:
        states = StateFolder(self.folder.state)
        before = states.newest()
        owned, most = self.plan.job.ownership, self._config.tasks
        destinations = most if owned is None else min(owned.count, HOMES_EACH * most)
        state = resumed_state(self.plan, before, destinations)
        if before is not None:
            states.save(state)
        context = RunContext(self.plan, self.folder, self.sink, self.results, self.run.live)
        return Pipeline(context, state, self._watch)

    def prepare(self, tell: Callable[[int, int], None] | None = None) -> None:
        """Compile the kernels, once for all tasks."""
        told = tell or (lambda done, total: None)
        for read in self.plan.deliveries.reads:
            if read.low is not None:
                prepare(read.low, told)
        if self._config.compiled:
            for family in self.plan.windows.values():
                prepare_windows(family.slices, told)
        self.replanner.prepare(told)

    def source(self) -> StreamSource:
        """The live interfaces, and the work of the tasks of every micro-batch."""
        plan, config = self.plan, self._config
        targets, destinations = plan.deliveries.targets, self.pipeline.state.destinations
        owned = plan.job.ownership
        reads = (
            NativeRead(
                read,
                stream_numbers(plan.job, read),
                targets,
                self.sink,
                destinations,
                kept=kept_numbers(plan, read),
                check=None if owned is None else check_of(read, owned),
            )
            for read in plan.deliveries.reads
        )
        return StreamSource(
            tuple(reads),
            self.pipeline.context.stored,
            str(self.folder.slices),
            None if config.late is None else str(config.late.absolute()),
            self.run.format,
            self.pipeline.state.starts,
            config.tree_leaves,
            levels_of(config),
            link_clocks(plan),
            replace(self.run.live, partners=partners(plan)),
            str(self.folder.path),
            config.tasks,
            stream_epochs(plan),
            {} if owned is None else owned.homes(destinations, by_host=False),
            config.replan_sample_tuples if self.replanner.wants_samples else 0,
            config.replan_sample_seconds,
            () if plan.job.ownership is None else plan.job.ownership.hosts,
        )

    def start(self) -> None:
        self.folder.note_idle(False)
        self._source = self.source()
        trigger = f"{self._config.trigger} seconds"
        writer = (
            stream_frame(self._spark, self._source)
            .writeStream.foreachBatch(self._run_batch)
            .option("checkpointLocation", str(self.run.checkpoint.absolute()))
            .trigger(processingTime=trigger)
        )
        self._query = writer.start()

    def _run_batch(self, frame: DataFrame, number: int) -> None:
        """Spark's callback for every micro-batch."""
        try:
            with translating():
                engine = SparkStreamEngine(frame.sparkSession, self._config.tasks)
                self.pipeline.run(number, lambda: batch_reports(frame, self._source), engine)
        except BaseException as problem:
            self._failure = problem
            raise

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, or for a time; return whether it has ended. Failures are raised."""
        assert self._query is not None
        try:
            # PySpark takes fractions of a second, and says integers only.
            over = self._query.awaitTermination(cast(Any, seconds))
        except Exception as problem:
            if self._failure is not None:
                raise self._failure from problem
            raise translated(problem) from problem
        return over is None or bool(over)

    @property
    def ended(self) -> bool:
        """Whether the sources have ended and all rows were emitted."""
        return self.pipeline.state.ended or self.folder.is_idle

    @property
    def has_spark(self) -> bool:
        """Whether it could be started again in this process."""
        return is_alive(self._spark)

    def stop(self) -> None:
        """Stop between two batches."""
        self.pause()
        self.close()

    def pause(self) -> None:
        """Stop after the batch that runs, and keep the checkpoint locked for this process."""
        if self._query is not None:
            self.pipeline.rest()
            if self.has_spark:
                self._query.stop()
            self._query = None

    def abandon(self) -> None:
        """After a failure: release the checkpoint once no batch is running any more. A batch may
        outlive its JVM while it commits.
        """
        self.pipeline.rest()
        self.close()

    def save(self, state: StreamState) -> None:
        """Save another state after the last batch."""
        StateFolder(self.folder.state).save(state)

    def close(self) -> None:
        """Release the checkpoint for other processes."""
        self.replanner.close()
        if self.windows is not None:
            self.windows.close()
        self._lock.close()


def newest_batch(checkpoint: Path) -> int:
    """The newest batch that was ever planned from a checkpoint; -1: none."""
    planned = (path.name for path in (checkpoint / "offsets").glob("[0-9]*"))
    return max((int(name) for name in planned if name.isdigit()), default=-1)


def locked(folder: Path) -> BinaryIO:
    """Lock a checkpoint for this process.

    Raises:
        OutputError: another process has locked it, or the folder cannot be written.
    """
    with as_mistake(OutputError, f"cannot write the checkpoint '{folder.parent}'"):
        make_folder(folder)
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder_mode(PRIVATE))  # it may be of a version that left it open
        file = open_file(folder / "lock", "wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        file.close()
        raise OutputError(
            f"a set is running from '{folder.parent}' already; stop it, or give another"
            " --checkpoint"
        ) from problem
    file.write(str(os.getpid()).encode())
    file.flush()
    return file


def link_clocks(plan: StreamPlan) -> dict[str, LinkClock | None]:
    """The finest clock column of each interface. A falling column is no clock of a stream: the time
    of day rises, and its watermark would be wrong. Arrival times are no clock of the tuples
    themselves.
    """
    found: dict[str, list[LinkClock]] = {}
    for stream in plan.low:
        clocks = [
            LinkClock(column.read_from, column.clock)
            for column in stream.scan.columns
            if column.clock is not None and not column.falls and not is_arrival(column.read_from)
        ]
        for interface in stream.scan.interfaces:
            found.setdefault(interface, []).extend(clocks)
    return {name: min(some, key=lambda c: c.tick_ns, default=None) for name, some in found.items()}


def kept_numbers(plan: StreamPlan, read: SourceRead) -> frozenset[int]:
    """The low-level streams of a read whose groups only one partition has."""
    owned = plan.job.ownership
    if owned is None or not owned.has(read.interfaces):
        return frozenset()
    return frozenset(
        number
        for number in stream_numbers(plan.job, read)
        if plan.job.low[number].name in owned.kept
    )
