"""`terascope run --stream`: a query set that runs until it is stopped.

In: a bound query set, flags. Out: the rows of every query, in files or on stdout; on stderr how the
run is; `/status` and `/metrics` while it lasts. The first Ctrl-C (or SIGTERM) stops it between two
batches, the second at once: nothing is lost either way, and the same command goes on.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, cast

from rich.console import Console

from terascope.cli.command import INTERRUPTED, errors, tell_line
from terascope.cli.live_view import LiveView, stderr_console
from terascope.cli.printing import RowPrinter, RowsFormat
from terascope.cli.progress import phases
from terascope.cli.run import ResultFlags, StreamFlags
from terascope.cli.stopping import AtOnce, Stopping
from terascope.operate.notices import late_text, malformed_text
from terascope.operate.server import HOST, StatusServer
from terascope.operate.status import Status
from terascope.operate.subscription import Callback
from terascope.physical.stream.plan import StreamPlan
from terascope.running import RunningSet, StreamFormat
from terascope.session import QuerySet, Session
from terascope.streaming.state.runs import announced
from terascope.streams import check_files, planned_stream, run_of
from terascope.units import plural, readable_seconds

BETWEEN_LOOKS: Final = 1.0


def stream_set(
    session: Session, queries: QuerySet, flags: StreamFlags, to: ResultFlags, quiet: bool
) -> None:
    """The command without its binding: everything is checked before Spark starts. Rows for the
    screen are kept in Parquet, which loses nothing, until they are shown.
    """
    format = cast(StreamFormat, "parquet" if to.output is None else to.format or "csv")
    plan = planned_stream(queries.compiled)
    check_files(plan, flags.speed)
    try:
        with ExitStack() as stack:
            checkpoint = stack.enter_context(checkpoint_folder(flags.checkpoint, to.output))
            server = stack.enter_context(
                StatusServer(session.config.port or 0, hosts=session.config.status_hosts)
            )
            run = run_of(queries.compiled, plan, server.port, checkpoint, to.output, format)
            stack.enter_context(announced(run))
            if not quiet:
                errors().print(f"status: http://{HOST}:{server.port}/status, and /metrics")
            stopping = stack.enter_context(Stopping())
            with phases(quiet) as tell:
                tell("starting Spark", 0, 1)
                session.stream_spark  # noqa: B018 - it takes Ctrl-C for itself when it starts
                stopping.install()
                rows = None if to.output is not None else console_rows(plan, to)
                running = queries.stream(
                    checkpoint, to.output, format,
                    lambda report: stopping.wake(), lambda text: tell_line("note", text),
                    tell, rows,
                    port=None,  # the command has a server of its own, from before Spark starts
                )  # fmt: skip
            view = stack.enter_context(LiveView(console_of(to), quiet))
            last = watched(running, server, view, stopping)
    except AtOnce:
        # Nothing that is left to do is worth waiting for: a checkpoint bears being killed.
        errors().print(interrupted_text(flags.checkpoint, to.output))
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    if not quiet:
        tell_end(running, last, checkpoint, flags, to)


def watched(
    running: RunningSet, server: StatusServer, view: LiveView, stopping: Stopping
) -> Status:
    """Show how the run is until it is over; its last status.

    Raises:
        Exception: it failed for good.
    """

    def publish() -> Status:
        status = running.status()
        server.publish(status)
        view.show(status)
        return status

    try:
        while not running.wait(0):
            publish()
            stopping.sleep(BETWEEN_LOOKS)
            if stopping.asked:
                running.ask_to_stop()
    finally:
        last = publish()
    return last


# ---- how it runs ---------------------------------------------------------------------------------


@contextmanager
def checkpoint_folder(given: Path | None, output: Path | None) -> Iterator[Path]:
    """The checkpoint; a temporary one is removed afterwards."""
    kept = kept_checkpoint(given, output)
    if kept is not None:
        yield kept
        return
    tell_line("note", "nothing survives this run: --checkpoint DIR keeps what it needs to go on")
    folder = Path(tempfile.mkdtemp(prefix="terascope-stream-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def interrupted_text(given: Path | None, output: Path | None) -> str:
    """The text about the remains of a run that was ended at once."""
    checkpoint = kept_checkpoint(given, output)
    if checkpoint is None:
        return "interrupted; nothing is kept, for there is no --checkpoint"
    return (
        "interrupted; the same command goes on after the last batch that was done (checkpoint"
        f" {checkpoint})"
    )


def kept_checkpoint(given: Path | None, output: Path | None) -> Path | None:
    return output / ".checkpoint" if given is None and output is not None else given


def console_rows(plan: StreamPlan, to: ResultFlags) -> Callback:
    """A callback of the run that prints rows: each row comes after it is durable."""
    fields = {output.name: output.fields for output in plan.outputs}
    format = cast(RowsFormat, to.format or "table")
    printer = RowPrinter(format, len(fields) > 1 or format == "ndjson", to.rows)
    return lambda query, batch, rows: printer.show(query, batch, fields[query], rows)


def console_of(to: ResultFlags) -> Console:
    """The console of the live view: tables stand still only if nothing else is written there."""
    console = stderr_console()
    if to.output is None and to.format not in (None, "table") and sys.stdout.isatty():
        return Console(stderr=True, force_terminal=False, highlight=False, markup=False)
    return console


def tell_end(
    running: RunningSet, last: Status, checkpoint: Path, flags: StreamFlags, to: ResultFlags
) -> None:
    """Print the results of the run, and how to resume it."""
    if to.output is not None:
        for query in last.queries:
            errors().print(f"{running.folder(query.name)}: {plural(query.rows, 'row')}")
    for source in last.sources:
        if source.late:
            tell_line("note", late_text(source))
        if source.malformed:
            tell_line("note", malformed_text(source))
    lasted = readable_seconds(last.run.updated - last.run.started)
    tuples = sum(source.tuples for source in last.sources)
    batches = plural(last.run.batch + 1, "batch", "batches")
    what = f"{tuples:,} tuples read, {batches}, {lasted}"
    if running.ended:
        errors().print(f"all was read: {what}", style="dim")
    elif flags.checkpoint is None and to.output is None:
        errors().print(f"stopped: {what}; nothing is kept", style="dim")
    else:
        errors().print(f"stopped: {what}", style="dim")
        errors().print(
            f"to go on from here, give the same command again (checkpoint {checkpoint})",
        )
