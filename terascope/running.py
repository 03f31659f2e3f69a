"""A set that runs as a stream, as Python programs see it.

    with ts.load("flows.gsql").stream(checkpoint="state", output="out") as running:
        for table in running.subscribe("flows"):
            print(table)

In: a compiled set and how it is to run. Out: `RunningSet`: wait for it, stop it, ask how it is,
follow any of its queries. A set that fails is started again from its checkpoint, later and later;
what is wrong with a query or a value is not tried again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from terascope.connectors.base import SourceError
from terascope.diagnostic import OutputError
from terascope.functions.base import ValueMistake

if TYPE_CHECKING:
    from terascope.spark.stream_pipeline import BatchReport
    from terascope.spark.stream_runner import Runner

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
MOST_RESTARTS: Final = 8
"""In a row, without a batch in between that was done."""
POLL_SECONDS: Final = 0.2

FINAL: Final = (SourceError, ValueMistake, OutputError)
"""Would happen again."""


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

    def start(self) -> RunningSet:
        self.runner.prepare()
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


def one_line(problem: BaseException) -> str:
    return str(problem).strip().partition("\n")[0] or type(problem).__name__
