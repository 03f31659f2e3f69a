"""A set that runs as a stream, as Python programs see it.

    with ts.load("flows.gsql").stream(checkpoint="state", output="out") as running:
        for table in running.subscribe("flows"):
            print(table)

In: a compiled set and how it is to run. Out: `RunningSet`: wait for it, stop it, ask how it is,
follow any of its queries. A set that fails is started again from its checkpoint, later and later;
what is wrong with a query or a value is not tried again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from terascope.connectors.base import SourceError
from terascope.connectors.live import LiveSettings, Speed
from terascope.diagnostic import OutputError
from terascope.functions.base import ValueMistake
from terascope.pipeline import Compiled
from terascope.stream.plan import stream_plan

if TYPE_CHECKING:
    from terascope.spark.api import SparkSession
    from terascope.spark.stream_pipeline import BatchReport
    from terascope.spark.stream_runner import Runner

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
MOST_RESTARTS: Final = 8
"""In a row, without a batch in between that was done."""
POLL_SECONDS: Final = 0.2

FINAL: Final = (SourceError, ValueMistake, OutputError)
"""Would happen again."""


StreamFormat: TypeAlias = Literal["parquet", "csv", "ndjson"]


@dataclass(frozen=True)
class StreamSettings:
    """How a set runs as a stream."""

    speed: str | None = None
    """None: sources are followed as they grow. `1x`, `10x`, `max`: what is there is replayed."""
    until_idle: bool = False
    """Stop when all that is there was read; windows close then, as at the end of a batch."""
    heartbeat_seconds: float = 1.0
    """How often silent sources say how late it is; 0: never."""
    skew_seconds: float = 0.0
    """How far a silent source may be behind the clock."""
    trigger_seconds: float = 1.0
    """A micro-batch begins so long after the one before, or when that is done; 0: at once."""
    batch_bytes: int = 256 << 20
    """What a micro-batch reads at most."""
    late: str | Path | None = None
    """A folder for tuples that came when their slice was closed."""
    tasks: int = field(default_factory=lambda: os.cpu_count() or 2)
    """At once, in every micro-batch."""


@dataclass
class Told:
    """What a supervisor has to say."""

    state: str = "starting"
    restarts: int = 0
    last_error: str | None = None


class RunningSet:
    """A set at work. Use it in a `with`; leaving it stops the set."""

    def __init__(
        self,
        make: Callable[[Callable[[BatchReport], None]], Runner],
        say: Callable[[str], None] | None = None,
        watch: Callable[[BatchReport], None] | None = None,
    ) -> None:
        """`make` opens the checkpoint and sets everything up; `say` is told of restarts."""
        self._make = make
        self._say = say or (lambda text: None)
        self._watch = watch or (lambda report: None)
        self.told = Told()
        self._stop = threading.Event()
        self._done_batch = False
        self.runner = make(self._batch)
        self._failure: BaseException | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def _batch(self, report: BatchReport) -> None:
        self._done_batch = True
        self._watch(report)

    # ---- running

    def start(self, compiling: Callable[[int, int], None] | None = None) -> RunningSet:
        self.runner.prepare(compiling)
        self.runner.start()
        self.told.state = "running"
        self._thread = threading.Thread(target=self._supervise, name="terascope", daemon=True)
        self._thread.start()
        return self

    def _supervise(self) -> None:
        try:
            self._keep_running()
        except BaseException as problem:
            self._failure = problem
            self.told.state, self.told.last_error = "failed", one_line(problem)
        finally:
            self._over.set()

    def _keep_running(self) -> None:
        pause, tries = FIRST_WAIT, 0
        while True:
            try:
                while not self._stop.is_set() and not self.runner.ended:
                    if self.runner.wait(POLL_SECONDS):
                        break
                self.runner.stop()
                self.told.state = "stopped"
                return
            except FINAL:
                self.runner.close()
                raise
            except Exception as problem:
                self.runner.close()
                if self._done_batch:
                    pause, tries = FIRST_WAIT, 0
                tries += 1
                if tries > MOST_RESTARTS or self._stop.is_set():
                    raise
                self.told.restarts += 1
                self.told.state, self.told.last_error = "restarting", one_line(problem)
                self._say(
                    f"the stream failed and starts again in {pause:g} s from its checkpoint:"
                    f" {one_line(problem)}"
                )
                if self._stop.wait(pause):
                    return
                pause = min(2 * pause, LONGEST_WAIT)
                self._done_batch = False
                self.runner = self._make(self._batch)
                self.runner.start()
                self.told.state = "running"

    def wait(self, seconds: float | None = None) -> bool:
        """Until the set is over, or so long; whether it is.

        Raises:
            Exception: it failed for good.
        """
        over = self._over.wait(seconds)
        if over and self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return over

    def stop(self) -> None:
        """Between two batches; slices that are open stay in the checkpoint."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> RunningSet:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- results

    @property
    def batch(self) -> int:
        """The last one that is done; -1 before the first."""
        return self.runner.pipeline.state.batch

    def folder(self, query: str) -> Path:
        """Where the rows of a query are.

        Raises:
            KeyError: there is no such query.
        """
        return self.runner.results[query].folder


def open_running(
    spark: Callable[[], SparkSession],
    compiled: Compiled,
    checkpoint: str | Path,
    output: str | Path | None = None,
    format: StreamFormat = "parquet",
    settings: StreamSettings | None = None,
    watch: Callable[[BatchReport], None] | None = None,
    say: Callable[[str], None] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> RunningSet:
    """Start a compiled set as a stream; `QuerySet.stream` is the usual way."""
    chosen = settings or StreamSettings()
    own = {stream.name: stream.text for stream in compiled.plan}
    plan = stream_plan(compiled.job(live=True), compiled.texts(), own)
    tell = progress or (lambda phase, done, total: None)
    tell("starting Spark", 0, 1)
    session = spark()
    from terascope.spark.stream_runner import Runner, RunSettings

    tables = compiled.bindings.low.tables
    run = RunSettings(
        Path(checkpoint),
        None if output is None else Path(output),
        format,
        None if chosen.late is None else Path(chosen.late),
        LiveSettings(
            None if chosen.speed is None else Speed.parse(chosen.speed),
            chosen.until_idle,
            round(chosen.heartbeat_seconds * 1e9),
            compiled.bindings.split_bytes,
            chosen.batch_bytes,
        ),
        chosen.trigger_seconds,
        round(chosen.skew_seconds * 1e9),
        tables.memory_bytes,
        tables.compiled,
        chosen.tasks,
    )
    running = RunningSet(lambda told: Runner(session, plan, run, told), say, watch)
    return running.start(lambda done, total: tell("compiling kernels", done, total))


def one_line(problem: BaseException) -> str:
    return str(problem).strip().partition("\n")[0] or type(problem).__name__
