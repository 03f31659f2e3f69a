"""Which engine runs a batch: the setting decides; `auto` compares the work with Spark's start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from terascope.config import Config
from terascope.diagnostic import Source, SourceError
from terascope.local.choice import (
    EngineRequest,
    choose_engine,
    local_seconds,
)
from terascope.local.run import run_locally
from terascope.physical.job import Job
from terascope.pipeline import Bindings, compile_set
from tests.golden.cases import interface
from tests.settings import config_with

D = "PROTOCOL D (time UINT increasing, len UINT);"
GROUPS = f"{D} SELECT tb, COUNT(*) AS n FROM dense.D GROUP BY time/10 AS tb"


def job_of(text: str, low: Config | None = None) -> Job:
    bindings = Bindings({"dense": interface("dense")}, config=low or config_with())
    return compile_set(Source(text, "set"), bindings).job()


def over_bytes(size: int, folder: Path) -> Job:
    """A job over a file of that size: a hole, which takes no room on disk."""
    path = folder / "log.csv"
    with path.open("wb") as file:
        file.truncate(size)
    job = job_of(GROUPS)
    (read,) = job.reads
    return replace(job, reads=(replace(read, splits=(replace(read.splits[0], path=str(path)),)),))


def test_a_small_input_needs_no_spark() -> None:
    choice = choose_engine(job_of(GROUPS), EngineRequest())
    assert choice.engine == "local"
    assert str(choice) == "engine local: about 0.1 s of work, Spark would need 8 s to start"


def test_a_setting_decides() -> None:
    job = job_of(GROUPS)
    assert choose_engine(job, EngineRequest("spark")).engine == "spark"
    assert choose_engine(job, EngineRequest("local", "a master was given")).engine == "local"
    assert choose_engine(job, EngineRequest("auto", "a master was given")).engine == "spark"


def test_a_large_input_is_for_spark(tmp_path: Path) -> None:
    choice = choose_engine(over_bytes(1 << 30, tmp_path), EngineRequest())
    assert choice.engine == "spark"
    assert "Spark needs 8 s to start" in choice.reason


def test_a_running_spark_takes_more(tmp_path: Path) -> None:
    """What is worth no start of Spark may be worth a job of a Spark that runs."""
    some = over_bytes(50 << 20, tmp_path)
    assert choose_engine(some, EngineRequest()).engine == "local"
    assert choose_engine(some, EngineRequest(), spark_runs=True).engine == "spark"


def test_work_grows_with_bytes_and_queries() -> None:
    one = local_seconds(job_of(GROUPS))
    two = local_seconds(
        job_of(f"{GROUPS}; SELECT tb, MAX(len) AS m FROM dense.D GROUP BY time/7 AS tb")
    )
    assert one < two


def test_tuples_that_spark_processes_are_not_for_the_local_engine() -> None:
    job = job_of(GROUPS, config_with(low="catalyst"))
    assert choose_engine(job, EngineRequest()).engine == "spark"
    with pytest.raises(SourceError, match=r"the tuples of dense are processed by Spark"):
        run_locally(job)
