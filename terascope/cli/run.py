"""`terascope run`: a query set over its sources, computed once or as a stream."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias, cast

import typer
from rich.text import Text

from terascope.cli.binding import Binding, Files, loaded
from terascope.cli.command import flag
from terascope.cli.stream_flags import StreamFlags

if TYPE_CHECKING:
    from terascope.cli.printing import Show, TextFormat, Told
    from terascope.cli.row_printer import RowsFormat
    from terascope.cli.run_stream import Destination
    from terascope.output import FileFormat
    from terascope.results import Results
    from terascope.running import StreamFormat
    from terascope.session import QuerySet, Session


LowLevel: TypeAlias = Literal["native", "catalyst", "auto"]
Format: TypeAlias = Literal["table", "csv", "json", "ndjson", "parquet"]


PARQUET_TO_STDOUT = "parquet goes to files: give --output DIR"
TABLE_TO_FILES = "a table goes to the screen: leave out --output"
PARTS_TO_STDOUT = "parts are files: give --output DIR, and --format csv or parquet"
PARTS_OF_STREAM = "a stream always writes folders of files: leave it out"
STRICT_STREAM = "a stream counts what is malformed and goes on"
EXPLAIN_STREAM = "terascope status shows what a stream does: leave it out"
LOCAL_STREAM = "a stream runs in Spark: leave it out, or say spark"
JSON_STREAM = "json is one object with an end: take ndjson for a stream"


@dataclass(frozen=True)
class ResultFlags:
    """Where rows go, and in which form."""

    PANEL: ClassVar = "Results"
    output: Path | None = flag(
        "--output",
        "-o",
        metavar="DIR",
        help="Write every query to DIR/NAME.csv (or .json, .ndjson, .parquet), with a manifest"
        " beside it; all of them or none.",
    )
    format: Format | None = flag(
        "--format", "-f", help="table on stdout, csv with --output, unless something else is said."
    )
    parts: bool = flag(
        "--parts",
        default=False,
        help="With --output, and csv or parquet: every query is a folder DIR/NAME of files,"
        " written by Spark's tasks as they finish, rows in no particular order. The fastest way"
        " to large results.",
    )
    rows: int = flag("--rows", default=20, help="Rows shown of each table.", min=0)
    strict: bool | None = flag(
        "--strict", help="Malformed packets or rows are an error, and nothing is written."
    )
    explain: bool = flag(
        "--explain",
        default=False,
        help="Afterwards show, on stderr, the physical plan with what every operator did.",
    )

    def check(self, stream: bool) -> None:
        """Raise a mistake of usage when flags do not go together."""
        to_files, format = self.output is not None, self.format
        parts_fit = to_files and format in (None, "csv", "parquet")
        wrong = (
            (not to_files and format == "parquet", "--format", PARQUET_TO_STDOUT),
            (to_files and format == "table", "--format", TABLE_TO_FILES),
            (self.parts and not parts_fit, "--parts", PARTS_TO_STDOUT),
            (stream and self.explain, "--explain", EXPLAIN_STREAM),
            (stream and self.parts, "--parts", PARTS_OF_STREAM),
            (stream and self.strict, "--strict", STRICT_STREAM),
            (stream and format == "json", "--format", JSON_STREAM),
        )
        for is_wrong, name, why in wrong:
            if is_wrong:
                raise typer.BadParameter(why, param_hint=name)


def run(
    files: Files,
    binding: Binding,
    results: ResultFlags,
    streams: StreamFlags,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where Spark runs; all cores of this machine by default."),
    ] = None,
    engine: Annotated[
        Literal["local", "spark", "auto"] | None,
        typer.Option(
            help="What computes a batch: this process alone (local), or Spark. auto, which is the"
            " default, takes local where Spark would take longer to start than the work takes, and"
            " Spark where a master is given. The rows are the same."
        ),
    ] = None,
    low: Annotated[
        LowLevel | None,
        typer.Option(
            help="Who runs the low level: compiled kernels where the source is read (native), or"
            " Spark's operators over its tuples (catalyst). auto, which is the default, takes"
            " native wherever the source can host it."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
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
    results.check(streams.stream)
    if streams.stream and engine == "local":
        raise typer.BadParameter(LOCAL_STREAM, param_hint="--engine")
    streams.check()
    session = binding.session(
        master=master, strict=results.strict, low=low, engine=engine, **streams.settings()
    )
    with session:
        queries = loaded(session, files)
        output, format, rows = results.output, results.format, results.rows
        if streams.stream:
            from terascope.cli.run_stream import stream_set

            stream_set(session, queries, streams, destination(output, format, rows), quiet)
        else:
            run_set(session, queries, output, format, rows, quiet, results.parts, results.explain)


def destination(output: Path | None, format: Format | None, rows: int) -> Destination:
    """Where the rows of a stream go. Those for the screen are kept in Parquet, which loses nothing,
    until they are shown.
    """
    from terascope.cli.run_stream import Destination

    if output is None:
        shown = cast("RowsFormat", format or "table")
        return Destination(None, "parquet", shown, rows)
    return Destination(output, cast("StreamFormat", format or "csv"), "table", rows)


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
                show = computed(results, format or "table", rows, tell)
            else:
                file_format = cast("FileFormat", format or "csv")
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

    if format == "table":
        return computed_tables(results, rows, tell)
    return computed_rows(results, cast("TextFormat", format), tell)


def written(results: Results, output: Path, format: FileFormat, parts: bool, quiet: bool) -> Show:
    """Rows are in files; what is returned says where they went."""
    from terascope.cli.mistakes import errors
    from terascope.output import file_name
    from terascope.units import plural

    def show() -> None:
        for name, count in results.written.items():
            path = output / (file_name(name) if parts else file_name(name, format))
            if not quiet:
                errors().print(f"{path}: {plural(count, 'row')}")

    return show


def running_tasks(session: Session) -> tuple[int, int] | None:
    """How far Spark is, once it runs."""
    if not session.has_spark:
        return None
    from terascope.spark.api import tasks

    return tasks(session.spark)


def summary(queries: QuerySet, results: Results, seconds: float) -> str:
    """The last line: what was read and how long it took."""
    from terascope.units import plural, readable_bytes

    total = results.total
    names = ", ".join(results.reports) or "nothing"
    chosen = "" if results.choice is None else f" ({results.choice})"
    return (
        f"{plural(len(queries.queries), 'query', 'queries')} over {names}: {total.tuples:,} tuples,"
        f" {readable_bytes(total.bytes_read)} read,"
        f" {sum(total.malformed.values()):,} malformed, {seconds:.1f} s{chosen}"
    )
