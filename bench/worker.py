"""One process for each contender: started once, kept warm, told to run through a pipe.

So that neither memory nor threads of two contenders mix. What a contender prints goes to a log
file; the end of it is told when the contender fails.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.experiment import Contender, Figures
from bench.memory import MemoryWatch

READY, DONE, FAILED = "ready", "done", "failed"
WARM, RUN, STOP = "warm", "run", "stop"
GOODBYE_SECONDS = 30


class ContenderFailed(Exception):
    """A contender that raised, or whose process died."""


@dataclass(frozen=True)
class Measured:
    """One run."""

    seconds: float
    figures: Figures
    peak_mb: float | None
    worker_mb: float | None


class Worker:
    """The harness's end: the process of one contender."""

    def __init__(self, contender: Contender, cores: int, folder: Path) -> None:
        self.contender = contender
        self.output = folder / "output"
        self._log = folder / "log.txt"
        folder.mkdir(parents=True, exist_ok=True)
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(contender, cores, theirs, str(self._log)), name=contender.name
        )
        self._process.start()
        theirs.close()
        try:
            self._expect(READY)
        except BaseException:
            self.close()
            raise

    def warm(self) -> None:
        """Whatever a first run would do once.

        Raises:
            ContenderFailed: it failed.
        """
        self._pipe.send((WARM, None))
        self._expect(DONE)

    def run(self) -> Measured:
        """One run into an empty folder.

        Raises:
            ContenderFailed: it failed.
        """
        self.discard()
        self.output.mkdir(parents=True)
        assert self._process.pid is not None, "the process was started"
        with MemoryWatch(self._process.pid) as memory:
            self._pipe.send((RUN, str(self.output)))
            seconds, figures = self._expect(DONE)
        return Measured(seconds, figures, memory.peak_mb, memory.worker_mb)

    def discard(self) -> None:
        """Remove the results; what has not reached the disk yet need not be written any more."""
        shutil.rmtree(self.output, ignore_errors=True)

    def close(self) -> None:
        """End the process, by force if it does not listen."""
        with suppress(OSError):  # it may have gone already
            self._pipe.send((STOP, None))
        self._process.join(GOODBYE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()

    def _expect(self, word: str) -> Any:
        try:
            said, value = self._pipe.recv()
        except EOFError:
            self._process.join(GOODBYE_SECONDS)
            raise ContenderFailed(
                f"its process ended with code {self._process.exitcode}; {self._last_words()}"
            ) from None
        if said == FAILED:
            raise ContenderFailed(value)
        assert said == word, f"the worker said {said}, not {word}"
        return value

    def _last_words(self) -> str:
        text = self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"


def serve(contender: Contender, cores: int, pipe: Connection, log: str) -> None:
    """The contender's end: obey until told to stop."""
    redirect(log)
    restrict(cores)
    try:
        running = contender.start(cores)
    except Exception as problem:
        traceback.print_exc()
        pipe.send((FAILED, reason(problem)))
        return
    pipe.send((READY, None))
    try:
        while True:
            word, value = pipe.recv()
            if word == STOP:
                return
            try:
                if word == WARM:
                    running.warm()
                    answer: Any = None
                else:
                    began = time.perf_counter()
                    figures = dict(running.run(Path(value)))
                    answer = (time.perf_counter() - began, figures)
            except Exception as problem:
                traceback.print_exc()
                pipe.send((FAILED, reason(problem)))
                return
            pipe.send((DONE, answer))
    except EOFError:
        return  # the harness has gone
    finally:
        running.close()


def redirect(log: str) -> None:
    """All output, that of child processes too, to the log."""
    sys.stdout.flush()
    sys.stderr.flush()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def restrict(cores: int) -> None:
    """The same cores for everybody, whatever threads they start."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[:cores])


def reason(problem: Exception) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return f"{type(problem).__name__}: {lines[0] if lines else 'no message'}"
