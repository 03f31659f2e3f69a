"""`terascope run`: a query set over its sources, computed once or as a stream.

A malformed flag, or one that makes no sense beside another, is a mistake of usage.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, cast

import typer
from rich.text import Text

from terascope import units
from terascope.cli.binding import FILES, Binding, loaded
from terascope.cli.command import errors, flag, misuse, read_flag, switch, tell_line
from terascope.connectors.base import interface_of
from terascope.diagnostic import SourceError
from terascope.partitioning.balance import balances
from terascope.units import plural, readable_bytes

if TYPE_CHECKING:
    from terascope.cli.printing import TextFormat
    from terascope.output import FileFormat
    from terascope.results import Results
    from terascope.session import QuerySet, Session


LowLevel: TypeAlias = Literal["native", "catalyst", "auto"]
Format: TypeAlias = Literal["table", "csv", "json", "ndjson", "parquet"]


@dataclass(frozen=True)
class ResultFlags:
    """The destination and the form of rows."""

    PANEL: ClassVar = "Results"
    output: Path | None = flag(
        "Write every query to DIR/NAME.csv (or .json, .ndjson, .parquet), with a manifest"
        " beside it; all of them or none.",
        "--output",
        "-o",
        metavar="DIR",
    )
    format: Format | None = flag(
        "table on stdout, csv with --output, unless something else is said.", "--format", "-f"
    )
    parts: bool = switch(
        "With --output, and csv or parquet: every query is a folder DIR/NAME of files,"
        " written by Spark's tasks as they finish, rows in no particular order. The fastest way"
        " to large results.",
        "--parts",
    )
    rows: int = flag("Rows shown of each table.", default=20, min=0)
    strict: bool | None = flag(
        "Malformed packets or rows are an error, and nothing is written.", "--strict"
    )
    explain: bool = switch(
        "Afterwards show, on stderr, the physical plan with what every operator did.", "--explain"
    )

    def check(self, stream: bool) -> None:
        """Raise a mistake of usage when flags do not go together."""
        to_files, format = self.output is not None, self.format
        if not to_files and format == "parquet":
            raise misuse("--format", "parquet goes to files: give --output DIR")
        if to_files and format == "table":
            raise misuse("--format", "a table goes to the screen: leave out --output")
        if self.parts and not (to_files and format in (None, "csv", "parquet")):
            why = "parts are files: give --output DIR, and --format csv or parquet"
            raise misuse("--parts", why)
        if not stream:
            return
        if self.explain:
            why = "terascope status shows what a stream does: leave it out"
            raise misuse("--explain", why)
        if self.parts:
            raise misuse("--parts", "a stream always writes folders of files: leave it out")
        if self.strict:
            raise misuse("--strict", "a stream counts what is malformed and goes on")
        if format == "json":
            raise misuse("--format", "json is one object with an end: take ndjson for a stream")


@dataclass(frozen=True)
class StreamFlags:
    """The settings of a set that runs as a stream."""

    PANEL: ClassVar = "Streams"
    stream: bool = switch(
        "Follow the sources as they grow and give rows as their windows close, until Ctrl-C.",
        "--stream",
    )
    checkpoint: Path | None = flag(
        "What is needed to go on after a stop or a failure; OUTPUT/.checkpoint by default.",
        metavar="DIR",
    )
    speed: str | None = flag(
        "Replay what is there by the time in it, as fast as it came, faster, or at once.",
        metavar="1x|10x|max",
    )
    until_idle: bool = switch(
        "End when all that is there was read; windows that are open close then.", "--until-idle"
    )
    heartbeat: str | None = flag(
        "How often the clock moves the watermarks of silent sources; 1s by default.",
        metavar="1s|500ms|off",
    )
    skew: str | None = flag(
        "How far a silent source may be behind the clock: 2s by default, 0s with --speed.",
        metavar="2s",
    )
    replay_limit: str | None = flag(
        "A source whose first tuples are further from the clock (and the skew) is a replay and"
        " keeps its own clock: silence closes none of its windows; 1m by default.",
        metavar="1m|off",
    )
    replay: list[str] | None = flag(
        "A source that is a replay whatever its first tuples say.", metavar="NAME|all"
    )
    liveness: str | None = flag(
        "How long others wait for a source that is gone, or for a replay that gives nothing;"
        " 5m by default.",
        metavar="5m|off",
    )
    trigger: str | None = flag("From one micro-batch to the next; 1s by default.", metavar="1s")
    batch_bytes: str | None = flag("What a micro-batch reads at most.", metavar="256MB")
    late: Path | None = flag(
        "Keep tuples that come when their window is closed; otherwise they are only counted.",
        metavar="DIR",
    )
    port: int | None = flag(
        "Where /status and /metrics are served on this machine; any that is free by default.",
        metavar="N",
        min=0,
        max=65535,
    )

    def settings(self) -> dict[str, object]:
        """The settings that flags give, by the names of the configuration; None: not given."""
        readers: dict[str, Callable[[object], object]] = {
            "heartbeat": units.seconds_or_off,
            "skew": units.seconds,
            "trigger": units.seconds,
            "batch_bytes": units.size,
            "replay_limit": units.seconds_or_never,
            "liveness": units.seconds_or_never,
        }
        found: dict[str, object] = {
            name: getattr(self, name) or None for name in ("speed", "until_idle", "late", "replay")
        }
        for name, read in readers.items():
            text = getattr(self, name)
            with read_flag(flag_name(name)):
                found[name] = None if text is None else read(text)
        return {**found, "port": self.port}

    def check(self) -> None:
        """Without --stream the other flags mean nothing; with it --speed must be a speed."""
        from terascope.connectors.live.settings import Speed

        if self.stream:
            with read_flag("--speed", SourceError):
                Speed.parse(self.speed)
            return
        for field in fields(self):
            if getattr(self, field.name) not in (None, False, []):
                raise misuse(flag_name(field.name), "is for streams: give --stream, too")


def flag_name(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def run(
    binding: Binding,
    results: ResultFlags,
    streams: StreamFlags,
    files: list[Path] = FILES,
    master: str | None = flag(
        "Where Spark runs; all cores of this machine by default.", metavar="URL"
    ),
    engine: Literal["local", "spark", "auto"] | None = flag(
        "What computes a batch: this process alone (local), or Spark. auto, which is the"
        " default, takes local where Spark would take longer to start than the work takes, and"
        " Spark where a master is given. The rows are the same."
    ),
    low: LowLevel | None = flag(
        "Who runs the low level: compiled kernels where the source is read (native), or"
        " Spark's operators over its tuples (catalyst). auto, which is the default, takes"
        " native wherever the source can host it."
    ),
    quiet: bool = switch("No progress, no summary.", "--quiet", "-q"),
) -> None:
    """Run a query set over its sources and give the rows of every visible query.

    A small input is computed in this process, a larger one by Spark, which takes seconds to start;
    the last line says which, and why. --engine spark or --engine local decides it otherwise:

        terascope run flows.gsql -s pcap:trace.pcap --engine local

    Results go to stdout or, with --output, to files; everything else goes to stderr. --format csv
    prints one query as plain CSV and several each behind a line "# query NAME"; json is one object,
    query name to rows; ndjson has a row a line with the key "query" first.

    With --stream it runs until Ctrl-C: rows come when their windows close, and every query is a
    folder DIR/NAME of files with a manifest that only grows. Started again with the same checkpoint
    it goes on where it was, and no row comes twice.

    Examples:
        terascope run flows.gsql --source eth0=pcap:trace.pcap
        terascope run schema.gsql flows.gsql --source eth0=pcap:trace.pcap
        terascope run flows.gsql --source 'pcap:captures/*.pcap.gz' --output out --format parquet
        terascope run pairs.gsql --source a=pcap:a.pcap --source b=pcap:b.pcap --set main=a,b
        terascope run log.gsql --source log=csv:log.csv --source-option 'log.delimiter=;'
        terascope run flows.gsql --source pcap:trace.pcap --format ndjson | jq .
        terascope run flows.gsql --stream --source eth0=pcap:captures --output out
        terascope run flows.gsql --stream --source eth0=pcap:trace.pcap --speed 10x --until-idle
    """
    results.check(streams.stream)
    if streams.stream and engine == "local":
        raise misuse("--engine", "a stream runs in Spark: leave it out, or say spark")
    streams.check()
    session = binding.session(
        master=master, strict=results.strict, low=low, engine=engine, **streams.settings()
    )
    with session:
        queries = loaded(session, files)
        if streams.stream:
            from terascope.cli.run_stream import stream_set

            stream_set(session, queries, streams, results, quiet)
        else:
            run_set(session, queries, results, quiet)


def run_set(session: Session, queries: QuerySet, flags: ResultFlags, quiet: bool) -> None:
    """The command without its binding: everything is checked before an engine starts."""
    from terascope.cli.printing import computed_rows, computed_tables
    from terascope.cli.progress import phases
    from terascope.output import staged
    from terascope.results import malformed_words

    began = time.monotonic()
    queries.check()
    with ExitStack() as stack:
        folder = None
        if flags.output is not None:
            folder = stack.enter_context(staged(flags.output, session.bindings.output_mode))
        with phases(quiet, lambda: running_tasks(session)) as tell:
            if folder is None:
                results = queries.run(progress=tell)
                if flags.format in (None, "table"):
                    show = computed_tables(results, flags.rows, tell)
                else:
                    show = computed_rows(results, cast("TextFormat", flags.format), tell)
            else:
                format = cast("FileFormat", flags.format or "csv")
                results = queries.write_into(folder, format, flags.parts, tell)
    if folder is None:
        show()
    elif not quiet:
        tell_written(results, flags)
    for words in malformed_words(results.total):
        tell_line("malformed", words)
    if flags.explain:
        typer.echo(results.explain(), err=True)
    if not quiet:
        errors().print(Text(summary(queries, results, time.monotonic() - began), style="dim"))


def tell_written(results: Results, flags: ResultFlags) -> None:
    """Say which file or folder has the rows of each query."""
    from terascope.output import file_name

    assert flags.output is not None
    suffix = "" if flags.parts else flags.format or "csv"
    for name, count in results.written.items():
        errors().print(f"{flags.output / file_name(name, suffix)}: {plural(count, 'row')}")


def running_tasks(session: Session) -> tuple[int, int] | None:
    """The progress of Spark, once it runs."""
    if not session.has_spark:
        return None
    from terascope.spark.session import tasks

    return tasks(session.spark)


def summary(queries: QuerySet, results: Results, seconds: float) -> str:
    """The last lines: what was read, how long it took, and the balance of partitions."""
    total = results.total
    names = ", ".join(dict.fromkeys(map(interface_of, results.reports))) or "nothing"
    chosen = "" if results.choice is None else f" ({results.choice})"
    loads = {name: float(report.tuples) for name, report in results.reports.items()}
    partitions = [one.advice or f"{one.source}: {one.text}" for one in balances(loads)]
    line = (
        f"{plural(len(queries.queries), 'query', 'queries')} over {names}: {total.tuples:,} tuples,"
        f" {readable_bytes(total.bytes_read)} read,"
        f" {sum(total.malformed.values()):,} malformed, {seconds:.1f} s{chosen}"
    )
    return "\n".join([line, *partitions])
