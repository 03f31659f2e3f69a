"""`terascope fmt`: GSQL in its canonical form, comments kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from terascope.cli.binding import read_set


def fmt(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE.gsql...", help="Query sets; - is stdin.")
    ],
    write: Annotated[
        bool, typer.Option("--write", "-w", help="Change the files instead of printing.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only say which files are not formatted; exit 1 if any.")
    ] = False,
) -> None:
    """Print query sets as canonical GSQL: keywords in capitals, a clause a line, comments kept."""
    from terascope.cli.mistakes import errors, tell
    from terascope.diagnostic import QueryError
    from terascope.syntax.format import format_source

    if write and check:
        raise typer.BadParameter("give one of --write and --check", param_hint="--write")
    failed = False
    for file in files:
        source = read_set(file)
        try:
            text = format_source(source)
        except QueryError as mistake:
            tell(mistake)
            failed = True
            continue
        if check:
            if text != source.text:
                errors().print(f"{source.name}: not formatted")
                failed = True
        elif write and str(file) != "-":
            if text != source.text:
                replace_text(file, text)
                errors().print(f"{source.name}: formatted")
        else:
            typer.echo(text, nl=False)
    if failed:
        raise typer.Exit(1)


def replace_text(file: Path, text: str) -> None:
    """The file is complete at any moment, and keeps its rights."""
    beside = file.with_name(f".{file.name}.fmt")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.chmod(file.stat().st_mode)
        beside.replace(file.resolve())
    finally:
        beside.unlink(missing_ok=True)
