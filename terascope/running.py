"""A set that runs as a stream, for Python programs.

    with ts.load("flows.gsql").stream(checkpoint="state", output="out") as running:
        for table in running.subscribe("flows"):
            print(table)

In: a compiled set and its settings. Out: `RunningSet`: wait for it, stop it, read its status,
follow any of its queries. A set that fails is restarted from its checkpoint after growing pauses;
mistakes of a query or a value are not retried.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from terascope.connectors.live.links import check_read_files
from terascope.diagnostic import OutputError, SourceError, SparkLost
from terascope.functions.base import ValueMistake
from terascope.operate.control_requests import (
    SHOWN,
    ControlRequest,
    apply_request,
    current,
    note_given,
    pending_requests,
    rows_folder,
)
from terascope.operate.notices import Notices
from terascope.operate.reporting import Reporter
from terascope.operate.server import StatusServer
from terascope.operate.status import Status
from terascope.operate.subscription import Callback, CallbackSink, Subscription
from terascope.physical.stream.plan import StreamPlan
from terascope.pipeline import Compiled
from terascope.sharing.compositions import Composition
from terascope.streaming.replan.window_plans import WindowPlans
from terascope.streaming.state.runs import Run, RunFolder, announced
from terascope.streaming.state.state import StateFolder, StreamState
from terascope.streams import (
    check_files,
    could_go_on,
    live_settings,
    planned_stream,
    run_facts,
    run_of,
)

if TYPE_CHECKING:
    from terascope.execute.low_level import Progress
    from terascope.spark.session import SparkSession
    from terascope.spark.stream.runner import Runner
    from terascope.streaming.heartbeat import BatchReport

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
MOST_RESTARTS: Final = 8
"""The most restarts in a row without a completed batch in between."""
POLL_SECONDS: Final = 0.2

FINAL: Final = (SourceError, ValueMistake, OutputError, BrokenPipeError, SparkLost)
"""Failures that would happen again."""
CALLBACK: Final = "callback"
"""The folder of acknowledgements of a callback, in the folder of the run."""


StreamFormat: TypeAlias = Literal["parquet", "csv", "ndjson"]


class RunningSet:
    """A running set. Use it in a `with`; leaving it stops the set."""

    def __init__(
        self,
        make: Callable[[Callable[[BatchReport], None]], Runner],
        reporter: Reporter,
        say: Callable[[str], None] | None = None,
        watch: Callable[[BatchReport], None] | None = None,
        callback: Callback | None = None,
        apply: Callable[[StreamState, ControlRequest], bool] | None = None,
        lost: Callable[[], SparkLost | None] = lambda: None,
        accepts: Callable[[Mapping[str, Composition]], bool] = lambda changed: True,
    ) -> None:
        """`make` opens the checkpoint and sets everything up; `say` is called with restarts;
        `apply` applies a request to the state, and returns whether it changes; `lost` returns the
        mistake when Spark is gone and cannot be started again; `accepts` returns whether the run
        could continue with other compositions of its windows.
        """
        self._accepts = accepts
        self._lost = lost
        self._apply = apply
        self._make = make
        self._reporter = reporter
        self._say = say or logging.getLogger("terascope").warning
        self._watch = watch or (lambda report: None)
        self._callback = callback
        self._sink: CallbackSink | None = None
        self._notices = Notices()
        self._supervised = reporter.facts.run
        self._stop = threading.Event()
        self._done_batch = False
        self.runner = make(self._batch)
        self._first_batch = self.batch
        self._failure: BaseException | None = None
        self._over = threading.Event()
        self._ending = threading.Lock()
        self._thread: threading.Thread | None = None
        self._public = ExitStack()
        self.run: Run | None = None
        """The description for the commands, if the set was announced."""

    def announce(self, port: int, run: Callable[[int], Run], hosts: Sequence[str] = ()) -> None:
        """Make the set visible to the commands; `run` describes it, given the port of its server.

        Raises:
            StreamError: the port is taken, or another process runs from the checkpoint.
        """
        server = self._public.enter_context(StatusServer(port, look=self.status, hosts=hosts))
        self.run = self._public.enter_context(announced(run(server.port)))

    def _batch(self, report: BatchReport) -> None:
        self._reporter.ingest(report)
        for line in self._notices.ingest(report, {s.name: s for s in self.status().sources}):
            self._say(line)
        if self._sink is not None:
            self._sink.deliver(report.batch)
        self._done_batch = True
        self._watch(report)

    # ---- running

    def start(self, compiling: Callable[[int, int], None] | None = None) -> RunningSet:
        """Begin, or resume from the checkpoint; `compiling` gets the progress of kernels."""
        try:
            self.runner.prepare(compiling)
            self._begin()
        except BaseException:
            self._public.close()
            self.runner.close()
            raise
        self._thread = threading.Thread(target=self._supervise, name="terascope", daemon=True)
        self._thread.start()
        return self

    def _begin(self) -> None:
        """Deliver batches that the callback has not acknowledged, then start the stream."""
        runner = self.runner
        self._reporter.follow(runner.plan, runner.pipeline.state)
        if self._callback is not None:
            names = [o.name for o in runner.plan.outputs if not o.name.endswith(SHOWN)]
            folders = {name: self.folder(name) for name in names}
            notes = runner.folder.path / CALLBACK
            keep = runner.run.output is not None
            self._sink = CallbackSink(self._callback, folders, notes, keep)
            self._sink.deliver(self.batch)
        runner.start()
        self._supervised = replace(self._supervised, state="running")

    def _supervise(self) -> None:
        try:
            self._keep_running()
        except BaseException as problem:
            self._failure = problem
            self._supervised = replace(
                self._supervised, state="failed", last_error=one_line(problem)
            )
        finally:
            with self._ending:
                if self._supervised.state == "stopping":
                    self._supervised = replace(self._supervised, state="stopped")
                self._public.close()
                self._over.set()

    def _keep_running(self) -> None:
        pause, tries, is_down = FIRST_WAIT, 0, False
        while True:
            try:
                if is_down:
                    self.runner = self._make(self._batch)
                    self._begin()
                    is_down = False
                self._until_over()
                return
            except FINAL:
                self.runner.close()
                raise
            except Exception as problem:
                self.runner.abandon()
                is_down = True
                if self._done_batch:
                    pause, tries, self._done_batch = FIRST_WAIT, 0, False
                tries += 1
                if (lost := self._lost()) is not None:
                    raise lost from problem
                if tries > MOST_RESTARTS or self._stop.is_set():
                    raise
                cause = self._cause(problem)
                self._supervised = replace(
                    self._supervised,
                    state="restarting",
                    restarts=self._supervised.restarts + 1,
                    last_error=cause,
                )
                again = f"starts again in {pause:g} s from its checkpoint"
                self._say(f"the stream failed and {again}: {cause}")
                if self._stop.wait(pause):
                    self._supervised = replace(self._supervised, state="stopped")
                    return
                pause = min(2 * pause, LONGEST_WAIT)

    def _until_over(self) -> None:
        while not self._stop.is_set() and not self.runner.ended:
            if self.runner.wait(POLL_SECONDS):
                break
            self._take_requests()
            self._recompose_windows()
        self.runner.stop()
        self._supervised = replace(self._supervised, state="stopped")
        if self.runner.ended:
            check_end(self.runner)

    def _take_requests(self) -> None:
        """Apply pending control requests: the stream continues after a pause."""
        asked = list(pending_requests(self.runner.folder))
        if asked and self._applied(asked):
            self.runner.pause()
            state = self._applied(asked)
            if state is not None:
                self.runner.save(state)
            self._renew()
            self._begin()
        for request in asked:
            request.path.unlink(missing_ok=True)

    def _recompose_windows(self) -> None:
        """Change the composition of windows from the next batch on, when a change is due."""
        replanner = self.runner.windows
        changed = {} if replanner is None else replanner.due()
        if replanner is None or not changed:
            return
        if not self._accepts(changed):
            replanner.pin(changed)
            return
        self.runner.pause()
        replanner.put_in_force(changed)
        self._renew()
        self.runner.prepare()
        self._begin()

    def _renew(self) -> None:
        """Another runner takes over from the checkpoint."""
        self.runner.close()
        self.runner = self._make(self._batch)

    def _applied(self, asked: Sequence[ControlRequest]) -> StreamState | None:
        """The state after a request; None: the request changes nothing."""
        state = self.runner.pipeline.state.copy()
        done = [self._apply is not None and self._apply(state, request) for request in asked]
        return state if any(done) else None

    def _cause(self, problem: Exception) -> str:
        """The cause of a failure: of a dead JVM PySpark only says that it does not answer."""
        if self.runner.has_spark:
            return one_line(problem)
        return "Spark's JVM has ended (killed, or out of memory); another one is started"

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the set is over, or for a time; return whether it is over.

        Raises:
            Exception: it failed for good.
        """
        over = self._over.wait(seconds)
        if over and self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return over

    def stop(self) -> None:
        """Stop between two batches; open slices stay in the checkpoint."""
        self.ask_to_stop()
        if self._thread is not None:
            self._thread.join()

    def ask_to_stop(self) -> None:
        """Request a stop, without waiting for it."""
        with self._ending:
            if not self._over.is_set() and not self._stop.is_set():
                self._supervised = replace(self._supervised, state="stopping")
        self._stop.set()

    def __enter__(self) -> RunningSet:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- results

    @property
    def batch(self) -> int:
        """The last completed batch; -1 before the first."""
        return self.runner.pipeline.state.batch

    @property
    def ended(self) -> bool:
        """Whether its sources have ended, and all rows were emitted."""
        return self.runner.ended

    def folder(self, query: str) -> Path:
        """The folder with the rows of a query.

        Raises:
            KeyError: there is no such query.
        """
        return self.runner.results[query].folder

    def subscribe(
        self,
        query: str,
        *,
        follow: bool = True,
        from_start: bool = False,
        since_batch: int | None = None,
    ) -> Subscription:
        """The rows of a query, an Arrow table for each batch, from the start of this run. Those of
        an internal stream begin with the first whole slice after the request.

        `from_start`: batches of earlier runs come first; `since_batch`: only batches after that
        one. With `follow` it waits for more until the run is over.

        Raises:
            KeyError: there is no such query.
            StreamError: it is internal, and the set does not run any more.
        """
        internal = self.run is not None and query in self.run.internal
        folder = rows_folder(self.run, query) if self.run and internal else self.folder(query)
        if since_batch is None and not from_start:
            since_batch = self._first_batch
        return Subscription(
            folder,
            follow=follow,
            from_start=from_start,
            since_batch=since_batch,
            is_over=self._over.is_set,
        )

    def status(self) -> Status:
        """The status of the run, as `terascope status` shows it."""
        runner = self.runner
        rows = {name: result.rows for name, result in runner.results.items()}
        links = runner.folder.links()
        told = self._reporter.status(replace(self._supervised, batch=self.batch), links, rows)
        state = runner.pipeline.state
        edges = {c["name"]: time_text(c["edge_ns"]) for c in state.parameters.get("changes", [])}
        return replace(
            told,
            run=replace(
                told.run,
                parameter_edges=edges,
                callback=None if self._sink is None else self._sink.at_work(told.run.updated),
                callback_seconds=0.0 if self._sink is None else self._sink.seconds,
            ),
            parameters=current(state, told.parameters),
            trees=runner.replanner.status(),
            strategies=runner.replanner.strategies(),
            windows=() if runner.windows is None else runner.windows.status(),
        )


def open_running(
    spark: Callable[[], SparkSession],
    compiled: Compiled,
    checkpoint: str | Path,
    output: str | Path | None = None,
    format: StreamFormat = "parquet",
    watch: Callable[[BatchReport], None] | None = None,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    callback: Callback | None = None,
    lost: Callable[[], SparkLost | None] = lambda: None,
) -> RunningSet:
    """Start a compiled set as a stream; `QuerySet.stream` is the usual way. `spark` returns a live
    session each time the stream is started; `lost` the reason when there is none.
    """
    config = compiled.bindings.config
    folder = RunFolder.of(Path(checkpoint))
    states = StateFolder(folder.state)
    given = dict(compiled.bindings.parameters)
    windows = WindowPlans.of(folder.path)

    def planned() -> StreamPlan:
        """The plan with the parameter values of the checkpoint, and their changes."""
        return planned_stream(compiled, states.newest(), windows)

    plan = planned()
    check_files(plan, config.speed)
    tell = progress or (lambda phase, done, total: None)
    tell("starting Spark", 0, 1)
    spark()
    from terascope.spark.stream.runner import Runner, StreamRun

    output = None if output is None else Path(output)
    run = StreamRun(Path(checkpoint), output, format, live_settings(compiled), config)

    def make(told: Callable[[BatchReport], None]) -> Runner:
        before = states.newest()
        if before is not None and note_given(before, given, compiled.plan):
            states.save(before)
        runner = Runner(spark(), planned(), run, told, windows)
        note_given(runner.pipeline.state, given, compiled.plan)
        return runner

    running = RunningSet(
        make,
        Reporter(plan, run_facts(compiled, plan, checkpoint, output)),
        say,
        watch,
        callback,
        lambda state, request: apply_request(state, compiled.plan, request),
        lost,
        lambda changed: could_go_on(compiled, states.newest(), windows.with_changes(changed)),
    )
    if config.port is not None:
        running.announce(
            config.port,
            lambda port: run_of(compiled, plan, port, checkpoint, output, format),
            config.status_hosts,
        )
    return running.start(lambda done, total: tell("compiling kernels", done, total))


def check_end(runner: Runner) -> None:
    """Check sources that were read to their end without a tuple.

    Raises:
        SourceError: there was nothing that could be read, as a batch would have said at once.
    """
    seen = runner.pipeline.state.seen
    interfaces = (one for read in runner.plan.job.reads for one in read.interfaces)
    check_read_files(one for one in interfaces if one.name not in seen or not seen[one.name].tuples)


def time_text(moment_ns: int) -> str:
    return datetime.fromtimestamp(moment_ns / 1e9, UTC).isoformat().replace("+00:00", "Z")


def one_line(problem: BaseException) -> str:
    return str(problem).strip().partition("\n")[0] or type(problem).__name__
