"""The micro-batches of a running set, one after the other.

In: the reports of a batch's tasks. Out: the slice store grows, slices close, rows of queries are
emitted, and the state of the batch is put in place, in an order in which a process may be killed
between any two steps: segments -> parts -> manifests -> state -> removal of files that the state
before the last one needed. A batch that is run again finds the files of its first run.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from terascope.diagnostic import OutputError
from terascope.execute.results.parts import Part
from terascope.streaming.batch import MicroBatch
from terascope.streaming.context import Report, RunContext, StreamEngine
from terascope.streaming.heartbeat import BatchReport
from terascope.streaming.state.crash import crash_here
from terascope.streaming.state.state import StreamState


class Resting(Exception):
    """A batch came while the stream was being stopped; it runs when the stream resumes."""


class Pipeline:
    """The batches of a running set, one after the other."""

    def __init__(
        self,
        context: RunContext,
        state: StreamState,
        watch: Callable[[BatchReport], None],
    ) -> None:
        self._context = context
        self._watch = watch
        self.state = state
        self._working = threading.Lock()
        """Held while a batch runs."""
        self._resting = False

    def run(self, number: int, read: Callable[[], list[Report]], engine: StreamEngine) -> None:
        """Run a batch; `read` runs its reading tasks."""
        with self._working:
            if self._resting:  # were it to return, Spark would take the batch for done
                raise Resting(f"batch {number} was not begun: the stream is being stopped")
            self._run(number, read, engine)

    def rest(self) -> None:
        """Begin no other batch, and return when none is running. Stopping Spark's stream during a
        batch would wait for that batch.
        """
        with self._working:
            self._resting = True

    def _run(self, number: int, read: Callable[[], list[Report]], engine: StreamEngine) -> None:
        began = time.monotonic()
        reports = read()
        crash_here("stored")
        at = next((text for kind, text in reports if kind == "offset"), None)
        if at is None:  # a batch without tasks changes nothing
            return
        offset = json.loads(at)
        known = self._context.states.load(number)
        if known is not None and known.offset == offset:
            # Spark runs a batch again that is done: its parts were delivered already.
            for kind, text in reports:
                if kind == "part":
                    Part.of(text).path.unlink(missing_ok=True)
            self.state = known
            return
        batch = MicroBatch(self._context, engine, number, self._before(number), offset, reports)
        batch.run()
        crash_here("parts")
        report = batch.commit()
        self.state = report.state
        report.seconds = time.monotonic() - began
        self._watch(report)

    def _before(self, number: int) -> StreamState:
        if self.state.batch < number:
            return self.state.copy()
        found = self._context.states.newest(number - 1)
        if found is None:
            raise OutputError(
                f"the state before batch {number} is gone from '{self._context.folder.state}':"
                " begin anew with another --checkpoint"
            )
        return found
