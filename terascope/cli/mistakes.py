"""Mistakes on the command line: one clear line on stderr and the right exit code, no traceback.

In: a command function. Out: the same function, that ends with exit code 1 when the query set or
its input is wrong. `--debug` shows the traceback of what nobody expected.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import ParamSpec

import typer
from rich.console import Console
from rich.text import Text

P = ParamSpec("P")
INTERRUPTED = 130


def told(command: Callable[P, None]) -> Callable[P, None]:
    """The command, with its mistakes told."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        debug = bool(kwargs.get("debug"))
        try:
            with nullcontext() if debug else unlogged():
                command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except KeyboardInterrupt:
            errors().print("interrupted", style="yellow")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever read the results has seen enough; nothing may be written at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except Exception as mistake:
            if debug:
                raise
            tell(mistake)
            raise typer.Exit(1) from None

    return run


@contextmanager
def unlogged() -> Iterator[None]:
    """Libraries log, with tracebacks, what is told here in one line: an interrupted call of the JVM
    above all.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def errors() -> Console:
    """Where mistakes go; long lines are the terminal's to break."""
    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def tell(mistake: Exception) -> None:
    """A mistake for a person to read."""
    from terascope.diagnostic import QueryError, render_one

    if isinstance(mistake, QueryError):
        for diagnostic in mistake.diagnostics:
            tell_diagnostic(render_one(diagnostic, mistake.source), diagnostic.severity)
        number = len(mistake.diagnostics)
        errors().print(f"{number} mistake{'' if number == 1 else 's'} in {mistake.source.name}")
    else:
        tell_line("error", message(mistake))


def tell_diagnostic(text: str, severity: str) -> None:
    """Its first line in colour; an empty line after it."""
    style = "bold red" if severity == "error" else "bold yellow"
    first, newline, rest = text.partition("\n")
    word, bracket, behind = first.partition("]: ")
    head = Text.assemble((word + bracket, style), (behind, "bold"))
    errors().print(Text.assemble(head, newline, rest, "\n"))


def tell_line(word: str, text: str) -> None:
    style = "bold red" if word == "error" else "bold yellow"
    errors().print(Text.assemble((f"{word}: ", style), text))


def message(mistake: Exception) -> str:
    """The message of a mistake made for the user; what was not foreseen is said to be that."""
    if isinstance(mistake, expected_mistakes()):
        return str(mistake)
    if isinstance(mistake, OSError) and mistake.strerror:
        where = f" '{mistake.filename}'" if mistake.filename else ""
        return f"cannot use{where}: {mistake.strerror.lower()}"
    lines = str(mistake).strip().splitlines() or ["no message"]
    return f"unexpected {type(mistake).__name__}: {lines[0]} (--debug shows where)"


def expected_mistakes() -> tuple[type[Exception], ...]:
    from terascope.config import ConfigError
    from terascope.diagnostic import OutputError, SourceError
    from terascope.functions.base import FunctionMistake, ValueMistake
    from terascope.streaming.mistakes import StreamError

    known: tuple[type[Exception], ...] = (
        ConfigError,
        FunctionMistake,
        OutputError,
        SourceError,
        StreamError,
        ValueMistake,
    )
    if "terascope.spark.session" in sys.modules:
        # Only a command that came as far as Spark can have failed in it.
        from terascope.spark.mistakes import RunError
        from terascope.spark.session import SparkUnavailable

        known = (*known, RunError, SparkUnavailable)
    if "bench.experiment" in sys.modules:
        from bench.experiment import BenchError

        known = (*known, BenchError)
    return known
