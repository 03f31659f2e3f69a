"""What every task of ours does in a worker of Spark, around its work; mistakes told in one line.

In a worker: `telling` wraps code so that a mistake of the data or of a source leaves as one marked
line. On the driver: `translated` finds that line (or Spark's own arithmetic errors) in the long
text Spark raises and gives back the exception it was.

Spark's daemon collects garbage after each task, before the worker takes another: that walks over
everything that was ever imported and compiled, a third of a second with numba, for tasks that take
less. What is there when a task is done stays for as long as the worker does, so `working` takes it
out of the collector's sight.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from terascope.diagnostic import OutputError, SourceError, StreamError
from terascope.functions.base import ValueMistake
from terascope.functions.overflow import Overflow
from terascope.kernels.codegen.preload import report_used

MARK = "terascope-mistake"
MARKED = re.compile(r"(?:MarkedMistake: |USER_RAISED_EXCEPTION\] )" + MARK + r"(\{.*\})")
"""Only as something raised: the plan that an analysis error prints may hold the mark, too."""

KINDS: dict[str, type[Exception]] = {
    "source": SourceError,
    "value": ValueMistake,
    "output": OutputError,
}
TRY = re.compile(r"`?try_(\w+)`?")
OPERATIONS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "sum": "SUM",
}
ARITHMETIC = "an expression"
"""Where Spark does not say in which."""

_done = 0
"""Tasks of this worker."""


def marked_line(kind: str, message: str) -> str:
    """A mistake as a line that the driver finds."""
    return MARK + json.dumps({"kind": kind, "message": message})


class RunError(Exception):
    """Spark failed for a reason of its own; the message is its first telling line."""


class MarkedMistake(Exception):
    """A mistake on its way from a worker to the driver."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(marked_line(kind, message))


@contextmanager
def telling(where: str = "") -> Iterator[None]:
    """Mark mistakes raised inside; `where` names the function of the user that raised."""
    try:
        yield
    except MarkedMistake:
        raise
    except SourceError as mistake:
        raise MarkedMistake("source", str(mistake)) from None
    except ValueMistake as mistake:
        raise MarkedMistake("value", str(mistake)) from None
    except (OutputError, StreamError) as mistake:
        raise MarkedMistake("output", str(mistake)) from None
    except Exception as mistake:
        if not where:
            raise
        reason = f"{where} failed: {type(mistake).__name__}: {mistake}"
        raise MarkedMistake("value", reason) from mistake


@contextmanager
def translating() -> Iterator[None]:
    """Turn what Spark raises inside into the mistake it stands for."""
    try:
        yield
    except Exception as problem:
        mistake = translated(problem)
        if mistake is problem:
            raise
        raise mistake from problem


def translated(problem: Exception) -> Exception:
    """The mistake a Spark exception stands for; any other exception as it is."""
    text = str(problem)
    marked = MARKED.search(text)
    if marked:
        told = unmarked(marked.group(1))
        if told is not None:
            return told
    if "ARITHMETIC_OVERFLOW" in text:
        return Overflow(overflowing(text))
    if isinstance(problem, PySparkException) or type(problem).__module__.startswith("py4j"):
        return RunError(f"Spark failed: {telling_line(text)}")
    return problem


def unmarked(text: str) -> Exception | None:
    """The mistake a marked line holds; None when the line was cut."""
    try:
        told, _ = json.JSONDecoder().raw_decode(text)
        return KINDS[told["kind"]](told["message"])
    except (ValueError, KeyError):
        return None


def overflowing(text: str) -> str:
    """Spark's advice names the function: "use `try_add` to tolerate overflow"."""
    advice = TRY.search(text)
    return OPERATIONS.get(advice.group(1), ARITHMETIC) if advice else ARITHMETIC


def telling_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    if causes:
        return causes[-1].removeprefix("Caused by:").strip()
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return errors[-1] if errors else (lines[0] if lines else "no reason given")


@contextmanager
def working() -> Iterator[None]:
    """Around the work of a task."""
    with telling():
        yield
    settle()


def settle() -> None:
    """After the 1st, 2nd, 4th, 8th .. task: later ones bring kernels and modules too, but ever
    fewer. Garbage goes first, or it would stay for good. What was loaded is told to the daemon.
    """
    global _done
    _done += 1
    report_used()
    if _done & (_done - 1) == 0:
        gc.collect()
        gc.freeze()
