"""`terascope run`: a query set over its sources, computed once or as a stream."""

from __future__ import annotations

import time
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.text import Text

from terascope.cli.binding import (
    ConfigFile,
    Debug,
    EngineFlag,
    EngineOption,
    Files,
    FunctionFiles,
    Low,
    Params,
    Sets,
    SourceOptions,
    Sources,
    bound_session,
    loaded,
)
from terascope.cli.stream_flags import (
    BatchBytes,
    CheckpointFolder,
    HeartbeatFlag,
    LateFolder,
    LivenessFlag,
    Port,
    ReplayFlag,
    ReplayLimit,
    SkewFlag,
    SpeedFlag,
    StreamFlags,
    Streaming,
    TriggerFlag,
    UntilIdle,
    check_speed,
    not_for_streams,
    only_for_streams,
    stream_settings,
)

if TYPE_CHECKING:
    from terascope.cli.printing import Show, TextFormat, Told
    from terascope.cli.run_stream import Destination
    from terascope.cli.stream_rows import RowsFormat
    from terascope.output import FileFormat
    from terascope.results import Results
    from terascope.running import StreamFormat
    from terascope.session import QuerySet, Session


class Format(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    NDJSON = "ndjson"
    PARQUET = "parquet"


def run(
    files: Files,
    source: Sources = None,
    source_option: SourceOptions = None,
    set_: Sets = None,
    param: Params = None,
    functions: FunctionFiles = None,
    config: ConfigFile = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Write every query to DIR/NAME.csv (or .json, .ndjson, .parquet), with a manifest"
            " beside it; all of them or none.",
            rich_help_panel="Results",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            "-f",
            help="table on stdout, csv with --output, unless something else is said.",
            rich_help_panel="Results",
            show_default=False,
        ),
    ] = None,
    parts: Annotated[
        bool,
        typer.Option(
            "--parts",
            help="With --output, and csv or parquet: every query is a folder DIR/NAME of files,"
            " written by Spark's tasks as they finish, rows in no particular order. The fastest way"
            " to large results.",
            rich_help_panel="Results",
        ),
    ] = False,
    rows: Annotated[
        int, typer.Option(help="Rows shown of each table.", min=0, rich_help_panel="Results")
    ] = 20,
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict",
            help="Malformed packets or rows are an error, and nothing is written.",
            rich_help_panel="Results",
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where Spark runs; all cores of this machine by default.",
            show_default=False,
        ),
    ] = None,
    engine: EngineFlag = None,
    low: Low = None,
    stream: Streaming = False,
    checkpoint: CheckpointFolder = None,
    speed: SpeedFlag = None,
    until_idle: UntilIdle = False,
    heartbeat: HeartbeatFlag = None,
    skew: SkewFlag = None,
    replay_limit: ReplayLimit = None,
    replay: ReplayFlag = None,
    liveness: LivenessFlag = None,
    trigger: TriggerFlag = None,
    batch_bytes: BatchBytes = None,
    late: LateFolder = None,
    port: Port = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Afterwards show, on stderr, the physical plan with what every operator did.",
            rich_help_panel="Results",
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
    debug: Debug = False,
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
    """
    del debug
    if output is None and format is Format.PARQUET:
        raise typer.BadParameter("parquet goes to files: give --output DIR", param_hint="--format")
    if output is not None and format is Format.TABLE:
        raise typer.BadParameter(
            "a table goes to the screen: leave out --output", param_hint="--format"
        )
    if parts and (output is None or format not in (None, Format.CSV, Format.PARQUET)):
        raise typer.BadParameter(
            "parts are files: give --output DIR, and --format csv or parquet", param_hint="--parts"
        )
    if stream:
        not_for_streams(
            {
                "--explain": (explain, "terascope status shows what a stream does: leave it out"),
                "--parts": (parts, "a stream always writes folders of files: leave it out"),
                "--strict": (strict, "a stream counts what is malformed and goes on"),
                "--engine": (
                    engine is EngineOption.LOCAL,
                    "a stream runs in Spark: leave it out, or say spark",
                ),
                "--format": (
                    format is Format.JSON,
                    "json is one object with an end: take ndjson for a stream",
                ),
            }
        )
        check_speed(speed)
    else:
        only_for_streams(
            {
                "--checkpoint": checkpoint, "--speed": speed, "--until-idle": until_idle,
                "--heartbeat": heartbeat, "--skew": skew, "--trigger": trigger,
                "--batch-bytes": batch_bytes, "--late": late, "--port": port,
                "--replay-limit": replay_limit, "--replay": replay or None,
                "--liveness": liveness,
            }
        )  # fmt: skip
    settings = stream_settings(
        heartbeat, skew, trigger, batch_bytes, port, replay_limit, replay, liveness
    )
    session = bound_session(
        source, source_option, set_, param, functions, config, master=master, strict=strict,
        low=low, settings=settings, engine=engine,
    )  # fmt: skip
    with session:
        queries = loaded(session, files)
        if stream:
            from terascope.cli.run_stream import stream_set

            flags = StreamFlags(checkpoint, speed, until_idle, late)
            stream_set(session, queries, flags, destination(output, format, rows), quiet)
        else:
            run_set(session, queries, output, format, rows, quiet, parts, explain)


def destination(output: Path | None, format: Format | None, rows: int) -> Destination:
    """Where the rows of a stream go. Those for the screen are kept in Parquet, which loses nothing,
    until they are shown.
    """
    from terascope.cli.run_stream import Destination

    if output is None:
        shown = cast("RowsFormat", (format or Format.TABLE).value)
        return Destination(None, "parquet", shown, rows)
    return Destination(output, cast("StreamFormat", (format or Format.CSV).value), "table", rows)


def run_set(
    session: Session,
    queries: QuerySet,
    output: Path | None = None,
    format: Format | None = None,
    rows: int = 20,
    quiet: bool = False,
    parts: bool = False,
    explain: bool = False,
) -> None:
    """The command without its flags: everything is checked before an engine starts."""
    from terascope.cli.mistakes import errors, tell_line
    from terascope.cli.progress import phases
    from terascope.output import staged
    from terascope.results import malformed_words

    began = time.monotonic()
    queries.check()
    mode = session.bindings.output_mode
    with ExitStack() as stack:
        folder = None if output is None else stack.enter_context(staged(output, mode))
        with phases(quiet, lambda: running_tasks(session)) as tell:
            if output is None or folder is None:
                results = queries.run(progress=tell)
                show = computed(results, format or Format.TABLE, rows, tell)
            else:
                file_format = cast("FileFormat", (format or Format.CSV).value)
                results = queries.write_into(folder, file_format, parts, tell)
                show = written(results, output, file_format, parts, quiet)
    show()
    for words in malformed_words(results.total):
        tell_line("malformed", words)
    if explain:
        typer.echo(results.explain(), err=True)
    if not quiet:
        errors().print(Text(summary(queries, results, time.monotonic() - began), style="dim"))


def computed(results: Results, format: Format, rows: int, tell: Told) -> Show:
    """Rows for stdout."""
    from terascope.cli.printing import computed_rows, computed_tables

    if format is Format.TABLE:
        return computed_tables(results, rows, tell)
    return computed_rows(results, cast("TextFormat", format.value), tell)


def written(results: Results, output: Path, format: FileFormat, parts: bool, quiet: bool) -> Show:
    """Rows are in files; what is returned says where they went."""
    from terascope.cli.mistakes import errors
    from terascope.output import file_name

    def show() -> None:
        for name, count in results.written.items():
            path = output / (file_name(name) if parts else file_name(name, format))
            if not quiet:
                errors().print(f"{path}: {count:,} row{'' if count == 1 else 's'}")

    return show


def running_tasks(session: Session) -> tuple[int, int] | None:
    """How far Spark is, once it runs."""
    if not session.has_spark:
        return None
    from terascope.spark.api import tasks

    return tasks(session.spark)


def summary(queries: QuerySet, results: Results, seconds: float) -> str:
    """The last line: what was read and how long it took."""
    from terascope.units import readable_bytes

    total = results.total
    names = ", ".join(results.reports) or "nothing"
    number = len(queries.queries)
    chosen = "" if results.choice is None else f" ({results.choice})"
    return (
        f"{number} quer{'y' if number == 1 else 'ies'} over {names}: {total.tuples:,} tuples,"
        f" {readable_bytes(total.bytes_read)} read,"
        f" {sum(total.malformed.values()):,} malformed, {seconds:.1f} s{chosen}"
    )
