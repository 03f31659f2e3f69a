"""A running set: what happens in every micro-batch (foreachBatch).

In: the told rows of a batch's tasks. Out: nothing that Spark sees: the slice store grows, slices
close, rows of queries are delivered, and the state of the batch is put in place, in an order in
which a process may be killed between any two steps: segments -> parts -> manifests -> state ->
what the state before the last needed is removed. A batch that is run again finds what it did.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from pyspark.sql import DataFrame

from terascope.diagnostic import OutputError
from terascope.execute.results.parts import Part
from terascope.spark.mistakes import translating
from terascope.spark.stream.batch import Batch
from terascope.spark.stream.wiring import Wiring
from terascope.streaming.report import BatchReport
from terascope.streaming.state.crash import crash_here
from terascope.streaming.state.state import State


class Resting(Exception):
    """A batch came when the stream was being stopped; it is run when the stream goes on."""


class Pipeline:
    """The batches of a running set, one after the other."""

    def __init__(
        self,
        wiring: Wiring,
        state: State,
        watch: Callable[[BatchReport], None],
    ) -> None:
        self._wiring = wiring
        self._watch = watch
        self.state = state
        self._working = threading.Lock()
        """Held while a batch is at work."""
        self._resting = False
        self.failure: BaseException | None = None

    def __call__(self, frame: DataFrame, number: int) -> None:
        with self._working:
            if self._resting:  # were it to return, Spark would take the batch for done
                raise Resting(f"batch {number} was not begun: the stream is being stopped")
            try:
                with translating():
                    self._run(frame, number)
            except BaseException as problem:
                self.failure = problem
                raise

    def rest(self) -> None:
        """Begin no other batch; returns when none is at work. Whoever stops Spark's stream while a
        batch waits for him would wait for that batch.
        """
        with self._working:
            self._resting = True

    def _run(self, frame: DataFrame, number: int) -> None:
        began = time.monotonic()
        told = [(row[0], row[1]) for row in frame.collect()]
        crash_here("stored")
        at = next((text for kind, text in told if kind == "offset"), None)
        if at is None:  # a batch without tasks has nothing to say
            return
        offset = json.loads(at)
        known = self._wiring.states.load(number)
        if known is not None and known.offset == offset:
            # It is run again though it is done: what its tasks wrote just now is there already.
            for kind, text in told:
                if kind == "part":
                    Part.of(text).path.unlink(missing_ok=True)
            self.state = known
            return
        batch = Batch(self._wiring, frame.sparkSession, number, self._before(number), offset, told)
        batch.run()
        crash_here("parts")
        report = batch.commit()
        self.state = report.state
        report.seconds = time.monotonic() - began
        self._watch(report)

    def _before(self, number: int) -> State:
        if self.state.batch < number:
            return self.state.copy()
        found = self._wiring.states.newest(number - 1)
        if found is None:
            raise OutputError(
                f"the state before batch {number} is gone from '{self._wiring.folder.state}':"
                " begin anew with another --checkpoint"
            )
        return found
