"""A Python function as a command of the command line.

A parameter whose type is a dataclass becomes one flag for each field of the dataclass, so that
commands share groups of flags. Every command has --debug. A mistake ends a command with one clear
line on stderr and exit code 1, without a traceback.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import Field, field, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

import typer

from terascope.cli.mistakes import errors, tell

INTERRUPTED: Final = 130
FLAG: Final = "flag"
Debug = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of a failure nobody expected.")
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="The checkpoint of the run; not needed while only one set is running."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


def flag(*names: str, help: str, default: Any = None, **more: Any) -> Any:
    """A field of a group of flags."""
    return field(default=default, metadata={FLAG: typer.Option(*names, help=help, **more)})


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
    flags += [*more, keyword("debug", Debug, False)]
    run.__signature__ = Signature(flags)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in flags}
    return run


def group_flags(group: Any) -> list[Parameter]:
    """The fields of a group as parameters, in the group's panel of the help."""
    hints = get_type_hints(group)

    def parameter(field: Field[Any]) -> Parameter:
        option = field.metadata[FLAG]
        option.rich_help_panel = group.PANEL
        return keyword(field.name, Annotated[hints[field.name], option], field.default)

    return [parameter(field) for field in fields(group)]


def keyword(name: str, annotation: Any, default: Any) -> Parameter:
    """A parameter as typer takes it; the help shows a default that is a value."""
    for described in annotation.__metadata__:
        described.show_default = default not in (None, False, Parameter.empty)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


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
