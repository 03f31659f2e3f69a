"""The flags that bind a query set to its sources, the same for check, explain and run.

In: flags and a configuration file; a flag wins. Out: a `Session` with everything bound. A flag that
is not of its form is a mistake of usage; a file that is not there is not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from terascope.diagnostic import Source
    from terascope.session import QuerySet, Session
    from terascope.spark.api import SparkSession

BINDING = "Binding"
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE.gsql...",
        help="The query set, in one file or several; - is stdin.",
        show_default=False,
    ),
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        "-s",
        metavar="[INTERFACE=]KIND:LOCATION",
        help="A source: pcap, csv, json or parquet; a file, a directory or a glob."
        " May be repeated.",
        rich_help_panel=BINDING,
    ),
]
SourceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--source-option",
        metavar="INTERFACE.KEY=VALUE",
        help="An option of a source, such as log.delimiter=';'. May be repeated.",
        rich_help_panel=BINDING,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=A,B",
        help="An interface set, read as FROM [NAME].TCP. May be repeated.",
        rich_help_panel=BINDING,
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        "-p",
        metavar="NAME=VALUE",
        help="The value of $NAME. May be repeated. A stream that goes on from its checkpoint keeps"
        " what terascope set gave, unless this is another value than at its last start.",
        rich_help_panel=BINDING,
    ),
]
FunctionFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--functions",
        metavar="FILE.py",
        help="Functions of your own, made with @scalar or @aggregate. May be repeated.",
        rich_help_panel=BINDING,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE.toml",
        help="Settings from a file; flags win over it.",
        rich_help_panel=BINDING,
    ),
]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of a failure nobody expected.")
]


def pairs(flag: str, values: Iterable[str] | None, form: str) -> list[tuple[str, str]]:
    """`name=value`, several times."""
    found: list[tuple[str, str]] = []
    for text in values or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"'{text}' is not {form}", param_hint=flag)
        found.append((name.strip(), value))
    return found


class LowLevel(StrEnum):
    NATIVE = "native"
    CATALYST = "catalyst"
    AUTO = "auto"


Low = Annotated[
    LowLevel | None,
    typer.Option(
        "--low",
        help="Who runs the low level: compiled kernels where the source is read (native), or"
        " Spark's operators over its tuples (catalyst). auto, which is the default, takes native"
        " wherever the source can host it.",
        show_default=False,
    ),
]


class EngineOption(StrEnum):
    LOCAL = "local"
    SPARK = "spark"
    AUTO = "auto"


EngineFlag = Annotated[
    EngineOption | None,
    typer.Option(
        "--engine",
        help="What computes a batch: this process alone (local), or Spark. auto, which is the"
        " default, takes local where Spark would take longer to start than the work takes, and"
        " Spark where a master is given. The rows are the same.",
        show_default=False,
    ),
]


def bound_session(
    sources: list[str] | None,
    source_options: list[str] | None,
    sets: list[str] | None,
    params: list[str] | None,
    functions: list[Path] | None,
    config: Path | None,
    master: str | None = None,
    strict: bool | None = None,
    spark: SparkSession | None = None,
    low: str | None = None,
    engine: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> Session:
    """A session with everything the flags and the configuration say; `settings`: further ones of
    the configuration that a flag gives, None among them when it does not.
    """
    from terascope.config import load_config
    from terascope.connectors.registry import parse_interface
    from terascope.diagnostic import SourceError
    from terascope.session import Session

    found = load_config(
        config, master=master, strict=strict, low=low, engine=engine, **(settings or {})
    )
    try:
        named = [parse_interface(text) for text in sources or ()]
    except SourceError as mistake:
        raise typer.BadParameter(str(mistake), param_hint="--source") from None
    given = {interface.name for interface in named}
    if len(given) < len(named):
        twice = next(i.name for n, i in enumerate(named) if i.name in {j.name for j in named[:n]})
        raise typer.BadParameter(
            f"two sources are called '{twice}'; give each a name, such as eth0=pcap:trace.pcap",
            param_hint="--source",
        )
    known = given | found.sources.keys()
    options = option_table(source_options, known, found.source_options)
    merged = found.model_copy(
        update={
            "sources": {
                **found.sources,
                **{i.name: f"{i.kind}:{i.location}" for i in named},
            },
            "source_options": options,
            "sets": {**found.sets, **set_table(sets, known)},
            "params": {**found.params, **dict(pairs("--param", params, "NAME=VALUE"))},
            "functions": [*found.functions, *(functions or ())],
        }
    )
    return Session(spark=spark, config=merged)


def option_table(
    values: list[str] | None, known: set[str], before: dict[str, dict[str, str]]
) -> dict[str, dict[str, str]]:
    table = {name: dict(options) for name, options in before.items()}
    form = "INTERFACE.KEY=VALUE"
    for name, value in pairs("--source-option", values, form):
        interface, dot, key = name.partition(".")
        if not dot or not key:
            raise typer.BadParameter(
                f"'{name}={value}' is not {form}", param_hint="--source-option"
            )
        if interface not in known:
            raise typer.BadParameter(
                f"no source is called '{interface}'", param_hint="--source-option"
            )
        table.setdefault(interface, {})[key] = value
    return table


def set_table(values: list[str] | None, known: set[str]) -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for name, text in pairs("--set", values, "NAME=A,B"):
        members = [member.strip() for member in text.split(",") if member.strip()]
        if not members:
            raise typer.BadParameter(f"set '{name}' has no members", param_hint="--set")
        missing = [member for member in members if member not in known]
        if missing and known:
            raise typer.BadParameter(
                f"no source is called '{missing[0]}', which set '{name}' names", param_hint="--set"
            )
        table[name] = members
    return table


def read_set(file: Path) -> Source:
    """The text of a query set, from a file or from stdin.

    Raises:
        SourceError: it cannot be read.
    """
    from terascope.diagnostic import Source, SourceError
    from terascope.session import read_source

    if str(file) != "-":
        return read_source(file)
    try:
        return Source(sys.stdin.read(), "stdin")
    except UnicodeDecodeError:
        raise SourceError("what was read from stdin is not text in UTF-8") from None


def loaded(session: Session, files: list[Path]) -> QuerySet:
    """The query set of one file or several; its warnings are told."""
    from terascope.cli.mistakes import tell_diagnostic
    from terascope.diagnostic import Source, render_one
    from terascope.session import QuerySet

    queries = QuerySet(session, Source.joined([read_set(file) for file in files]))
    for warning in queries.compiled.warnings:
        tell_diagnostic(render_one(warning, queries.source), warning.severity)
    return queries
