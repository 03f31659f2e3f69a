"""`terascope split`: any source into N ordered streams, by a partitioning set.

A malformed flag is a mistake of usage; a partitioning expression that is wrong is shown with its
place, as a mistake of a query is.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from terascope.cli.binding import Binding, loaded
from terascope.cli.command import (
    QUIET,
    argument,
    errors,
    flag,
    misuse,
    read_flag,
    switch,
    tell_line,
)
from terascope.cli.progress import counting
from terascope.cli.stopping import Stopping
from terascope.connectors.base import interface_of
from terascope.diagnostic import SourceError
from terascope.partitioning.layout import ROUND_ROBIN, read_layout
from terascope.units import plural, readable_bytes, seconds

if TYPE_CHECKING:
    from terascope.connectors.base import Column
    from terascope.connectors.registry import Interface
    from terascope.partitioning.sets import PartitionSet
    from terascope.splitting.splitter import SourceSplitter, SplitSettings

AUTO: Final = "auto"
SHOWN: Final = 8
"""Partitions whose tuples are listed."""


def split(
    source: str = argument(
        "The source, as for --source of run: pcap, csv, json or parquet; a file, a directory or"
        " a glob.",
        "[INTERFACE=]KIND:LOCATION",
    ),
    folder: Path = argument("Where the partitions go: a new or an empty directory.", "DIR"),
    by: str = flag(
        "The partitioning set: tuples for which all of these expressions have the same values go"
        " to the same partition. 'auto' takes the set that terascope advise recommends for"
        " --queries; 'round-robin' deals tuples out in turn, whatever is in them.",
        default=...,
        metavar="EXPR,...|auto|round-robin",
    ),
    into: int = flag("The number of partitions.", default=..., metavar="N"),
    queries: list[Path] | None = flag(
        "The query set that --by auto is for. May be repeated.", metavar="FILE.gsql"
    ),
    param: list[str] | None = flag(
        "The value of $NAME in these queries. May be repeated.",
        "--param",
        "-p",
        metavar="NAME=VALUE",
    ),
    hosts: str | None = flag(
        "The hosts that hold the partitions, each as many that follow one another: Spark then runs"
        " the task of a partition on its host.",
        metavar="HOST,...",
    ),
    source_option: list[str] | None = flag(
        "An option of the source, such as delimiter=';'. May be repeated.", metavar="KEY=VALUE"
    ),
    follow: bool = switch(
        "Go on as the source grows, until Ctrl-C; terascope run --stream can follow DIR. The same"
        " command goes on where it was stopped or killed.",
        "--follow",
    ),
    until_idle: bool = switch(
        "With --follow: end when all that is there was split.", "--until-idle"
    ),
    rebalance: bool = switch(
        "Choose the ranges of hashes for even loads: by a first pass over the source, or, with"
        " --edge, anew whenever a partition gets hot.",
        "--rebalance",
    ),
    edge: str | None = flag(
        "With --rebalance: ranges change only at multiples of this time. Queries whose windows it"
        " is a multiple of are still finished in a partition.",
        metavar="'60 s'",
    ),
    quiet: bool = QUIET,
) -> None:
    """Split a source into ordered streams, so that queries are computed where the data is.

    Packets become captures, byte for byte, tables Parquet files; DIR/partitions.json says how they
    were split. Bind DIR as a source: --source eth0=pcap:DIR. Every group whose key determines the
    values of the set is then complete in one partition.

    Examples:
        terascope split pcap:trace.pcap --by 'srcIP & 0xFFFFFFF0, destIP' --into 8 parts
        terascope split eth0=pcap:captures --by auto --queries flows.gsql --into 4 parts
        terascope split csv:log.csv --source-option 'delimiter=;' --by user --into 16 parts
        terascope split pcap:trace.pcap --by srcIP --into 8 --rebalance parts
        terascope split pcap:live.pcap --by srcIP --into 2 --follow --rebalance --edge '60 s' parts
        terascope split pcap:trace.pcap --by srcIP --into 8 --hosts h0,h1,h2,h3 parts
    """
    from terascope.splitting.rule import SplitRule
    from terascope.splitting.splitter import SplitSettings

    if into < 1:
        raise misuse("--into", f"there is at least one partition, not {into}")
    check_flags(by, queries, follow, until_idle, rebalance, edge)
    with read_flag("--edge"):
        edge_seconds = edge_of(edge) if edge is not None else 0
    if follow and rebalance and not edge_seconds:
        why = "ranges of a live source change at an edge: give one, such as '60 s'"
        raise misuse("--edge", why)
    interface = interface_from(source, source_option)
    begun = begun_set(folder) if follow and by == AUTO else None
    if by == AUTO and begun is None:
        set, columns = recommended_set(interface, queries or [], into, param)
    else:
        by = by if begun is None else begun
        columns = columns_of(interface, folder if follow else None)
        set = set_of(by, columns)
    named = tuple(host.strip() for host in (hosts or "").split(",") if host.strip())
    rule = SplitRule.even(set, into)
    settings = SplitSettings(interface, columns, rule, folder, named, edge_seconds)
    if follow:
        follow_source(settings, until_idle, quiet)
    else:
        split_once(settings, rebalance and not edge_seconds, quiet)


def check_flags(
    by: str, queries: list[Path] | None, follow: bool, until_idle: bool, rebalance: bool,
    edge: str | None,
) -> None:  # fmt: skip
    """Raise a mistake of usage when flags do not go together."""
    if queries and by != AUTO:
        raise misuse("--queries", "only --by auto looks at queries")
    if by == AUTO and not queries:
        raise misuse("--queries", "--by auto needs the query set: give --queries FILE.gsql")
    if until_idle and not follow:
        raise misuse("--until-idle", "without --follow a split ends anyway")
    if edge is not None and not rebalance:
        raise misuse("--edge", "ranges change only with --rebalance")
    if rebalance and by == ROUND_ROBIN:
        raise misuse("--rebalance", "partitions that are dealt out in turn are even anyway")


def edge_of(text: str) -> int:
    """The seconds of an edge.

    Raises:
        ValueError: it is not a whole number of seconds.
    """
    found = seconds(text)
    if found < 1 or found != int(found):
        raise ValueError(f"'{text}' is not a whole number of seconds; write '60 s' or '5 min'")
    return int(found)


def interface_from(source: str, options: list[str] | None) -> Interface:
    from terascope.connectors.registry import parse_interface

    table: dict[str, str] = {}
    for text in options or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise misuse("--source-option", f"'{text}' is not KEY=VALUE")
        table[name.strip().rpartition(".")[2]] = value
    with read_flag("SOURCE", SourceError):
        found = parse_interface(source, table)
        layout = read_layout(Path(found.location))
        if layout is not None:
            by = f"by {layout.by}" if layout.by else "in turn"
            raise SourceError(
                f"'{found.location}' has partitions already, split {by}: split its source again"
            )
        return found


def columns_of(interface: Interface, begun: Path | None) -> tuple[Column, ...]:
    """The columns of the source; `begun`: the folder of a split that may go on."""
    from terascope.splitting.follow import read_plan

    plan = read_plan(begun) if begun is not None else None
    return interface.columns if plan is None else plan.columns


def begun_set(folder: Path) -> str | None:
    """The set of a split that goes on, whatever would be recommended now; None: it begins."""
    from terascope.splitting.follow import read_plan

    plan = read_plan(folder)
    return None if plan is None else str(plan.identity["by"]) or ROUND_ROBIN


def set_of(by: str, columns: tuple[Column, ...]) -> PartitionSet | None:
    """The partitioning set; None: tuples are dealt out in turn.

    Raises:
        QueryError: the set is wrong.
    """
    from terascope.partitioning.sets import parse_set

    return None if by == ROUND_ROBIN else parse_set(by, columns)


def recommended_set(
    interface: Interface, queries: list[Path], into: int, param: list[str] | None
) -> tuple[PartitionSet | None, tuple[Column, ...]]:
    """The set that 'terascope advise' recommends for the source, None where any set is as good;
    and the columns of the source with the types that the queries give them.

    Raises:
        QueryError: the queries have mistakes, or no set helps any of them.
        SourceError: the queries do not read the source.
    """
    from terascope.advise.written import split_columns

    binding = Binding(
        source=[f"{interface.name}={interface.kind}:{interface.location}"],
        source_option=[f"{interface.name}.{key}={value}" for key, value in interface.options],
        partitioned_by=None,
        set_=None,
        param=param,
        functions=None,
        config=None,
    )
    advice = loaded(binding.session(), queries).advise(into=into)
    by = advice.recommended.candidate.placement.get(interface.name)
    if by is None:
        raise SourceError(
            f"the queries do not read '{interface.name}': name the source as they do, such as"
            f" {next(iter(advice.columns))}={interface.kind}:{interface.location}"
        )
    if by.expressions:
        tell_line("note", f"--by '{by}' is recommended for these queries")
    else:
        tell_line("note", "any partitioning suits these queries: tuples are dealt out in turn")
    columns = split_columns(interface, by, advice.columns[interface.name])
    return by if by.expressions else None, columns


def split_once(settings: SplitSettings, even: bool, quiet: bool) -> None:
    from terascope.splitting.finished import split_finished

    began = time.monotonic()
    with counting("splitting", 1, "bytes", quiet) as count:
        splitter = split_finished(settings, even, count)
    tell_result(splitter, time.monotonic() - began, quiet)


def follow_source(settings: SplitSettings, until_idle: bool, quiet: bool) -> None:
    from terascope.splitting.follow import FollowedSplit, follow

    began = time.monotonic()
    with Stopping() as stopping:
        stopping.install()
        split = FollowedSplit(settings, until_idle)

        def wait(seconds: float) -> bool:
            if seconds:
                stopping.sleep(seconds)
            return stopping.asked

        if not quiet:
            source = settings.interface.described
            errors().print(f"splitting {source} into {settings.folder}; Ctrl-C stops", style="dim")
        follow(split, wait, tell_stalled)
    tell_result(split.splitter, time.monotonic() - began, quiet)
    if not split.ended and not quiet:
        errors().print("to go on from here, give the same command again", style="dim")


def tell_stalled(reason: str | None) -> None:
    tell_line("note", "the source can be read again" if reason is None else f"waiting: {reason}")


def tell_result(splitter: SourceSplitter, spent: float, quiet: bool) -> None:
    """What was split, how even it is, and what is in no partition."""
    tuples = sum(state.tuples for state in splitter.states)
    whole = sum(state.bytes for state in splitter.states)
    rate = f", {tuples / spent:,.0f}/s" if spent > 0 else ""
    typer.echo(
        f"{splitter.settings.folder}: {plural(tuples, 'tuple')}, {readable_bytes(whole)}"
        f" in {spent:.1f} s{rate}"
    )
    typer.echo(splitter.balance.text)
    if not quiet:
        for number, state in enumerate(splitter.states[:SHOWN]):
            size, host = readable_bytes(state.bytes), splitter.settings.host(number)
            typer.echo(f"  {number:>3}  {state.tuples:>14,}  {size:>9}  {host}".rstrip())
        if len(splitter.states) > SHOWN:
            typer.echo(f"  ... and {len(splitter.states) - SHOWN} more")
    tell_warnings(splitter)


def tell_warnings(splitter: SourceSplitter) -> None:
    name = interface_of(splitter.settings.interface.name)
    if not any(state.tuples for state in splitter.states):
        tell_line("warning", f"'{name}' has no tuples: all partitions are empty")
    for reason, count in sorted(splitter.left_out.items()):
        tell_line("warning", f"in no partition: {count:,} x {reason}")
    if splitter.unread:
        tell_line(
            "warning",
            f"{plural(splitter.unread, 'row')} with a malformed value in the partitioning set:"
            " placed as if it were NULL",
        )
    advice = splitter.counts.value_advice(splitter.rule.count) or splitter.balance.advice
    if advice:
        tell_line("note", advice)
