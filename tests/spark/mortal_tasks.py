"""Tasks in which a worker kills itself where a test said it shall.

In: `TERASCOPE_TEST_ARMED`, a folder. A file `reading`, `merging`, `finishing` or `writing` in it
asks for one death: of the first worker that has just completed a part of a result in such a task;
`executor` for that of the JVM, and all it holds, in which rows of Spark are written. Whoever can
remove the file has to go, and nobody else. Out: a file `NAME.killed`, the name of the part that is
there now and that no result may have.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pyarrow as pa

from terascope.execute import reading_task as low_task
from terascope.execute.merge import Merging
from terascope.execute.relation_task import FinalTask
from terascope.execute.reports import Outgoing
from terascope.spark.write import Writing
from tests.spark.killed_runs import ARMED


def make_mortal(executor: int) -> None:
    low_task.low_rows = telling_rows("reading", low_task.low_rows)
    FinalTask.outgoing = telling_rows("finishing", FinalTask.outgoing)  # type: ignore[method-assign]
    Merging.merged = telling_rows("merging", Merging.merged)  # type: ignore[method-assign]
    Writing.__call__ = silent_writing(Writing.__call__, executor)  # type: ignore[method-assign,assignment]


def telling_rows(
    name: str, rows: Callable[..., Iterator[Outgoing]]
) -> Callable[..., Iterator[Outgoing]]:
    """Dies when Spark has been told of a first part; the others are half written."""

    @wraps(rows)
    def dying(*args: Any) -> Iterator[Outgoing]:
        for row in rows(*args):
            yield row
            if row.kind == "part":
                assert row.report is not None
                die_if_asked(name, row.report, os.getpid())

    return dying


def silent_writing(
    write: Callable[[Writing, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], executor: int
) -> Callable[[Writing, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Dies when its part is complete and nobody was told."""

    @wraps(write)
    def dying(self: Writing, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in write(self, batches):
            told = batch["text"][0].as_py()
            die_if_asked("writing", told, os.getpid())
            die_if_asked("executor", told, executor)
            yield batch

    return dying


def die_if_asked(name: str, told: str, victim: int) -> None:
    part = json.loads(told)
    if not part["rows"]:  # nobody would notice it in a result
        return
    armed = Path(os.environ[ARMED])
    try:
        (armed / name).unlink()
    except FileNotFoundError:
        return
    (armed / f"{name}.killed").write_text(Path(part["path"]).name, encoding="utf-8")
    os.kill(victim, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)  # an executor that dies shall hear nothing more
