"""The program that is killed: the set as a stream, until all data are read.

    python -m bench.crash.run DATA FOLDER FORMAT    the stream: FOLDER/checkpoint, FOLDER/output
    python -m bench.crash.run DATA FOLDER callback  its rows go to a database, FOLDER/rows.db
    python -m bench.crash.run DATA FILE batch       what a batch gives, as a file of rows

A stream says when it has started, and of each batch that it is done. Started again, it goes on from
its checkpoint.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from bench.crash.database import Database
from bench.crash.queries import BATCH_BYTES, QUICK, open_set
from bench.crash.rows import Rows, batch_rows, save_rows, stream_rows
from terascope.spark.session import open_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from terascope.running import RunningSet, StreamFormat
    from terascope.session import QuerySet
    from terascope.streaming.heartbeat import BatchReport

Form: TypeAlias = Literal["parquet", "csv", "ndjson", "callback"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
RUNNING: Final = "running"
BATCH: Final = "batch "


def stream_settings() -> dict[str, Any]:
    """Small micro-batches, one right after the other, and an end."""
    return {
        "speed": "max",
        "until_idle": True,
        "trigger": 0,
        "batch_bytes": BATCH_BYTES,
        "tasks": 2,
    }


def started(
    queries: QuerySet,
    folder: Path,
    form: Form,
    watch: Callable[[BatchReport], None],
    say: Callable[[str], None],
    settings: Mapping[str, Any] | None = None,
) -> RunningSet:
    """The stream at work, from its checkpoint in the folder if there is one."""
    files = form != "callback"
    return queries.stream(
        folder / "checkpoint",
        folder / "output" if files else None,
        cast("StreamFormat", form) if files else "parquet",
        watch,
        say,
        callback=None if files else Database(folder / "rows.db"),
        **(settings or stream_settings()),
    )


def delivered(folder: Path, form: Form) -> Rows:
    """What such a stream has delivered."""
    if form == "callback":
        return Database(folder / "rows.db").rows()
    return stream_rows(folder / "output")


def say(text: str) -> None:
    """At once: the listener may kill us for it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def told(report: BatchReport) -> None:
    say(f"{BATCH}{report.batch}: {report.seconds:.2f} s, {dict(report.delivered)}")


def main(data: Path, target: Path, how: str) -> None:
    spark = open_session("local[2]", settings=QUICK)
    try:
        session, queries = open_set(data, spark)
        with session:
            if how == "batch":
                save_rows(batch_rows(queries), target)
            else:
                stream(queries, target, cast("Form", how))
    finally:
        spark.stop()


def stream(queries: QuerySet, folder: Path, form: Form) -> None:
    running = started(queries, folder, form, told, say)
    say(RUNNING)
    with running:
        running.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
