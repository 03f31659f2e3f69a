"""A Python function as a command of the command line.

The default of a parameter says what the parameter is: `flag(...)` or `argument(...)`. A parameter
whose type is a dataclass becomes one flag for each field of the dataclass, so that commands share
groups of flags. The docstring is the help; its section `Examples:` stands below the flags. Every
command has --debug. A mistake ends a command with one clear line on stderr, or a diagnostic with
its place, and exit code 1, without a traceback.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature, cleandoc, signature
from typing import Any, Final, get_type_hints

import typer
from rich.console import Console
from rich.text import Text

from terascope.diagnostic import QueryError, render_one

INTERRUPTED: Final = 130


def flag(help: str, *names: str, default: Any = None, **more: Any) -> Any:
    """A flag of a command, or a field of a group of flags. The help shows a default that is a
    value.
    """
    shown = default not in (None, False)
    return typer.Option(default, *names, help=help, show_default=shown, **more)


def switch(help: str, *names: str) -> Any:
    """A flag without a value."""
    return flag(help, *names, default=False)


def argument(help: str, metavar: str, default: Any = ...) -> Any:
    return typer.Argument(default, help=help, metavar=metavar, show_default=False)


DEBUG: Final = switch("Show the traceback of a failure nobody expected.", "--debug")
QUIET: Final = switch("No progress.", "--quiet", "-q")
CHECKPOINT: Final = flag(
    "The checkpoint of the run; not needed while only one set is running.", metavar="DIR"
)


def as_command(
    function: Callable[..., None], more: Sequence[Parameter] = ()
) -> Callable[..., None]:
    """The function as typer takes it; `more`: flags that it takes as further keywords."""
    given = signature(function, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: p.annotation for name, p in given.items() if is_dataclass(p.annotation)
    }

    def run(debug: bool, **flags: Any) -> None:
        for name, group in groups.items():
            flags[name] = group(**{f.name: flags.pop(f.name) for f in fields(group)})
        with mistakes_reported(debug):
            function(**flags)

    flags: list[Parameter] = []
    for name, parameter in given.items():
        if name in groups:
            flags += group_flags(groups[name])
        elif parameter.kind is not Parameter.VAR_KEYWORD:
            flags.append(keyword(name, parameter.annotation, parameter.default))
    flags += [*more, keyword("debug", bool, DEBUG)]
    run.__signature__ = Signature(flags)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in flags}
    return run


def group_flags(group: Any) -> list[Parameter]:
    """The fields of a group as parameters, in the group's panel of the help."""
    hints = get_type_hints(group)
    flags: dict[str, Any] = {field.name: field.default for field in fields(group)}
    for one in flags.values():
        one.rich_help_panel = group.PANEL
    return [keyword(name, hints[name], one) for name, one in flags.items()]


def keyword(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def help_texts(function: Callable[..., None]) -> tuple[str, str]:
    """The help and what stands below the flags, from a docstring. The lines of a paragraph are the
    terminal's to break; an example has a line of its own, and square brackets in it are text.
    """
    text, _, examples = cleandoc(function.__doc__ or "").partition("\n\nExamples:\n")
    paragraphs = [paragraph.replace("\n", " ") for paragraph in text.split("\n\n")]
    shown = [
        f"  [cyan]{line.strip().replace('[', chr(92) + '[')}[/cyan]"
        for line in examples.splitlines()
    ]
    return "\n\n".join(paragraphs), "\n".join(["[bold]Examples[/bold]", *shown])


# ---- mistakes ------------------------------------------------------------------------------------


def misuse(flag: str | None, why: str) -> typer.BadParameter:
    """A mistake of usage, which ends a command with exit code 2."""
    return typer.BadParameter(why, param_hint=flag)


@contextmanager
def read_flag(flag: str | None, mistakes: type[Exception] = ValueError) -> Iterator[None]:
    """Turn an exception about the value of a flag into a mistake of usage."""
    try:
        yield
    except mistakes as mistake:
        raise misuse(flag, str(mistake)) from None


@contextmanager
def mistakes_reported(debug: bool) -> Iterator[None]:
    """Turn exceptions into a line on stderr and an exit code."""
    try:
        with nullcontext() if debug else unlogged():
            yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt:
        errors().print("interrupted", style="yellow")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of the results has seen enough; nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except Exception as mistake:
        if debug:
            raise
        tell(mistake)
        raise typer.Exit(1) from None


@contextmanager
def unlogged() -> Iterator[None]:
    """Silence the logs of libraries: an interrupted call of the JVM is logged with a traceback."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def errors() -> Console:
    """The console for mistakes; the terminal breaks long lines."""
    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def tell(mistake: Exception) -> None:
    """A mistake for a person to read."""
    if isinstance(mistake, QueryError):
        for diagnostic in mistake.diagnostics:
            tell_diagnostic(render_one(diagnostic, mistake.source), diagnostic.severity)
        number = len(mistake.diagnostics)
        errors().print(f"{number} mistake{'' if number == 1 else 's'} in {mistake.source.name}")
    else:
        tell_line("error", message(mistake))


def tell_diagnostic(text: str, severity: str) -> None:
    """Print a diagnostic, its first line in colour."""
    first, newline, rest = text.partition("\n")
    word, bracket, behind = first.partition("]: ")
    head = Text.assemble((word + bracket, style_of(severity)), (behind, "bold"))
    errors().print(Text.assemble(head, newline, rest, "\n"))


def tell_line(word: str, text: str) -> None:
    errors().print(Text.assemble((f"{word}: ", style_of(word)), text))


def style_of(severity: str) -> str:
    return "bold red" if severity == "error" else "bold yellow"


def message(mistake: Exception) -> str:
    """The message of a mistake made for the user; what was not foreseen is said to be that."""
    if isinstance(mistake, expected_mistakes()):
        return str(mistake)
    if isinstance(mistake, OSError) and mistake.strerror:
        where = f" '{mistake.filename}'" if mistake.filename else ""
        return f"cannot use{where}: {mistake.strerror.lower()}"
    lines = str(mistake).strip().splitlines() or ["no message"]
    return f"unexpected {type(mistake).__name__}: {lines[0]} (--debug shows where)"


EXPECTED: Final = {
    "terascope.config": ("ConfigError",),
    "terascope.diagnostic": ("OutputError", "SourceError", "StreamError"),
    "terascope.functions.base": ("FunctionMistake", "ValueMistake"),
    "terascope.spark.mistakes": ("RunError",),
    "terascope.spark.session": ("SparkUnavailable",),
    "bench.experiment": ("BenchError",),
}
"""Module -> exceptions whose message is for the user."""


def expected_mistakes() -> tuple[type[Exception], ...]:
    """The exceptions that can have been raised: those of modules that were imported."""
    return tuple(
        getattr(sys.modules[module], name)
        for module, names in EXPECTED.items()
        if module in sys.modules
        for name in names
    )
