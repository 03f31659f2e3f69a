"""The flags that bind a query set to its sources, the same for check, explain, stats and run.

In: flags and a configuration file; a flag wins. Out: a `Session` with everything bound. A malformed
flag is a mistake of usage (exit code 2); a missing file is a mistake of the input (exit code 1).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from terascope.cli.command import argument, flag, misuse, read_flag, tell_diagnostic
from terascope.diagnostic import Source, SourceError, render_one

if TYPE_CHECKING:
    from terascope.session import QuerySet, Session

FILES: Final = argument("The query set, in one file or several; - is stdin.", "FILE.gsql...")


@dataclass(frozen=True)
class Binding:
    """The sources and settings of a query set: a flag wins over the configuration file."""

    PANEL: ClassVar = "Binding"
    source: list[str] | None = flag(
        "A source: pcap, csv, json or parquet; a file, a directory or a glob. May be repeated.",
        "--source",
        "-s",
        metavar="[INTERFACE=]KIND:LOCATION",
    )
    source_option: list[str] | None = flag(
        "An option of a source, such as log.delimiter=';'. May be repeated.",
        metavar="INTERFACE.KEY=VALUE",
    )
    partitioned_by: list[str] | None = flag(
        "The partitioning set of a source: each file or folder of it is a partition, with all"
        " tuples that have the same values of these expressions, such as"
        " 'srcIP & 0xFFFFFFF0, destIP'. What terascope split wrote says so itself. May be"
        " repeated.",
        metavar="[INTERFACE=]EXPR,...",
    )
    set_: list[str] | None = flag(
        "An interface set, read as FROM [NAME].TCP. May be repeated.", "--set", metavar="NAME=A,B"
    )
    param: list[str] | None = flag(
        "The value of $NAME. May be repeated. A stream that goes on from its checkpoint keeps"
        " what terascope set gave, unless this is another value than at its last start.",
        "--param",
        "-p",
        metavar="NAME=VALUE",
    )
    functions: list[Path] | None = flag(
        "Functions of your own, made with @scalar or @aggregate. May be repeated.",
        metavar="FILE.py",
    )
    config: Path | None = flag("Settings from a file; flags win over it.", metavar="FILE.toml")

    def session(self, **settings: object) -> Session:
        """A session with everything the flags and the configuration say. `settings`: further ones
        of the configuration that flags give; None where a flag is not given.
        """
        from terascope.config import load_config
        from terascope.session import Session

        found = load_config(self.config, **settings)
        named = self.interfaces()
        known = named.keys() | found.sources.keys()
        merged = found.model_copy(
            update={
                "sources": {**found.sources, **named},
                "partitioned_by": {
                    **found.partitioned_by,
                    **partitioned_table(self.partitioned_by, known),
                },
                "source_options": option_table(self.source_option, known, found.source_options),
                "sets": {**found.sets, **set_table(self.set_, known)},
                "params": {**found.params, **dict(pairs("--param", self.param, "NAME=VALUE"))},
                "functions": [*found.functions, *(self.functions or ())],
            }
        )
        return Session(config=merged)

    def interfaces(self) -> dict[str, str]:
        """The kind and location of each --source, by its name."""
        from terascope.connectors.registry import parse_interface

        found: dict[str, str] = {}
        for text in self.source or ():
            with read_flag("--source", SourceError):
                interface = parse_interface(text)
            if interface.name in found:
                example = "give each a name, such as eth0=pcap:trace.pcap"
                raise misuse("--source", f"two sources are called '{interface.name}'; {example}")
            found[interface.name] = f"{interface.kind}:{interface.location}"
        return found


def pairs(flag: str, values: Iterable[str] | None, form: str) -> list[tuple[str, str]]:
    """`name=value`, several times."""
    found: list[tuple[str, str]] = []
    for text in values or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise misuse(flag, f"'{text}' is not {form}")
        found.append((name.strip(), value))
    return found


def option_table(
    values: list[str] | None, known: Set[str], before: dict[str, dict[str, str]]
) -> dict[str, dict[str, str]]:
    table = {name: dict(options) for name, options in before.items()}
    flag, form = "--source-option", "INTERFACE.KEY=VALUE"
    for name, value in pairs(flag, values, form):
        interface, dot, key = name.partition(".")
        if not dot or not key:
            raise misuse(flag, f"'{name}={value}' is not {form}")
        if interface not in known:
            raise misuse(flag, f"no source is called '{interface}'")
        table.setdefault(interface, {})[key] = value
    return table


def partitioned_table(values: list[str] | None, known: Set[str]) -> dict[str, str]:
    """The partitioning set of each source; one without a name is that of the only source."""
    table: dict[str, str] = {}
    flag = "--partitioned-by"
    for text in values or ():
        name, equals, rest = text.partition("=")
        if not equals or name.strip() not in known:
            if len(known) != 1:
                named = "put the name of its source before it, as in eth0=srcIP"
                raise misuse(flag, f"'{text}' could be of {len(known)} sources; {named}")
            name, rest = next(iter(known)), text
        table[name.strip()] = rest.strip()
    return table


def set_table(values: list[str] | None, known: Set[str]) -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for name, text in pairs("--set", values, "NAME=A,B"):
        members = [member.strip() for member in text.split(",") if member.strip()]
        if not members:
            raise misuse("--set", f"set '{name}' has no members")
        missing = [member for member in members if member not in known]
        if missing and known:
            named = f"which set '{name}' names"
            raise misuse("--set", f"no source is called '{missing[0]}', {named}")
        table[name] = members
    return table


def read_set(file: Path) -> Source:
    """The text of a query set, from a file or from stdin.

    Raises:
        SourceError: it cannot be read.
    """
    from terascope.pipeline import read_source

    if str(file) != "-":
        return read_source(file)
    try:
        return Source(sys.stdin.read(), "stdin")
    except UnicodeDecodeError:
        raise SourceError("what was read from stdin is not text in UTF-8") from None


def loaded(session: Session, files: list[Path]) -> QuerySet:
    """The query set of one file or several; its warnings are printed."""
    from terascope.session import QuerySet

    queries = QuerySet(session, Source.joined([read_set(file) for file in files]))
    for warning in queries.compiled.warnings:
        tell_diagnostic(render_one(warning, queries.source), warning.severity)
    return queries
