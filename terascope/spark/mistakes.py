"""The frame around the work of a task in a worker of Spark; mistakes reported in one line.

In a worker: `telling` wraps code so that a mistake of the data or of a source leaves as one marked
line. On the driver: `translated` finds that line (or Spark's own arithmetic errors) in the long
text that Spark raises, and returns the original exception.

Spark's daemon collects garbage after each task, before the worker takes another: with numba
imported this takes a third of a second, longer than many tasks. Objects that exist when a task is
done stay for as long as the worker does, so `working` hides them from the collector.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException

from terascope.diagnostic import OutputError, SourceError, StreamError
from terascope.functions.base import ValueMistake
from terascope.functions.overflow import Overflow
from terascope.kernels.codegen.generated_modules import report_used

Work: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
MARK = "terascope-mistake"
MARKED = re.compile(r"(?:MarkedMistake: |USER_RAISED_EXCEPTION\] )" + MARK + r"(\{.*\})")
"""The mark, only where it was raised: the plan in an analysis error may contain the mark, too."""

KINDS: dict[str, tuple[type[Exception], ...]] = {
    "source": (SourceError,),
    "value": (ValueMistake,),
    "output": (OutputError, StreamError),
}
"""The mistakes that are marked; the driver raises the first of a kind."""
TRY = re.compile(r"`?try_(\w+)`?")
OPERATIONS = {"add": "+", "subtract": "-", "multiply": "*", "sum": "SUM"}
ARITHMETIC = "an expression"
"""The text for an operation that Spark does not name."""

_done = 0
"""The number of tasks of this worker."""


def marked_line(kind: str, message: str) -> str:
    """A mistake as a line that the driver finds."""
    return MARK + json.dumps({"kind": kind, "message": message})


class RunError(Exception):
    """Spark failed for a reason of its own; the message is its first informative line."""


class MarkedMistake(Exception):
    """A mistake on its way from a worker to the driver."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(marked_line(kind, message))


@contextmanager
def telling(where: str = "") -> Iterator[None]:
    """Mark mistakes raised inside; `where` names the user's function that raised."""
    try:
        yield
    except Exception as mistake:
        for kind, known in KINDS.items():
            if isinstance(mistake, known):
                raise MarkedMistake(kind, str(mistake)) from None
        if not where or isinstance(mistake, MarkedMistake):
            raise
        reason = f"{where} failed: {type(mistake).__name__}: {mistake}"
        raise MarkedMistake("value", reason) from mistake


@contextmanager
def translating() -> Iterator[None]:
    """Turn exceptions of Spark raised inside into the original mistakes."""
    try:
        yield
    except Exception as problem:
        mistake = translated(problem)
        if mistake is problem:
            raise
        raise mistake from problem


def translated(problem: Exception) -> Exception:
    """The original mistake of a Spark exception; any other exception unchanged."""
    text = str(problem)
    marked = MARKED.search(text)
    if marked and (told := unmarked(marked.group(1))) is not None:
        return told
    if "ARITHMETIC_OVERFLOW" in text:
        # Spark's advice names the function: "use `try_add` to tolerate overflow".
        advice = TRY.search(text)
        return Overflow(OPERATIONS.get(advice.group(1), ARITHMETIC) if advice else ARITHMETIC)
    if isinstance(problem, PySparkException) or type(problem).__module__.startswith("py4j"):
        return RunError(f"Spark failed: {telling_line(text)}")
    return problem


def unmarked(text: str) -> Exception | None:
    """The mistake in a marked line; None when the line was cut."""
    try:
        told, _ = json.JSONDecoder().raw_decode(text)
        return KINDS[told["kind"]][0](told["message"])
    except (ValueError, KeyError):
        return None


def telling_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    if causes:
        return causes[-1].removeprefix("Caused by:").strip()
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return errors[-1] if errors else (lines[0] if lines else "no reason given")


@contextmanager
def working() -> Iterator[None]:
    """The context around the work of a task."""
    with telling():
        yield
    settle()


def in_worker(work: Work) -> Work:
    """The work of a task on Arrow batches, as Spark runs it."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with working():
            yield from work(batches)

    return run


def settle() -> None:
    """Hide objects from the collector after the 1st, 2nd, 4th, 8th .. task: later tasks load ever
    fewer kernels and modules. Garbage is collected first. The daemon learns of loaded kernels.
    """
    global _done
    _done += 1
    report_used()
    if _done & (_done - 1) == 0:
        gc.collect()
        gc.freeze()
