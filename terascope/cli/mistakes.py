"""Mistakes for a person to read: one clear line on stderr, or a diagnostic with its place."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text


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
    from terascope.diagnostic import OutputError, SourceError, StreamError
    from terascope.functions.base import FunctionMistake, ValueMistake

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
