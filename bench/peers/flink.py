"""Flink's SQL in batch mode: all queries of a workload as one job, one statement set.

Its package, apache-flink, pins other versions of what we need, so that it lives in an environment
of its own: TERASCOPE_FLINK_PYTHON names the interpreter there, and the contender is left out when
it does not. That package has no Parquet: Flink reads and writes CSV, of the columns it uses. The
CSV is made before, and what it wrote becomes Parquet after the runs, neither of them timed.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from bench.experiment import BenchError, Check, Figures, Outcome
from bench.harness import made_once
from bench.workload import Pair, Queries, Workload

INTERPRETER: Final = "TERASCOPE_FLINK_PYTHON"
JOB: Final = Path(__file__).with_name("flink_job.py")
NAME: Final = "flink"


def flink_lacks() -> str | None:
    """Why Flink cannot take part."""
    python = os.environ.get(INTERPRETER)
    if not python:
        return f"{INTERPRETER} does not name a Python that has apache-flink"
    found = subprocess.run([python, "-c", "import pyflink"], capture_output=True, check=False)
    return None if found.returncode == 0 else f"{python} has no apache-flink"


def csv_of(parquet: Path, columns: Sequence[str]) -> Path:
    """The columns of a table without a header, made once."""
    path = parquet.with_name(f"{parquet.stem}-{'-'.join(columns)}.csv")
    wanted = ", ".join(f'"{name}"' for name in columns)
    text = f"COPY (SELECT {wanted} FROM '{parquet}') TO '{{}}' (FORMAT csv, HEADER false)"
    return made_once(path, lambda part: duckdb.execute(text.format(part)).fetchall())


@dataclass(frozen=True)
class Flink:
    """For workloads of which all columns are integers, `time` in seconds among them."""

    pair: Pair
    """With Flink's SQL; the stream has a column `at`, its time as Flink wants it."""
    columns: tuple[str, ...]
    """What the queries read, `time` among them."""
    results: tuple[str, ...]
    """The columns of every result."""
    name: str = NAME
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Queries:
        command = [os.environ[INTERPRETER], str(JOB), str(cores)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert process.stdin is not None
        assert process.stdout is not None
        asking, answering = process.stdin, process.stdout

        def answer(workload: Workload, output: Path) -> Figures:
            asked = {
                "table": workload.table,
                "csv": csv_of(workload.parquet, self.columns).as_uri(),
                "columns": self.columns,
                "results": self.results,
                "sql": dict(workload.sql),
                "output": output.as_uri(),
            }
            asking.write(json.dumps(asked) + "\n")
            asking.flush()
            for line in answering:  # others may print, too
                if line.startswith("done"):
                    return {}
                if line.startswith("failed"):
                    raise BenchError(line.removeprefix("failed").strip())
            raise BenchError("Flink ended before it answered")

        def close() -> None:
            asking.close()
            process.wait()

        return Queries(self.pair, answer, close)


@dataclass
class FromCsv:
    """A check of Flink's results, which are files of CSV without a header."""

    check: Check
    results: tuple[str, ...]

    def look(self, outcome: Outcome, output: Path) -> None:
        for folder in sorted(output.iterdir()):
            to_parquet(folder, self.results)
        self.check.look(outcome, output)

    def judge(self, outcomes: list[Outcome]) -> None:
        self.check.judge(outcomes)


def to_parquet(folder: Path, columns: Sequence[str]) -> None:
    """All files of a result as one of Parquet beside them."""
    files = [str(path) for path in folder.iterdir() if path.stat().st_size]
    if not files:
        return
    types = ", ".join(f"'{name}': 'BIGINT'" for name in columns)
    duckdb.execute(
        f"COPY (FROM read_csv({files}, header = false, columns = {{{types}}}))"
        f" TO '{folder / 'all.parquet'}' (FORMAT parquet)"
    ).fetchall()
